"""Plan an undo: what each file will be.

The points are undone one by one, the newest first, each for the files that it changed. If a file
differs from what the point left, somebody has changed it since: that change is merged or, if it
conflicts, kept beside the restored version.
"""

from __future__ import annotations

import os
import stat
import tempfile

from gitgates.core.record import Record
from gitgates.features.undo.moments import above
from gitgates.files.changes import Change, trees_of
from gitgates.files.changes import Version as Stored
from gitgates.files.ignored import can_be_made
from gitgates.files.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.features.undo.moments import Moment, Moments, PathChange, Version
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

_IGNORE_FILE = ".gitignore"


class Target(Record):
    """What a path will be, and what it is now."""

    now: Version
    version: Version
    conflicts: bool = False  # the current version is kept beside it
    is_merged: bool = False


class Planned(Record):
    """What an undo will do with files."""

    targets: Mapping[str, Target]
    notes: tuple[str, ...]  # about what does not come back
    unknown_paths: tuple[str, ...]  # given paths that no undone change touches


def plan(
    moments: Moments, now: Moment, undone: Iterable[Point], paths: tuple[str, ...] = ()
) -> Planned:
    """Return what files will be after points are undone.

    `paths` limits it to these files and folders.

    Raises: StateError if a point is damaged; GitError.
    """
    by_path: dict[str, Target] = {}
    notes, about = set[str](), set[str]()
    for point in sorted(undone, key=lambda point: -point.number):
        changes = moments.changes(point)
        left_out = moments.before(point).state.left_out
        stays = _made_again(moments.repo.root_abs, changes)
        unknown = (*left_out, *stays)  # their earlier state is unknown
        about |= {*changes, *left_out} if paths else set()
        wanted = {
            path: each
            for path, each in changes.items()
            if _is_in(path, paths)
            and not (each.before is None and unknown and _is_in(path, unknown))
        }
        notes |= _left(moments, point, left_out, paths)
        notes |= {
            f"`{path}`: stays: it may become ignored, and can be made again"
            for path in stays
            if _is_in(path, paths)
        }
        missing = wanted.keys() - by_path.keys()
        by_path |= {
            path: Target(now=version, version=version)
            for path, version in moments.versions(now, missing).items()
        }
        for path, change in wanted.items():
            by_path[path] = _undone(moments.repo, by_path[path], change)
    targets = {path: target for path, target in by_path.items() if target.now != target.version}
    unknown_paths = tuple(
        each for each in paths if not any(_is_in(path, (each,)) for path in about)
    )
    return Planned(targets=targets, notes=tuple(sorted(notes)), unknown_paths=unknown_paths)


def _left(
    moments: Moments, point: Point, before: Mapping[str, str], paths: tuple[str, ...]
) -> set[str]:
    """Return notes about files that were not saved, and have changed or gone since."""
    after, root_abs = moments.of(point).state.left_out, moments.repo.root_abs
    notes = set[str]()
    for path, why in before.items():
        if path not in after and _is_in(path, paths):
            is_there = os.path.lexists(f"{root_abs}/{path}")
            what = "is left as it is" if is_there else "does not come back"
            notes.add(f"`{path}`: {what}: it was not saved ({why})")
    return notes


def _made_again(root_abs: str, changes: Mapping[str, PathChange]) -> set[str]:
    """Return the new files that may have existed before, while git ignored them.

    No point has ignored files that can be made again.
    """
    if not any(os.path.basename(path) == _IGNORE_FILE for path in changes):
        return set()
    new = [path for path, change in changes.items() if change.before is None]
    is_made = {"": False}
    for path in new:
        for folder in reversed([path, *above(path)]):
            folder_abs = f"{root_abs}/{folder}"
            names = os.listdir(folder_abs) if os.path.isdir(folder_abs) else ()
            inside = is_made[os.path.dirname(folder)]
            is_made.setdefault(folder, inside or can_be_made(folder_abs, names))
    return {path for path in new if is_made[path]}


def _is_in(path: str, paths: tuple[str, ...]) -> bool:
    return not paths or any(path == each or path.startswith(f"{each}/") for each in paths)


def _undone(repo: Repo, target: Target, change: PathChange) -> Target:
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
    """Return the merge of both changes; None if they conflict, or are not text."""
    if not (base and ours and theirs):
        return None
    if not all(stat.S_ISREG(version[0]) for version in (base, ours, theirs)):
        return None
    mode = ours[0] if theirs[0] == base[0] else theirs[0]
    if ours[1] == base[1] or theirs[1] in (base[1], ours[1]):
        return mode, theirs[1] if ours[1] == base[1] else ours[1]
    memory = Memory(repo)
    with tempfile.TemporaryDirectory(prefix="gitgates-undo-") as folder_abs:
        for name, version in (("ours", ours), ("base", base), ("theirs", theirs)):
            with open(os.path.join(folder_abs, name), "wb") as file:
                file.write(memory.reading.out("cat-file", "blob", version[1]))
        git = memory.reading._replace(cwd_abs=folder_abs)
        done = git.ask("merge-file", "-p", "-q", "ours", "base", "theirs")
    if done.exit_status:
        return None
    return mode, memory.write("blob", done.stdout)


def difference(repo: Repo, targets: Mapping[str, Target]) -> bytes:
    """Return a unified diff from what paths are to what they must be."""
    changes = {
        path: Change(_stored(each.now), _stored(each.version)) for path, each in targets.items()
    }
    ask = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index")
    return Memory(repo).reading.out(*ask, *trees_of(repo, changes), "--")


def _stored(version: Version) -> Stored | None:
    if version is None or stat.S_ISLNK(version[0]):
        return version and Stored(stat.S_IFLNK, version[1])
    return Stored(0o100755 if version[0] & 0o100 else 0o100644, version[1])
