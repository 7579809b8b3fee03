"""Files on disk: open regular ones only, replace atomically, lock with a deadline, remove trees.

Opening a FIFO waits for somebody at its other end, and reading `/dev/zero` never ends. Damaged
bytes can keep `marshal` busy for minutes, so a cached value is loaded only if its length and hash
match.
"""

from __future__ import annotations

import _imp
import errno
import fcntl
import marshal
import os
import stat
import time

from gitgates.core.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PRIVATE, READ_ONLY = 0o600, 0o400  # of state; if it is shared, others get the same rights
_shared = [0]  # the bits that core.sharedRepository adds, in the repository that was found last
_LONGEST_BYTES = 16 << 20
_LONGEST_TAIL = 64 << 20
_LENGTH_BYTES = _HASH_BYTES = 8  # before a cached value
_HASH_KEY = 1
_MOST_SYNCED = 100
_APPEND_WAIT_S = 1.0  # whoever holds the lock only writes
_POLL_S = 0.002
_LONGEST_POLL_S = 0.01


def follow_sharing(bits: int) -> None:
    """Make state that is created from now on accessible to others, as the bits say.

    The bits are a file's, such as 0o660, as core.sharedRepository sets them for git; 0: nobody.
    """
    _shared[0] = bits


def is_shared() -> bool:
    """Return whether state is shared with others."""
    return bool(_shared[0])


def shared_mode() -> int:
    """Return the permissions of a state file that everybody who shares the state may write."""
    return PRIVATE | _shared[0]


def make_folder(path_abs: str, *, exist_ok: bool = True) -> None:
    """Make a state folder and its parents. Raises: OSError."""
    os.makedirs(path_abs, mode=0o700, exist_ok=exist_ok)
    while _shared[0] and "/gitgates" in path_abs:  # makedirs gives its mode only to the last one
        _share(path_abs, os.stat(path_abs))
        path_abs = os.path.dirname(path_abs)


def _share(place: str | int, status: os.stat_result) -> None:
    """Give our file or folder the shared bits; what is created in a folder gets its group.

    Source: git's path.c, adjust_shared_perm.
    """
    bits = _shared[0]
    if stat.S_ISDIR(status.st_mode):
        bits |= (bits & 0o444) >> 2 | stat.S_ISGID
    mode = stat.S_IMODE(status.st_mode) | bits
    if status.st_uid == os.geteuid() and mode != stat.S_IMODE(status.st_mode):
        os.chmod(place, mode)


def open_regular(path_abs: str, flags: int, mode: int = 0o666) -> int:
    """Open a regular file, or the one that a link leads to; an `opener` for `open`.

    Raises: OSError, also if it is a FIFO, a device or a folder.
    """
    try:
        fd = os.open(path_abs, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        is_link = error.errno == errno.ELOOP and flags & os.O_NOFOLLOW
        if is_link or error.errno == errno.ENXIO:  # ENXIO: a FIFO that nobody reads
            raise _not_regular(path_abs) from error
        raise
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path_abs)
    raise _not_regular(path_abs)


def open_state(path_abs: str, flags: int, mode: int = 0o600) -> int:
    """Open a file in the state folders, but never through a link.

    Raises: OSError, also if it is not a regular file.
    """
    fd = open_regular(path_abs, flags | os.O_NOFOLLOW, mode)
    if _shared[0] and flags & os.O_CREAT:
        _share(fd, os.fstat(fd))
    return fd


def is_regular(path_abs: str) -> bool:
    """Return whether a state file is a regular file: git would follow a link."""
    try:
        return stat.S_ISREG(os.lstat(path_abs).st_mode)
    except OSError:
        return False


def read_regular(path_abs: str) -> bytes:
    """Return the bytes of a regular file.

    Raises: OSError, also if it is not a regular file, or longer than any settings file.
    """
    with open(path_abs, "rb", opener=open_regular) as file:
        content = file.read(_LONGEST_BYTES + 1)
    if len(content) > _LONGEST_BYTES:
        raise OSError(errno.EFBIG, f"is longer than {_LONGEST_BYTES >> 20} MiB", path_abs)
    return content


def _not_regular(path_abs: str) -> OSError:
    return OSError(errno.EINVAL, "is not a regular file", path_abs)


