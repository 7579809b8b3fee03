"""What a tool call has removed or overwritten that no commit has, in one line."""

from __future__ import annotations

import stat

from gitgates.core.clean import first_few, plain_line
from gitgates.features.undo.moments import Moments
from gitgates.files.changes import Version, changes, found_at, made_of
from gitgates.files.memory import Memory
from gitgates.files.points import PERSON, SESSION, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.features.undo.moments import Moment
    from gitgates.files.changes import Change
    from gitgates.files.points import Author, Point
    from gitgates.git.repo import Repo

_LONGEST = 120  # characters of a command, or of a path
_MOST_SHOWN = 3  # paths
_MOST_CONVERTED = 50  # files, each of which needs a call of git
_BRANCHES = "refs/heads/"


def told(repo: Repo, point: Point, *, is_command: bool = True) -> str:
    """Return the line on what a point has destroyed that no commit has; empty: nothing.

    A session may do as it likes with its own work. For an editing tool, only removed files count,
    not overwritten ones.

    Raises: StateError, GitError.
    """
    moments = Moments(repo)
    before, after, every = moments.before(point), moments.of(point), moments.changes(point)
    gone = {
        path: Version(*change.before)
        for path, change in every.items()
        if change.before
        and (not change.after or (is_command and change.before[1] != change.after[1]))
    }
    at = {change.after[1] for change in every.values() if change.after}  # somewhere else
    gone = {path: version for path, version in gone.items() if version.blob not in at}
    lost = _uncommitted(repo, gone, before, after) if gone else []
    lost = _not_own(repo, point, {path: gone[path] for path in lost}) if lost else []
    parts = [_listed(lost)] if lost else []
    parts += _stash_and_branches(repo, before, after)
    if staged := _staged(moments, before, after):
        parts.append(f"staged changes: {_listed(staged)}")
    if not parts:
        return ""
    what = plain_line(point.facts.what, _LONGEST)
    return (
        f"gitgates: `{what}` removed or overwrote what no commit has: {'; '.join(parts)}. It was "
        f"saved first; to get it back: gitgates undo {point.number}"
    )


def _listed(paths: list[str]) -> str:
    return first_few([plain_line(path, _LONGEST) for path in sorted(paths)], _MOST_SHOWN)


def _uncommitted(
    repo: Repo, gone: Mapping[str, Version], before: Moment, after: Moment
) -> list[str]:
    """Return the paths whose content is in no commit."""
    tips = [before.point.head, after.point.head, *after.state.refs.values()]
    stashed = _stash(after) - _stash(before)
    tips += [f"{commit}{which}" for commit in stashed for which in ("", "^2", "^3")]
    tips, git = list(dict.fromkeys(filter(None, tips))), Memory(repo).reading
    lost = dict(gone.items() - found_at(git, tips, gone.items()))
    converted = set()
    for path in [path for path in lost if stat.S_ISREG(lost[path].mode)][:_MOST_CONVERTED]:
        content = git.out("cat-file", "blob", lost[path].blob)
        hashed = repo.git.ask("hash-object", "--stdin", f"--path={path}", stdin=content)
        converted.add((path, Version(lost[path].mode, hashed.stdout.decode().strip())))
    found = {path for path, _version in found_at(git, tips, converted)}
    return [path for path in lost if path not in found]


def _stash(moment: Moment) -> set[str]:
    return {commit for commit, _text in moment.state.stash}


def _not_own(repo: Repo, point: Point, lost: Mapping[str, Version]) -> list[str]:
    """Return the paths that contain work other than the point's session's own."""

    def is_own(author: Author) -> bool:
        return (author.kind, author.name) == (point.author.kind, point.author.name)

    earlier = [each for each in points(repo) if each.number < point.number]

    def is_others(author: Author) -> bool:
        return author.kind in (PERSON, SESSION) and not is_own(author)

    own, theirs = (made_of(repo, earlier, each, lost) for each in (is_own, is_others))

    def has_work(change: Change | None) -> bool:
        """Return whether a change left content that is in no commit."""
        after = change and change.after
        return bool(after and repo.git.ask("cat-file", "-e", after.blob).exit_status)

    not_own = []
    for path, version in lost.items():
        change = own.get(path)
        is_whole = change and change.after and change.after.blob == version.blob
        before = change.before if change else None
        is_new = not before or not repo.git.ask("cat-file", "-e", before.blob).exit_status
        if not (is_whole and is_new) or has_work(theirs.get(path)):
            not_own.append(path)
    return not_own


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


def _staged(moments: Moments, before: Moment, after: Moment) -> list[str]:
    """Return the paths whose staged content no longer exists anywhere."""
    if before.state.entries == after.state.entries:
        return []
    repo = moments.repo
    git = Memory(repo).reading
    trees = [git.resolve(f"{moment.point.id}:staged") for moment in (before, after)]
    if not all(trees):
        return []
    by_path = changes(repo, *trees)
    contents = {(path, each) for path, change in by_path.items() for each in change if each}
    tips = [head for head in (before.point.head, after.point.head) if head]
    committed = found_at(git, tips, contents)
    unstaged = {
        path: change.before
        for path, change in by_path.items()
        if change.before
        and (path, change.before) not in committed
        and (change.after is None or (path, change.after) in committed)
    }
    files = moments.versions(before, unstaged)
    return [p for p, old in unstaged.items() if (files[p] or (0, ""))[1] != old.blob]
