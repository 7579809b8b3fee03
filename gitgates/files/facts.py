"""What the last look at a worktree was based on: `files.facts`, in its state folder.

All of it can be found again by reading everything.
"""

from __future__ import annotations

import os

from gitgates.store.files import read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # Mode, size, inode, mtime and ctime in ns, owner and group.
    Stat: TypeAlias = tuple[int, ...]

_VERSION = 3


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
        self.rules: tuple[Any, ...] = ()  # files that say what is ignored, except for .gitignore
        self.kinds: dict[str, str] = {}  # what is not in the index → what it is: `others.py`
        # Ignored files that are in the index because the user's has them. None: not known.
        self.forced: dict[str, str] | None = None
        self.absent: list[str] = []  # of these, those that are gone: they may come back unlisted
        self.modules: list[str] = []  # submodules
        self.ignore_files: dict[str, Stat] = {}  # .gitignore files that are not in the index
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


def stat_of(path_abs: str) -> Stat:
    """Return what identifies a file and its state; empty: there is none."""
    try:
        now = os.lstat(path_abs)
    except OSError:
        return ()
    return facts_of(now)


def facts_of(now: os.stat_result) -> Stat:
    """Return the same from what `lstat` returned."""
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
