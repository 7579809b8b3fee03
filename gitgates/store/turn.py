"""The right to work on something: a lock that ends with its holder, and a heartbeat.

A holder without a heartbeat for long (stopped, or on a machine that is off) loses it.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import StateError
from gitgates.store.files import lock_file, make_folder, remove_file

_BEAT_S = 1.0
_STALE_S = 120.0


class WorkTurn:
    """The right, until `release`. What it protects must tolerate two holders for a moment."""

    def __init__(self, path_abs: str) -> None:
        self._path_abs, self._fd, self._beaten_s = path_abs, -1, 0.0

    def take(self) -> bool:
        """Take it if nobody has it, or its holder has no heartbeat. Raises: StateError."""
        try:
            make_folder(os.path.dirname(self._path_abs))
            self._fd = lock_file(self._path_abs)
            if self._fd < 0 and time.time() - os.stat(self._path_abs).st_mtime > _STALE_S:
                remove_file(self._path_abs)  # a lock on a file without a name blocks nobody
                self._fd = lock_file(self._path_abs)
        except FileNotFoundError:
            return False  # somebody else has removed it
        except OSError as error:
            why = f"{self._path_abs}: cannot be locked: {error.strerror}"
            raise StateError(why) from error
        if self._fd >= 0:
            self.beat()
        return self._fd >= 0

    def beat(self) -> None:
        """Show that the holder is alive."""
        now = time.monotonic()
        if self._fd >= 0 and now - self._beaten_s > _BEAT_S:
            self._beaten_s = now
            os.utime(self._fd)

    @property
    def is_ours(self) -> bool:
        """Whether we still have it."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path_abs))
        except OSError:
            return False

    def release(self) -> None:
        """Give it up."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