def link_out(path_abs: str, root_abs: str) -> str:
    """Return the link through which a path leaves a repository, and the link's target.

    Empty if the path stays inside, or begins outside. Files in `.git` count as outside.
    """
    names = os.path.relpath(path_abs, root_abs).split(os.sep)
    if {"..", ".git"} & set(names):
        return ""
    real_abs = os.path.realpath(root_abs)
    current = os.path.normpath(root_abs)
    for name in names:
        current = os.path.join(current, name)
        target = os.path.realpath(current)
        is_inside = f"{target}{os.sep}".startswith(f"{real_abs}{os.sep}")
        is_inside = is_inside and ".git" not in target[len(real_abs) :].split(os.sep)
        if os.path.islink(current) and not is_inside:
            return f"{current} is a link to {target}"
    return ""


def read_state(path_abs: str) -> bytes | None:
    """Return the bytes of a file in the state folders; None if it does not exist.

    Raises: OSError if it cannot be read.
    """
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_or_empty(path_abs: str) -> bytes:
    """Return the bytes of somebody else's file; empty if it is gone or cannot be read."""
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def read_cached(path_abs: str) -> Any:  # noqa: ANN401 - whatever was written
    """Return the value that `replace_cached` wrote; None if there is none, or it is damaged."""
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as file:
            head = file.read(_LENGTH_BYTES + _HASH_BYTES)
            length = int.from_bytes(head[:_LENGTH_BYTES], "big")
            if length > _LONGEST_TAIL:
                return None
            body = file.read(length + 1)
        if len(body) != length or _hash(body) != head[_LENGTH_BYTES:]:
            return None
        return marshal.loads(body)  # noqa: S302 - our own file, mode 0600
    except (OSError, EOFError, ValueError, TypeError, MemoryError):
        return None


def replace_cached(path_abs: str, value: Any, *, sync: bool = True) -> None:  # noqa: ANN401 - as above
    """Write a cached value, of types that `marshal` takes. Raises: OSError."""
    body = marshal.dumps(value)
    head = len(body).to_bytes(_LENGTH_BYTES, "big") + _hash(body)
    replace_file(path_abs, head + body, sync=sync)


def _hash(content: bytes) -> bytes:
    """Return a hash that needs no import: the one for hash-based .pyc files, see PEP 552."""
    return _imp.source_hash(_HASH_KEY, content)


def length_of(path_abs: str) -> int:
    """Return the size of a regular file in bytes; -1 if it does not exist."""
    try:
        status = os.stat(path_abs)
    except (OSError, ValueError):
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def read_tail(path_abs: str, since: int, most: int = _LONGEST_TAIL) -> bytes | None:
    """Return what follows the first `since` bytes of a regular file; None if it does not exist."""
    try:
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            file.seek(max(since, 0))
            return file.read(most)
    except (OSError, ValueError):
        return None


def replace_file(
    path_abs: str,
    content: bytes,
    *,
    mode: int | None = PRIVATE,
    sync: bool = True,
    check: Callable[[], None] | None = None,
) -> None:
    """Replace a file atomically: a reader finds either the old or the new content, complete.

    `mode`: None keeps the old file's mode; a new file gets what the umask leaves. `check` is called
    just before the rename, and may raise. Raises: OSError; then nothing has changed.
    """
    folder_abs, name = os.path.split(path_abs)
    new_abs = f"{folder_abs}/.{name[:100]}.gitgates-{os.getpid()}-{time.monotonic_ns()}"
    fd = os.open(new_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode or 0o666)
    try:
        with open(fd, "wb") as file:
            if mode is None and os.path.exists(path_abs):
                mode = stat.S_IMODE(os.stat(path_abs).st_mode)
            if mode is not None:
                if mode in (PRIVATE, READ_ONLY):
                    mode |= _shared[0] & (0o666 if mode == PRIVATE else 0o444)
                os.fchmod(fd, mode)
            file.write(content)
            file.flush()
            if sync:
                os.fsync(fd)
        if check:
            _rename_checked(new_abs, path_abs, check)
        else:
            os.rename(new_abs, path_abs)
    except BaseException:
        remove_file(new_abs)
        raise


def _rename_checked(new_abs: str, path_abs: str, check: Callable[[], None]) -> None:
    """Check and rename while no other gitgates does so in that folder."""
    fd = os.open(os.path.dirname(path_abs), os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock_fd(fd, wait_s=_APPEND_WAIT_S)
        check()
        os.rename(new_abs, path_abs)
    finally:
        os.close(fd)


def replace_unchanged(root_abs: str, file: str, before: bytes | None, after: bytes) -> None:
    """Replace a file of a repository if it still contains `before` (None: does not exist).

    Its mode stays; a symbolic link stays, and its target changes. Raises: ConfigError if it has
    other content, cannot be written, or is not a file of the repository.
    """
    path_abs = os.path.join(root_abs, file)
    if link := link_out(path_abs, root_abs):
        raise ConfigError(
            f"{link}, which is not a file of this repository: nothing was written",
            "Replace it with a file of the repository, and try again.",
        )
    path_abs = os.path.realpath(path_abs)

    def check() -> None:
        try:
            # Respects a read-only file: replacing it would need only the folder's permission.
            with open(path_abs, "rb+", opener=open_regular) as stream:
                current = stream.read()
        except FileNotFoundError:
            current = None
        if current != before:
            raise ConfigError(
                f"{file}: was changed by another process in the meantime; nothing was written",
                "Run the command again.",
            )

    try:
        replace_file(path_abs, after, mode=None, check=check)
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be written: {error.strerror or error}",
            f"Look at it with: ls -ld {path_abs}",
        ) from error


