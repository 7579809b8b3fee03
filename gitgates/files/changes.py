"""What differs between trees of the memory, and what one author has changed.

What changed from a point to the next is its author's. But what has come from commits that existed
before, by a checkout, merge, pull or cherry-pick, is nobody's; nor is what a stash held that was
there before the author's first change. In doubt it is the author's: the error is to ask once more.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.files.memory import Memory
from gitgates.git import object_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.files.points import Author, Point
    from gitgates.git.repo import Git, Repo

_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_MOST_COMMITS = 1000
_MOST_TIPS = 50
_CLOCK_S = 2  # that git's clock, in whole seconds, may be behind ours, or be set back
_FILES, _IGNORED = "", "ignored"


class Version(Record):
    """One version of a file."""

    mode: int  # as git has it: 0o100644, 0o100755, 0o120000, 0o160000
    blob: str  # the id; of a submodule, its commit


class Change(Record):
    """How a file differs."""

    before: Version | None  # None: it was not there
    after: Version | None


def changes(repo: Repo, before: str, after: str) -> dict[str, Change]:
    """Return path → change between two trees; an empty id stands for an empty tree.

    Raises: GitError where one does not exist.
    """
    memory = Memory(repo)
    return {} if before == after else _changes(memory, memory.reading, before, after)


def _changes(memory: Memory, git: Git, before: str, after: str) -> dict[str, Change]:
    empty = memory.write_tree([]) if not (before and after) else ""
    fields = git.out(*_RAW, before or empty, after or empty, "--").split(b"\0")
    by_path = {}
    for meta, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old_id, new_id, _kind = meta.decode().split(" ")
        by_path[os.fsdecode(name)] = Change(_version(old_mode[1:], old_id), _version(mode, new_id))
    return by_path


def _version(mode: str, object_id: str) -> Version | None:
    number = int(mode, 8)
    return Version(mode=number, blob=object_id) if number else None


def changes_to(repo: Repo, point: Point, before: Point | None) -> dict[str, Change]:
    """Return path → change that a point records, ignored files included. Raises: GitError."""
    memory = Memory(repo)
    return _changes_to(memory, memory.reading, point, before)


def _changes_to(memory: Memory, git: Git, point: Point, before: Point | None) -> dict[str, Change]:
    if not before:
        return {}
    ignored = dict[str, Change]()
    if point.ignored != before.ignored:
        ignored = _changes(memory, git, before.ignored, point.ignored)
    if point.tree == before.tree:
        return ignored
    by_path = _changes(memory, git, before.tree, point.tree)
    for path, other in ignored.items():
        change = by_path.get(path)
        # One that is ignored now, or not any more, is in the other tree with what it was.
        merged = Change(
            before=(change and change.before) or other.before,
            after=(change and change.after) or other.after,
        )
        if merged.before != merged.after:
            by_path[path] = merged
        else:
            by_path.pop(path, None)
    return by_path


def changed_by(
    repo: Repo, points: Iterable[Point], is_author: Callable[[Author], bool]
) -> dict[str, Change]:
    """Return path → what an author has made of a file: before its first change, after its last.

    `points` are those of one worktree, the oldest first. What came back to what it was is left out.
    Ignored files count, too.

    Raises: GitError.
    """
    memory = Memory(repo)
    git, by_path = memory.reading, dict[str, Change]()
    before: Point | None = None
    stashes: list[str] | None = None  # that were there before the first change
    for point in points:
        is_chained = before is not None and point.parent == before.id
        if before and is_chained and is_author(point.author):
            if stashes is None:
                stashes = _stashes(repo, before)
            new = _changes_to(memory, git, point, before)
            stashed = _in_stashes(git, stashes) if new else set()
            others = _in_commits(git, point, before) if new else set()
            for path, change in new.items():
                now = path, change.after
                first = by_path.get(path, change)
                if now not in stashed and now not in others:
                    by_path[path] = Change(before=first.before, after=change.after)
                elif now in stashed and change.after == first.before:
                    by_path.pop(path, None)  # it was stashed once more, and came back
        before = point
    return {path: change for path, change in by_path.items() if change.before != change.after}


def _stashes(repo: Repo, point: Point) -> list[str]:
    from gitgates.core.errors import StateError
    from gitgates.files.points import state_of

    try:
        return [commit for commit, _message in state_of(repo, point).stash]
    except StateError:
        return []


def _in_stashes(git: Git, stashes: list[str]) -> set[tuple[str, Version | None]]:
    """Return the files that were stashed, untracked ones included, with their versions there."""
    by_path = set[tuple[str, Version | None]]()
    for stash in stashes[:_MOST_TIPS]:
        by_path |= _after(git, f"{stash}^1", stash) | _after(git, "--root", f"{stash}^3")
    return by_path


def _in_commits(git: Git, point: Point, before: Point) -> set[tuple[str, Version | None]]:
    """Return the files that commits have brought which existed before, with their versions."""
    by_path = set[tuple[str, Version | None]]()
    if not point.head or point.head == before.head:
        return by_path
    tips, picked = _old_commits(git, point, before)
    for tip in tips[:_MOST_TIPS]:
        base = before.head
        if base and _is_ancestor(git, base, point.head):
            base = git.ask("merge-base", base, tip).stdout.decode().split("\n")[0]
        by_path |= _after(git, base or "--root", tip)
    for commit in picked:
        by_path |= _after(git, "--root", commit)
    return by_path


def _after(git: Git, base: str, commit: str) -> set[tuple[str, Version | None]]:
    """Return what differs in a commit, with the versions there; `--root`: from its parent."""
    done = git.ask(*_RAW, "--no-commit-id", base, commit, "--")
    fields = [] if done.exit_status else done.stdout.split(b"\0")
    by_path = set[tuple[str, Version | None]]()
    for meta, name in zip(fields[::2], fields[1::2], strict=False):
        _old, mode, _was, object_id, _kind = meta.decode().split(" ")
        by_path.add((os.fsdecode(name), _version(mode, object_id)))
    return by_path


def _is_ancestor(git: Git, base: str, tip: str) -> bool:
    return not git.ask("merge-base", "--is-ancestor", base, tip).exit_status


def _old_commits(git: Git, point: Point, before: Point) -> tuple[list[str], list[str]]:
    """Return the newest commits of HEAD that existed before; and those that repeat an older one."""
    ask = ("rev-list", "--no-commit-header", "--format=%H %ct %at %P")
    bounds = [point.head, *([f"^{before.head}"] if before.head else [])]
    log = git.ask(*ask, f"--max-count={_MOST_COMMITS}", *bounds, "--")
    since = int(before.time_s) - _CLOCK_S
    made, parents = set[str](), set[str]()
    picked, other_commits = list[str](), list[str]()
    for line in log.stdout.decode().splitlines():
        commit, committed, written, *above = line.split(" ")
        if int(committed) < since:
            other_commits.append(commit)
            continue
        made.add(commit)
        parents.update(above)
        if int(written) < since:
            picked.append(commit)
    old = [commit for commit in other_commits if commit in parents] + [
        *(parents - made - {*other_commits})
    ]
    if point.head not in made:
        old = [point.head]
    # An amended commit, or one that was rebased, has its own work in it.
    is_on_top = before.head and _is_ancestor(git, before.head, point.head)
    return [commit for commit in old if commit != before.head], picked if is_on_top else []


def read(repo: Repo, blobs: Iterable[str], largest: int = 1 << 20) -> dict[str, bytes]:
    """Return blob → bytes, without those that are missing or larger. Raises: GitError."""
    return object_store.read_blobs(Memory(repo).reading, blobs, largest)
