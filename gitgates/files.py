"""Open a file that others can replace: a regular one only, and without waiting.

Opening a fifo waits for somebody at its other end, and `/dev/zero` has none.
"""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path_abs: str, flags: int, mode: int = 0o666) -> int:
    """Open a regular file, or the one that a link leads to; an `opener` for `open`.

    Raises: OSError, also where it is a fifo, a device or a folder.
    """
    try:
        fd = os.open(path_abs, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ELOOP):  # a fifo to write to; a link, with O_NOFOLLOW
            raise _not_regular(path_abs) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _not_regular(path_abs)
    return fd


def open_state(path_abs: str, flags: int, mode: int = 0o600) -> int:
    """Open a file of our state folders: nothing is read or written through a link.

    Raises: OSError, also where it is no regular file.
    """
    return open_regular(path_abs, flags | os.O_NOFOLLOW, mode)


def _not_regular(path_abs: str) -> OSError:
    return OSError(errno.EINVAL, "is no regular file", path_abs)
