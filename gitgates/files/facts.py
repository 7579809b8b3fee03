"""What the last look at a worktree was based on: `files.facts`, in its state folder.

All of it can be found again by reading everything.
"""

from __future__ import annotations

import os

from gitgates.store.files import read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

    # Mode, size, inode, mtime and ctime in ns, owner and group.
    Stat: TypeAlias = tuple[int, ...]

_VERSION = 5


class LookFacts:
    """What the last look found."""

    def __init__(self, path_abs: str) -> None:
        self.clear()
        names = {*vars(self)}
        value = read_cached(path_abs)
        if isinstance(value, dict) and value.get("v") == _VERSION and {*value} == {"v", *names}:
            vars(self).update({name: value[name] for name in names})
        self._path_abs, self._stored = path_abs, self._plain()

    def clear(self) -> None:
        """Forget everything."""
        self.memory: tuple[Any, ...] = ()  # which one
        self.limits: tuple[int, ...] = ()
        self.index: tuple[int, ...] = ()  # ours, as it was left
        self.users: tuple[int, ...] = ()  # the user's
        self.config: tuple[Any, ...] = ()  # files of settings; and the settings that count here
        self.settings: tuple[tuple[str, str], ...] = ()
        # Files in our index that the user's may not have. None: the two must be compared.
        self.own_paths: list[str] | None = None
        # Files that the user's index has and ours lacks, if git would not list them as untracked.
        self.unlisted: list[str] = []
        self.modules: list[str] = []  # submodules
        self.tree = ""  # empty: it has to be written
        self.modes: dict[str, int] = {}  # of files, if they are not those of the umask
        self.owners: dict[str, tuple[int, int]] = {}  # if they are not those of the root
        # Git compares times by the second: changes of these may look like none.
        self.recent: dict[str, Stat] = {}
        self.left_out: dict[str, str] = {}
        self.folders: dict[str, None] | None = None  # with stored files
        self.ignored: dict[str, Stat] = {}  # that are stored
        self.ignored_tree = ""
        self.ignored_out: dict[str, str] = {}
        self.linked: dict[str, int] = {}  # folders of the user's objects, all linked at that mtime

    def _plain(self) -> dict[str, Any]:
        fields = {name: _copied(value) for name, value in vars(self).items() if name[0] != "_"}
        return {"v": _VERSION, **fields}

    def save(self) -> None:
        """Store what has changed. Raises: OSError."""
        plain = self._plain()
        if plain != self._stored:
            replace_cached(self._path_abs, plain, sync=False)
            self._stored = plain


def _copied(value: Any) -> Any:  # noqa: ANN401 - whatever it is
    return value.copy() if isinstance(value, (dict, list)) else value


def stats_of(root_abs: str, paths: Iterable[str]) -> dict[str, Stat]:
    """Return path → what `lstat` says, for each file that is there."""
    stats: dict[str, Stat] = {}
    for path in paths:
        try:
            stats[path] = facts_of(os.lstat(f"{root_abs}/{path}"))
        except OSError:
            continue
    return stats


def facts_of(now: os.stat_result) -> Stat:
    """Return what identifies a file and its state, from what `lstat` returned."""
    return (
        *(now.st_mode, now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns),
        *(now.st_uid, now.st_gid),
    )


def identity(path_abs: str) -> tuple[int, ...]:
    """Return what tells a file renamed into place from the one before it; empty: none."""
    try:
        now = os.stat(path_abs)
    except OSError:
        return ()
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
