"""What a tree does not have: permissions that are not the usual ones, and owners."""

from __future__ import annotations

import os
import stat
import time

from gitgates.files.facts import stats_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from gitgates.files.facts import LookFacts, Stat

    Owners: TypeAlias = dict[str, tuple[int, int]]

SETTLED_S = 2  # git compares times by the second
_SECOND_NS = 1_000_000_000


def umask_now() -> int:
    """Return the umask."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def usual(mode: int, umask: int) -> int:
    """Return the permissions that a file or folder gets by its type and execute bit."""
    is_open = mode & 0o100 or stat.S_ISDIR(mode)
    return (0o777 if is_open else 0o666) & ~umask


class Permissions:
    """Notes the permissions and owners of files in the facts of a look."""

    def __init__(self, root_abs: str, facts: LookFacts) -> None:
        self._root_abs = root_abs
        self._facts = facts
        self.umask = umask_now()
        root = os.stat(root_abs)
        self._owner = root.st_uid, root.st_gid
        # What has changed since then may change again, and look the same to git.
        self._settled_ns = (int(time.time()) - SETTLED_S) * _SECOND_NS

    def note(self, stats: Mapping[str, Stat]) -> None:
        """Note files that were stored."""
        facts = self._facts
        facts.recent.update(stats)
        facts.recent = {
            path: now
            for path, now in facts.recent.items()
            if max(now[3], now[4]) >= self._settled_ns
        }
        for path in stats.keys() & (facts.modes.keys() | facts.owners.keys()):
            self.forget_modes(path)
        if facts.folders is not None:
            facts.folders.update(_folders_of(stats))
        modes, owners = self.unusual_of(stats)
        facts.modes.update(modes)
        facts.owners.update(owners)

    def is_usual(self, now: os.stat_result) -> bool:
        """Return whether a file need not be noted: it has not changed just now, either."""
        is_plain = now.st_mode & 0o7777 == usual(now.st_mode, self.umask)
        is_settled = now.st_ctime_ns < self._settled_ns
        return is_plain and is_settled and (now.st_uid, now.st_gid) == self._owner

    def unusual_of(self, stats: Mapping[str, Stat]) -> tuple[dict[str, int], Owners]:
        """Return path → permissions, and path → owners, if they are not the usual ones."""
        modes, owners = dict[str, int](), dict[str, tuple[int, int]]()
        for path, now in stats.items():
            mode, owner = now[0], now[5:7]
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != usual(mode, self.umask):
                modes[path] = stat.S_IMODE(mode)
            if owner != self._owner:
                owners[path] = owner[0], owner[1]
        return modes, owners

    def forget(self, paths: Iterable[str]) -> None:
        """Forget files that are gone."""
        for path in paths:
            self.forget_modes(path)
            self._facts.recent.pop(path, None)

    def forget_modes(self, path: str) -> None:
        """Forget what a file had."""
        self._facts.modes.pop(path, None)
        self._facts.owners.pop(path, None)

    def changed_since(self) -> list[str]:
        """Return the recent files that are not as they were stored."""
        recent = self._facts.recent
        now = stats_of(self._root_abs, recent)
        return [path for path, was in recent.items() if now.get(path) != was]

    def unusual_folders(self, paths: Iterable[str]) -> dict[str, int]:
        """Return folder → permissions, of those with other ones than usual.

        `paths` are those of files that were not noted; of all, if no folder is known.
        """
        facts = self._facts
        known = {**(facts.folders or {}), **_folders_of(paths)}
        unusual, there, expected = dict[str, int](), dict[str, None](), 0o777 & ~self.umask
        for folder in known:
            try:
                mode = os.lstat(f"{self._root_abs}/{folder}").st_mode
            except OSError:
                continue
            if stat.S_ISDIR(mode):
                there[folder] = None
                if stat.S_IMODE(mode) != expected:
                    unusual[folder] = stat.S_IMODE(mode)
        facts.folders = there
        return unusual


def _folders_of(paths: Iterable[str]) -> dict[str, None]:
    """Return the folders that files are in, and those above."""
    folders = dict[str, None]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders[folder] = None
            folder = folder.rpartition("/")[0]
    return folders
