"""What to undo, and what the files will be then.

The points are undone one by one, the newest first, each for the files that it has changed. Where a
file is not as the point has left it, somebody has changed it since: then that change is merged, and
where it conflicts, the version of the point is put in place, and the other is kept beside.
"""

from __future__ import annotations

import os
import stat
import tempfile

from gitgates.core.record import Record
from gitgates.features.undo.points import AGENT, UNDO
from gitgates.features.undo.private_git import PrivateGit
from gitgates.features.undo.states import load
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from gitgates.features.undo.points import SavePoint
    from gitgates.features.undo.states import State
    from gitgates.git.repo import Git, Repo

    # Type and permissions, and the blob; None: there is nothing.
    Version: TypeAlias = tuple[int, str] | None

_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")


class Change(Record):
    """A path that differs between two states."""

    before: Version
    after: Version


class FolderChange(Record):
    """The empty folders that an undo makes again, and removes; and what does not come back."""

    back: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class RefChange(Record):
    """What undoing points means for all that git keeps beside files."""

    branches: Mapping[str, tuple[str, str]] = {}  # ref → what the points have left, and had found
    stash: tuple[tuple[str, str], ...] = ()  # entries that went, the newest first
    head: tuple[str, ...] = ()  # the same for HEAD: a branch, or where it was detached, a commit


class Target(Record):
    """What a path is to be, and what it is now."""

    now: Version
    version: Version
    conflicts: bool = False  # what it is now is kept beside
    is_merged: bool = False


def changes(repo: Repo, before: State, after: State) -> dict[str, Change]:
    """Return path → what has changed between two states, modes included."""
    git = PrivateGit(repo).reading
    by_path = {}
    if before.tree != after.tree:
        fields = nul_split(git.out(*_RAW, before.tree, after.tree, "--"))
        for meta, path in zip(fields[::2], fields[1::2], strict=True):
            old_mode, mode, old_blob, blob, _status = meta[1:].split(" ")
            by_path[path] = Change(
                before=_version(before, path, old_mode, old_blob),
                after=_version(after, path, mode, blob),
            )
    modes = {path for path, mode in before.modes.items() if after.modes.get(path) != mode}
    modes |= {path for path, mode in after.modes.items() if before.modes.get(path) != mode}
    same = versions(git, after, modes - by_path.keys())
    for path, version in same.items():
        if version:
            old = before.mode_of(path, version[0]), version[1]
            if old != version:
                by_path[path] = Change(before=old, after=version)
    return by_path


def versions(git: Git, state: State, paths: Iterable[str]) -> dict[str, Version]:
    """Return what paths are in a state."""
    by_path: dict[str, Version] = dict.fromkeys(paths)
    names = list(by_path)
    for start in range(0, len(names), 500):  # arguments have a limit
        part = names[start : start + 500]
        for entry in nul_split(git.out("ls-tree", "-z", "--full-tree", state.tree, "--", *part)):
            meta, _, path = entry.partition("\t")
            mode, kind, blob = meta.split(" ")
            if kind == "blob":
                by_path[path] = _version(state, path, mode, blob)
    return by_path


def _version(state: State, path: str, git_mode: str, blob: str) -> Version:
    mode = int(git_mode, 8)
    return (state.mode_of(path, mode), blob) if mode else None


def undoable(points: Iterable[SavePoint]) -> list[SavePoint]:
    """Return the points that can be undone: those of agents, and undos, that are not undone."""
    every_point = [*points]
    undone: set[int] = set()
    for point in reversed(every_point):
        if point.id not in undone:  # an undo that was undone has undone nothing
            undone |= {*point.author.undoes}
    return [
        point
        for point in every_point
        if point.author.by in (AGENT, UNDO) and point.id not in undone
    ]


def targets(
    repo: Repo, now: State, undone: Iterable[SavePoint], paths: tuple[str, ...] = ()
) -> dict[str, Target]:
    """Return path → what it is to be when points are undone.

    `paths` limits it to these files and folders.

    Raises: StateError where a state is missing; GitError.
    """
    by_path: dict[str, Target] = {}
    git = PrivateGit(repo).reading
    for point in sorted(undone, key=lambda point: -point.id):
        before, after = load(repo, point.before), load(repo, point.after)
        of_point = changes(repo, before, after)
        unknown = (*before.left_out, *after.formerly_ignored)  # what they were before, no state has
        wanted = {
            path: each
            for path, each in of_point.items()
            if _is_in(path, paths)
            and not (each.before is None and unknown and _is_in(path, unknown))
        }
        missing = wanted.keys() - by_path.keys()
        by_path |= {
            path: Target(now=version, version=version)
            for path, version in versions(git, now, missing).items()
        }
        for path, change in wanted.items():
            by_path[path] = _undone(repo, by_path[path], change)
    return {path: target for path, target in by_path.items() if target.now != target.version}