def append_bounded(path_abs: str, line: bytes, largest: int) -> None:
    """Append a line to a file that others read and replace; beyond `largest`, drop its older half.

    Raises: OSError if it cannot be written.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        fd = lock_file(path_abs, wait_s=_APPEND_WAIT_S, flags=flags)
    except FileNotFoundError:
        make_folder(os.path.dirname(path_abs))
        fd = lock_file(path_abs, wait_s=_APPEND_WAIT_S, flags=flags)
    if fd < 0:
        raise OSError(errno.ETIMEDOUT, "another process holds its lock", path_abs)
    try:
        size = os.fstat(fd).st_size
        if size > largest:
            newest = os.pread(fd, largest // 2, size - largest // 2).partition(b"\n")[2]
            replace_file(path_abs, newest + line, sync=False)
        else:
            is_torn = size and os.pread(fd, 1, size - 1) != b"\n"  # its writer was killed
            os.write(fd, b"\n" + line if is_torn else line)
    finally:
        os.close(fd)


def sync_folder(folder_abs: str) -> None:
    """Sync a folder, so its entries survive a power failure."""
    fd = os.open(folder_abs, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_files(paths_abs: list[str]) -> None:
    """Sync files; many at once with sync(2), which hardly takes longer than a few single syncs.

    Only on Linux does sync(2) wait for the disk. Source: sync(2).
    """
    if len(paths_abs) > _MOST_SYNCED and os.uname().sysname == "Linux":
        os.sync()
        return
    for path_abs in paths_abs:
        try:
            fd = os.open(path_abs, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, PermissionError):  # removed by somebody, or not readable
            continue
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def remove_file(path_abs: str) -> None:
    """Remove a file or link, if there is one."""
    try:
        os.unlink(path_abs)
    except (FileNotFoundError, NotADirectoryError):
        return


def no_folder_in(folder_abs: str, name: str) -> str:
    """Return the first part of a path below a folder that is a link or a file; empty: none."""
    path_abs = folder_abs
    for part in name.split("/") if name else ():
        path_abs = f"{path_abs}/{part}"
        if os.path.islink(path_abs) or os.path.isfile(path_abs):
            return path_abs
    return ""


def remove_tree(folder_abs: str) -> None:
    """Remove a folder and its content, whatever their modes.

    `shutil.rmtree` would load a dozen modules into a hook. Raises: OSError, also for a link, which
    may lead to somebody's files.
    """
    mode = os.lstat(folder_abs).st_mode
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder_abs)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder_abs, 0o700)
    for entry in list(os.scandir(folder_abs)):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(folder_abs)


def lock_fd(fd: int, *, shared: bool = False, wait_s: float = 0.0) -> bool:
    """Lock an open file with flock, until its holder ends; return False if not in time."""
    mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    until = time.monotonic() + wait_s
    poll_s = _POLL_S
    while True:
        try:
            fcntl.flock(fd, mode)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _LONGEST_POLL_S)
        else:
            return True


def unlock_fd(fd: int) -> None:
    """Release the lock on an open file, which stays open."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def lock_file(
    path_abs: str,
    *,
    shared: bool = False,
    wait_s: float = 0.0,
    flags: int = os.O_RDWR | os.O_CREAT,
) -> int:
    """Open and lock a file; return its descriptor, or -1 if somebody else holds the lock.

    Also -1 if it does not exist and `flags` do not create it.

    Raises: OSError if the file cannot be opened or locked.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            fd = open_state(path_abs, flags)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                raise  # there is no folder for it
            return -1
        try:
            is_locked = lock_fd(fd, shared=shared, wait_s=until - time.monotonic())
            # Removed by its last holder between the calls: a lock on it would protect nothing.
            if is_locked and _has_name(fd, path_abs):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if time.monotonic() >= until:
            return -1


def _has_name(fd: int, path_abs: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path_abs))
    except FileNotFoundError:
        return False
