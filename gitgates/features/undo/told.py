"""What a call has removed or overwritten that no commit has, in one line."""

from __future__ import annotations

import os
import stat

from gitgates.core.clean import plain_line
from gitgates.features.undo.moments import Moments, entries
from gitgates.files.changes import changes
from gitgates.files.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gitgates.features.undo.moments import Moment, PathChange
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

_LONGEST = 120  # characters of a command, or of a path
_MOST_SHOWN = 3  # paths
_MOST_ARGS = 500
_MOST_CONVERTED = 50  # files that git is asked about, each alone
_HISTORY = ("log", "--first-parent", "--format=%x01%an%x01", "--raw", "--no-abbrev", "-z")
_BRANCHES = "refs/heads/"


def told(repo: Repo, point: Point, *, is_command: bool = True) -> str:
    """Return the line on what a point has destroyed that no commit has; empty: nothing.

    A session may do with its own work as it likes. What a tool that edits has overwritten is no
    news: only what it has removed.

    Raises: StateError, GitError.
    """
    moments = Moments(repo)
    before, after, every = moments.before(point), moments.of(point), moments.changes(point)
    gone = {
        path: change
        for path, change in every.items()
        if change.before and (change.after is None or (is_command and _differs(change)))
    }
    lost = _uncommitted(repo, gone, every, (before, after)) if gone else []
    lost = _not_own(repo, point, lost) if lost else []
    parts = [_listed(lost)] if lost else []
    parts += _stash_and_branches(repo, before, after)
    if staged := _staged(repo, before, after):
        parts.append(f"staged changes: {_listed(staged)}")
    if not parts:
        return ""
    what = plain_line(point.facts.what, _LONGEST)
    return (
        f"gitgates: `{what}` removed or overwrote what no commit has: {'; '.join(parts)}. It was "
        f"saved first; to get it back: gitgates undo {point.number}"
    )


def _differs(change: PathChange) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and before[1:] != after[1:]


def _listed(paths: list[str]) -> str:
    names = ", ".join(plain_line(path, _LONGEST) for path in paths[:_MOST_SHOWN])
    more = len(paths) - _MOST_SHOWN
    return names + (f" and {more} more" if more > 0 else "")


def _uncommitted(
    repo: Repo,
    gone: Mapping[str, PathChange],
    every: Mapping[str, PathChange],
    moments: tuple[Moment, Moment],
) -> list[str]:
    """Return the paths whose content is in none of the commits there, nor at another path."""
    before, after = moments
    at = {each.after[1] for each in every.values() if each.after}
    kept = [before.point.head, after.point.head, *after.state.refs.values()]
    stashed = [commit for commit, _text in after.state.stash if commit not in _stash(before)]
    kept += [f"{commit}{which}" for commit in stashed for which in ("", "^2", "^3")]
    committed, lost = _blobs(repo, kept, gone), list[str]()
    for path, change in gone.items():
        version = change.before
        if version is None or version[1] in at or version[1] in committed.get(path, ()):
            continue
        if path in committed and len(lost) < _MOST_CONVERTED and stat.S_ISREG(version[0]):
            content = Memory(repo).reading.out("cat-file", "blob", version[1])
            hashed = repo.git.ask("hash-object", "--stdin", f"--path={path}", stdin=content)
            if hashed.stdout.decode().strip() in committed[path]:
                continue  # git has converted it
        lost.append(path)
    return sorted(lost)


def _stash(moment: Moment) -> set[str]:
    return {commit for commit, _text in moment.state.stash}


def _blobs(repo: Repo, commits: Iterable[str], paths: Collection[str]) -> dict[str, set[str]]:
    """Return path → the blobs that it has in commits."""
    by_path: dict[str, set[str]] = {}
    git = Memory(repo).reading
    for commit in dict.fromkeys(filter(None, commits)):
        for path, _mode, blob in entries(lambda *args: git.ask(*args).stdout, commit, paths):
            by_path.setdefault(path, set()).add(blob)
    return by_path


def _not_own(repo: Repo, point: Point, paths: list[str]) -> list[str]:
    """Return the paths in which there is work that is not of the point's session alone."""
    places = [f"{tree}/{path}" for path in paths for tree in ("files", "ignored")]
    if len(places) > _MOST_ARGS:
        return paths
    log = Memory(repo).reading.ask(*_HISTORY, point.parent, "--", *places)
    first, began, ended = f"{point.author.kind} {point.author.name}", dict[str, str](), set[str]()
    parts = log.stdout.split(b"\x01")
    for author, raw in zip(parts[1::2], parts[2::2], strict=False):
        is_own = f"{os.fsdecode(author)} ".startswith(f"{first} ")
        fields = raw.strip(b"\0\n").split(b"\0")
        for meta, name in zip(fields[::2], fields[1::2], strict=False):
            path = os.fsdecode(name).partition("/")[2]
            if is_own and path not in ended:
                began[path] = meta.decode().split(" ")[2]  # what it was before
            ended |= set() if is_own else {path}
    git = repo.git
    return [
        path
        for path in paths
        if path not in began
        or (began[path].strip("0") and git.ask("cat-file", "-e", began[path]).exit_status)
    ]


def _stash_and_branches(repo: Repo, before: Moment, after: Moment) -> list[str]:
    now = _stash(after)
    parts = [
        f"the stash entry “{plain_line(text, _LONGEST)}”"
        for commit, text in before.state.stash
        if commit not in now
    ]
    for ref, commit in before.state.refs.items():
        left = after.state.refs.get(ref, "")
        if left == commit or (left and ref == before.state.branch):
            continue
        rest = repo.git.ask("rev-list", "--max-count=1", commit, "--not", "--all")
        if rest.exit_status or rest.stdout:
            parts.append(f"the branch {plain_line(ref.removeprefix(_BRANCHES), _LONGEST)}")
    return parts


def _staged(repo: Repo, before: Moment, after: Moment) -> list[str]:
    """Return the paths whose staged content is nowhere any more."""
    if before.state.entries == after.state.entries:
        return []
    git = Memory(repo).reading
    trees = [
        git.ask("rev-parse", "--verify", "--quiet", f"{moment.point.id}:staged").stdout.decode()
        for moment in (before, after)
    ]
    if not all(trees):
        return []
    by_path = changes(repo, *(tree.strip() for tree in trees))
    paths = [path for path, change in by_path.items() if change.before]
    committed = _blobs(repo, [before.point.head, after.point.head], paths)
    files = Moments(repo).versions(before, paths)
    lost = []
    for path in paths:
        old, new, file = by_path[path].before, by_path[path].after, files[path]
        is_unstaged = new is None or new.blob in committed.get(path, ())
        if old and is_unstaged and old.blob not in committed.get(path, ()):
            lost += [path] if file is None or file[1] != old.blob else []
    return sorted(lost)