def folder_changes(
    repo: Repo, undone: Iterable[SavePoint], paths: tuple[str, ...] = ()
) -> FolderChange:
    """Return what undoing points means for empty folders, and for what they have left out.

    Raises: StateError where a state is missing.
    """
    back, away, notes = set[str](), set[str](), set[str]()
    for point in sorted(undone, key=lambda point: -point.id):
        before, after = load(repo, point.before), load(repo, point.after)
        made, gone = {*after.folders} - {*before.folders}, {*before.folders} - {*after.folders}
        back, away = (back - made) | gone, (away - gone) | made
        lost = [path for path in before.left_out if path not in after.left_out]
        notes |= {
            f"`{path}`: is left as it is: it was not saved ({before.left_out[path]})"
            for path in lost
            if _is_in(path, paths)
        }
        notes |= {
            f"`{path}`: stays: it was there before, ignored"
            for path in after.formerly_ignored
            if _is_in(path, paths)
        }
    return FolderChange(
        back=tuple(sorted(path for path in back if _is_in(path, paths))),
        away=tuple(sorted(path for path in away if _is_in(path, paths))),
        notes=tuple(sorted(notes)),
    )


def ref_changes(repo: Repo, undone: Iterable[SavePoint]) -> RefChange:
    """Return what undoing points means for branches, the stash and HEAD.

    Raises: StateError where a state is missing.
    """
    branches: dict[str, tuple[str, str]] = {}
    stash = dict[str, str]()
    head: tuple[str, ...] = ()
    for point in sorted(undone, key=lambda point: -point.id):
        before, after = load(repo, point.before), load(repo, point.after)
        for ref in before.refs.keys() | after.refs.keys():
            old, new = before.refs.get(ref, ""), after.refs.get(ref, "")
            if old != new and branches.get(ref, (new, new))[1] == new:
                branches[ref] = branches.get(ref, (new, new))[0], old
        left = {commit for commit, _message in after.stash}
        stash |= {commit: message for commit, message in before.stash if commit not in left}
        old, new = before.branch or before.head, after.branch or after.head
        if old != new and (head or (new, new))[1] == new:
            head = (head or (new, new))[0], old
    return RefChange(branches, tuple(stash.items()), head)


def _is_in(path: str, paths: tuple[str, ...]) -> bool:
    return not paths or any(path == each or path.startswith(f"{each}/") for each in paths)


def _undone(repo: Repo, target: Target, change: Change) -> Target:
    current = target.version
    if current == change.before:
        return target
    if current == change.after:
        return target._replace(version=change.before)
    merged = _merge(repo, base=change.after, ours=current, theirs=change.before)
    if merged:
        return target._replace(version=merged, is_merged=True)
    return target._replace(version=change.before, conflicts=True)


def _merge(repo: Repo, *, base: Version, ours: Version, theirs: Version) -> Version:
    """Return the merge of both changes; None where they conflict, or are no texts."""
    if not (base and ours and theirs):
        return None
    if not all(stat.S_ISREG(version[0]) for version in (base, ours, theirs)):
        return None
    mode = ours[0] if theirs[0] == base[0] else theirs[0]
    if ours[1] == base[1] or theirs[1] in (base[1], ours[1]):
        return mode, theirs[1] if ours[1] == base[1] else ours[1]
    private = PrivateGit(repo)
    with tempfile.TemporaryDirectory(prefix="gitgates-undo-") as folder_abs:
        for name, version in (("ours", ours), ("base", base), ("theirs", theirs)):
            with open(os.path.join(folder_abs, name), "wb") as file:
                file.write(private.read_blob(version[1]))
        git = private.reading._replace(cwd_abs=folder_abs)
        done = git.ask("merge-file", "-p", "-q", "ours", "base", "theirs")
    if done.exit_status:
        return None
    return mode, private.write_blob(done.stdout)


def difference(repo: Repo, path: str, target: Target) -> bytes:
    """Return a unified diff from what a path is to what it is to be."""
    private = PrivateGit(repo)
    sides = [private.write_blob(b"") if v is None else v[1] for v in (target.now, target.version)]
    ask = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", *sides, "--")
    diff = private.reading.out(*ask)
    lines = [
        line for line in diff.split(b"\n") if not line.startswith((b"--- ", b"+++ ", b"diff "))
    ]
    name, modes = (
        os.fsencode(path),
        [f"{v[0]:06o}" if v else "none" for v in (target.now, target.version)],
    )
    head = b"diff a/%s b/%s\n" % (name, name)
    if modes[0] != modes[1]:
        head += f"mode {modes[0]} → {modes[1]}\n".encode()
    return head + b"\n".join(lines)


def counted_lines(repo: Repo, before: State, after: State) -> tuple[int, int]:
    """Return how many lines were added and removed between two states."""
    if before.tree == after.tree:
        return 0, 0
    ask = ("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
    added = removed = 0
    for entry in nul_split(PrivateGit(repo).reading.out(*ask, before.tree, after.tree, "--")):
        more, less, _path = entry.split("\t", 2)
        added += int(more) if more.isdecimal() else 0
        removed += int(less) if less.isdecimal() else 0
    return added, removed


def as_plain(by_path: Mapping[str, Target]) -> dict[str, list[object]]:
    """Return targets for JSON."""
    return {path: list(target) for path, target in by_path.items()}


def from_plain(plain: Mapping[str, list[object]]) -> dict[str, Target]:
    """Return targets from JSON. Raises: TypeError."""

    def version(pair: object) -> Version:
        return (int(pair[0]), str(pair[1])) if isinstance(pair, list) else None

    return {
        path: Target(version(now), version(wanted), bool(conflicts), bool(is_merged))
        for path, (now, wanted, conflicts, is_merged) in plain.items()
    }
