"""The host's transcript of a conversation: how long it is, and what was added to it.

Its format is the host's own, so that it is only ever searched, as bytes.
"""

from __future__ import annotations

import os
import stat

from gitgates.store.files import open_regular

_MOST = 64 * 1024 * 1024


def length_of(path_abs: str) -> int:
    """Return how many bytes it has; -1 where there is none."""
    try:
        found = os.stat(path_abs)
    except (OSError, ValueError):
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def read_tail(path_abs: str, since: int, most: int = _MOST) -> bytes | None:
    """Return what was added after the first `since` bytes; None where there is no transcript."""
    if length_of(path_abs) < 0:
        return None
    try:
        fd = open_regular(path_abs, os.O_RDONLY)
    except OSError:
        return None
    try:
        os.lseek(fd, max(since, 0), os.SEEK_SET)
        return os.read(fd, most)
    except OSError:
        return None
    finally:
        os.close(fd)
