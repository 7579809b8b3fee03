"""The state of a path: a text that stays the same until the path changes.

It contains a file's kind, permissions, and a digest of its bytes; for a link also its text and its
target's state; for a folder that was listed, a digest of the names in it and their kinds. Digests
are cached by what lstat(2) returns.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _blake2 import blake2b
    from collections.abc import Callable
else:
    from _blake2 import blake2b  # hashlib takes longer to import than this to use

ABSENT_STATE = "-"
SPECIAL = "special"  # a fifo, a socket, a device

_DIGEST_BYTES = 16
_READ_BYTES = 1 << 18
_LARGE_BYTES = 64 << 20  # a larger file is identified by lstat alone
_MOST_DIGESTS = 100_000
# A file that changes again within the resolution of its times looks the same.
_SETTLED_NS = 2 * 10**9
NAMES = " names:"
CACHE = "cache "  # then a folder, NUL, and the state of its files
CACHE_MARK = "CACHEDIR.TAG"  # Source: https://bford.info/cachedir/
GIT = "git"  # the path exists, and is git's folder
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


class Reader:
    """Reads the states of paths.

    `root_abs` contains no links; `digests` is the cache of digests, which it extends; `scratch`
    tells whether the gate declares a path as scratch, relative to the root if it is inside.
    """

    def __init__(
        self,
        root_abs: str,
        digests: dict[str, str],
        temporary: tuple[str, ...],
        scratch: Callable[[str], bool] | None = None,
    ) -> None:
        self.root_abs = root_abs
        self._digests = digests
        self._temporary = tuple(f"{folder_abs.rstrip('/')}/" for folder_abs in temporary)
        self._scratch = scratch
        self._now_ns = time.time_ns()

    def key(self, path_abs: str) -> str:
        """Return a path as it is stored: relative to the root if it is inside."""
        inside = path_abs.removeprefix(f"{self.root_abs}/")
        return "." if path_abs == self.root_abs else inside

    def state(self, path_abs: str, *, names: bool = False, is_git: bool = False) -> str:
        """Return a path's state. `names`: for a folder, the names in it count.

        `is_git`: it is git's, so it does not matter whether it is a folder or, in a linked
        worktree, a file.
        """
        try:
            status = os.lstat(path_abs)
            if is_git and stat.S_IFMT(status.st_mode) in (stat.S_IFDIR, stat.S_IFREG):
                return GIT
            if not stat.S_ISLNK(status.st_mode):
                return self._state_of(path_abs, status, names=names)
            text = f"link {os.readlink(path_abs)!r} to "
        except OSError as error:
            return _of_error(error)
        try:
            return text + self._state_of(path_abs, os.stat(path_abs), names=names)
        except OSError as error:
            return text + _of_error(error)

    def again(self, key: str, state: str) -> str:
        """Return a path's current state, in a form comparable with a known one."""
        path_abs = key if key.startswith("/") else f"{self.root_abs}/{key}".removesuffix("/.")
        if state.startswith(CACHE):
            cache, _, inner = state[len(CACHE) :].partition("\0")
            is_there = os.path.lexists(os.path.join(self.root_abs, cache))
            return in_cache(cache, self.again(key, inner)) if is_there else state
        return self.state(path_abs, names=NAMES in state, is_git=state == GIT)

    def changed_ns(self, path_abs: str, *, names: bool) -> int:
        """Return when a path's state last changed, if it can change."""
        times = [0]
        for look in (os.lstat, os.stat):
            try:
                status = look(path_abs)
            except OSError:
                continue
            if stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFLNK, names and stat.S_IFDIR):
                times.append(status.st_ctime_ns)
        return max(times)

    def _state_of(self, path_abs: str, status: os.stat_result, *, names: bool) -> str:
        kind = stat.S_IFMT(status.st_mode)
        mode = stat.S_IMODE(status.st_mode)
        if self.key(path_abs).rstrip("/") in ("", "."):  # a private checkout has a root of its own
            mode = 0
        text = f"{_KINDS.get(kind, SPECIAL)} {mode:o}{_owner(status)}"
        if kind == stat.S_IFREG:
            return f"{text} {self._digest(path_abs, status)}"
        if kind == stat.S_IFDIR and names:
            return f"{text}{NAMES}{self._names(path_abs, status)}"
        return text

    def _digest(self, path_abs: str, status: os.stat_result) -> str:
        identity = _identity(status)
        if status.st_size > _LARGE_BYTES:
            return identity
        if identity in self._digests:
            return self._digests[identity]
        digest = blake2b(digest_size=_DIGEST_BYTES)
        try:
            with open(path_abs, "rb", buffering=0) as file:
                while data := file.read(_READ_BYTES):
                    digest.update(data)
        except OSError:  # not readable for us, so not for the gate either
            return identity
        return self._keep(identity, digest.hexdigest(), status)

    def _names(self, path_abs: str, status: os.stat_result) -> str:
        identity = f"names {_identity(status)}"
        if self._scratch is None and identity in self._digests:
            return self._digests[identity]
        try:
            with os.scandir(path_abs) as entries:
                names = sorted(
                    f"{entry.name}\0{_kind(entry)}\0"
                    for entry in entries
                    if not (self.is_left_out(entry.path) or _is_cache(entry))
                )
        except OSError as error:
            return _of_error(error)
        digest = blake2b(digest_size=_DIGEST_BYTES)
        digest.update("".join(names).encode("utf-8", "surrogateescape"))
        text = digest.hexdigest()
        return text if self._scratch else self._keep(identity, text, status)

    def _keep(self, identity: str, digest: str, status: os.stat_result) -> str:
        """Cache a digest, unless a later change might look the same."""
        if self._now_ns - status.st_ctime_ns > _SETTLED_NS:
            if len(self._digests) > _MOST_DIGESTS:
                self._digests.clear()
            self._digests[identity] = digest
        return digest

    def is_left_out(self, path_abs: str) -> bool:
        """Return whether a path never counts: Python's bytecode caches, and `scratch`."""
        if "/__pycache__/" in f"{path_abs}/":
            return True
        return self._scratch is not None and self._scratch(self.key(path_abs))

    def is_own_state(self, path_abs: str) -> bool:
        """Return whether a path is in our own state folder, in which we write while a gate runs."""
        inside = f"{path_abs}/".partition("/.git/")[2]
        is_nested = inside.startswith(("worktrees/", "modules/")) and "/gitgates/" in inside
        return is_nested or inside.startswith("gitgates/")

    def is_temporary(self, path_abs: str) -> bool:
        """Return whether a path is in a temporary folder, and outside the root."""
        is_outside = self.key(path_abs).startswith("/")
        return is_outside and f"{path_abs}/".startswith(self._temporary)

    def is_source(self, key: str) -> bool:
        """Return whether a path is in the root, and not git's own.

        Git's index and others use a folder's time there to detect changed names in it.
        """
        return not key.startswith("/") and ".git" not in key.split("/")


def in_cache(cache: str, state: str) -> str:
    """Return the state of a file in a cache, which may be emptied without any effect."""
    return f"{CACHE}{cache}\0{state}"


def is_index(path: str) -> bool:
    """Return whether a path is a git index, or our copy of one."""
    folder, _, name = path.rpartition("/")
    is_one = name == "index" or name.startswith("index-")
    return is_one and any(part.endswith(".git") for part in folder.split("/"))


def _identity(status: os.stat_result) -> str:
    of_file = f"{status.st_dev} {status.st_ino} {status.st_size}"
    return f"{of_file} {status.st_mtime_ns} {status.st_ctime_ns}"


def _is_cache(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and os.path.lexists(f"{entry.path}/{CACHE_MARK}")


def _owner(status: os.stat_result) -> str:
    """Return a file's owner, if it is not us."""
    is_ours = (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())
    return "" if is_ours else f" of {status.st_uid}:{status.st_gid}"


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.name == ".git":  # in a linked worktree, it is a file
        return ""
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir() else "file" if entry.is_file() else SPECIAL


def _of_error(error: OSError) -> str:
    return ABSENT_STATE if isinstance(error, FileNotFoundError) else f"error {error.errno}"
