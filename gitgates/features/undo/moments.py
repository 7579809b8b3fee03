"""What a worktree contained before and after each recorded change."""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.files.changes import Version as Stored
from gitgates.files.changes import changes_to
from gitgates.files.git_state import State
from gitgates.files.memory import Memory
from gitgates.files.permissions import usual
from gitgates.files.points import GATE, SESSION, UNDO, Point, point_at, points, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Repo

    # Type and permissions, and the blob; None: no file.
    Version: TypeAlias = tuple[int, str] | None

_SUBMODULE = 0o160000
_MOST_ARGS = 500


class PathChange(Record):
    """A path that differs between two moments."""

    before: Version
    after: Version


class Moment(Record):
    """A save point, with everything that it has."""

    point: Point
    state: State

    def version(self, path: str, stored: Stored | None) -> Version:
        """Return a version with its permissions; None if there is none, or it is a submodule."""
        if stored is None or stored.mode == _SUBMODULE:
            return None
        if stat.S_ISLNK(stored.mode):
            return stat.S_IFLNK | 0o777, stored.blob
        mode = self.state.modes.get(path, usual(stored.mode, self.state.umask))
        return stat.S_IFREG | mode, stored.blob


class Moments:
    """The moments of a worktree, each read once."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self._known: dict[str, Moment] = {}

    def of(self, point: Point) -> Moment:
        """Return the moment of a point. Raises: StateError if it is damaged."""
        if point.id not in self._known:
            self._known[point.id] = Moment(point, state_of(self.repo, point))
        return self._known[point.id]

    def before(self, point: Point) -> Moment:
        """Return the moment before a change. Raises: StateError if it is damaged."""
        known = self._known.get(point.parent)
        parent = known.point if known else point_at(self.repo, point.parent)
        if parent is None:
            raise StateError(f"the point before {point.number} is damaged")
        return self.of(parent)

    def changes(self, point: Point) -> dict[str, PathChange]:
        """Return path → what a point has changed, ignored files and permissions included.

        Raises: StateError, GitError.
        """
        before, after = self.before(point), self.of(point)
        by_path = {}
        for path, each in changes_to(self.repo, point, before.point).items():
            change = PathChange(before.version(path, each.before), after.version(path, each.after))
            if change.before != change.after:
                by_path[path] = change
        old, new = before.state.modes, after.state.modes
        modes = {path for path in {*old, *new} if old.get(path) != new.get(path)}
        versions = self.versions(after, modes - by_path.keys())
        for path, version in versions.items():
            if version and stat.S_ISREG(version[0]):
                git_mode = 0o100755 if version[0] & 0o100 else 0o100644
                mode = old.get(path, usual(git_mode, before.state.umask))
                was = stat.S_IFREG | mode, version[1]
                if was != version:
                    by_path[path] = PathChange(was, version)
        return by_path

    def versions(self, moment: Moment, paths: Iterable[str]) -> dict[str, Version]:
        """Return what paths were at a moment. Raises: GitError."""
        by_path: dict[str, Version] = dict.fromkeys(paths)
        # In the order of trees: otherwise, git leaves some out.
        names, git = sorted(by_path, key=os.fsencode), Memory(self.repo).reading
        for tree in filter(None, (moment.point.ignored, moment.point.tree)):
            for start in range(0, len(names), _MOST_ARGS):  # arguments have a limit
                part = names[start : start + _MOST_ARGS]
                for entry in git.names("ls-tree", "-z", "--full-tree", tree, "--", *part):
                    meta, _, path = entry.partition("\t")
                    mode, kind, blob = meta.split(" ")
                    if kind == "blob":
                        by_path[path] = moment.version(path, Stored(int(mode, 8), blob))
        return by_path


def recorded(repo: Repo) -> list[Point]:
    """Return a worktree's recorded changes, the oldest first.

    The first point is not a change, but the state at the start. Raises: GitError.
    """
    return [point for point in points(repo) if point.parent]


def undoable(listed: Iterable[Point]) -> list[Point]:
    """Return the changes that can be undone: agents' changes and undos that are not undone yet."""
    every_point, undone = [*listed], set[int]()
    for point in reversed(every_point):
        if point.number not in undone:  # an undone undo counts for nothing
            undone |= {*point.facts.undoes}
    return [
        point
        for point in every_point
        if point.number not in undone and (is_agents(point) or point.author.kind == UNDO)
    ]


def is_agents(point: Point) -> bool:
    """Return whether an agent made a change, or a gate in its session."""
    return bool(session_of(point)) or point.author.kind == SESSION


def session_of(point: Point) -> str:
    """Return a change's session; empty: none."""
    author = point.author
    return {SESSION: author.name, GATE: author.agent}.get(author.kind, "")


def agent_of(point: Point) -> str:
    """Return the sub-agent that made a change; empty: none."""
    return point.author.agent if point.author.kind == SESSION else ""


def changed_folders(
    moments: Moments, undone: Iterable[Point], paths: Mapping[str, object]
) -> dict[str, int]:
    """Return folder → permissions to restore, if they were unusual.

    `paths` are the files that come back. Raises: StateError.
    """
    wanted = dict[str, int]()
    parents = {folder for path in paths for folder in above(path)}
    for point in sorted(undone, key=lambda point: -point.number):
        before, after = moments.before(point).state, moments.of(point).state
        for folder in {*before.folders, *after.folders}:
            if before.folders.get(folder) != after.folders.get(folder):
                usual_mode = usual(stat.S_IFDIR, before.umask)
                wanted[folder] = before.folders.get(folder, usual_mode)
            elif folder in parents:
                wanted[folder] = before.folders[folder]
    return wanted


def above(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the innermost first."""
    while path := os.path.dirname(path):
        yield path
