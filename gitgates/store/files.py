"""Open a file that others can replace: a regular one only, and without waiting; tell of links.

Opening a fifo waits for somebody at its other end, and `/dev/zero` has none.
"""

from __future__ import annotations

import errno
import os
import stat

_LONGEST_BYTES = 16 << 20


def open_regular(path_abs: str, flags: int, mode: int = 0o666) -> int:
    """Open a regular file, or the one that a link leads to; an `opener` for `open`.

    Raises: OSError, also where it is a fifo, a device or a folder.
    """
    try:
        fd = os.open(path_abs, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        is_link = error.errno == errno.ELOOP and flags & os.O_NOFOLLOW
        if is_link or error.errno == errno.ENXIO:  # which a fifo answers that nobody reads
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
    """Open a file of our state folders: nothing is read or written through a link.

    Raises: OSError, also where it is no regular file.
    """
    return open_regular(path_abs, flags | os.O_NOFOLLOW, mode)


def is_regular(path_abs: str) -> bool:
    """Tell whether a file of our state folders may be handed to git, which would follow a link."""
    try:
        return stat.S_ISREG(os.lstat(path_abs).st_mode)
    except OSError:
        return False


def read_regular(path_abs: str) -> bytes:
    """Return the bytes of somebody's settings.

    Raises: OSError, also where it is no regular file, or longer than settings ever are.
    """
    with open(path_abs, "rb", opener=open_regular) as file:
        content = file.read(_LONGEST_BYTES + 1)
    if len(content) > _LONGEST_BYTES:
        raise OSError(errno.EFBIG, f"is longer than {_LONGEST_BYTES >> 20} MiB", path_abs)
    return content


def _not_regular(path_abs: str) -> OSError:
    return OSError(errno.EINVAL, "is no regular file", path_abs)


def link_out(path_abs: str, root_abs: str) -> str:
    """Return the link by which a path of a repository leaves its files, and where that leads.

    Empty where it stays inside, or begins outside. What git keeps in `.git` is no file of it.
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
