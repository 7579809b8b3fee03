"""The lock that lets a gate that writes run alone in its worktree, beside gates of other runs, too.

Each run holds it while a gate of it runs: alone for a gate that writes, together with others for
any other gate. It is a flock, which the kernel frees when its holder is gone.
"""

from __future__ import annotations

import os
import time

from gitgates.store.files import lock_file


class FixerLock:
    """The lock, as one run sees it."""

    def __init__(self, state_abs: str) -> None:
        self._path_abs = f"{state_abs}/fixers"
        self._fd = -1
        self._waits_since = 0.0  # by the monotonic clock; 0: not at all

    def take(self, *, alone: bool, most_s: float) -> bool:
        """Take the lock, unless a gate of this run has it; return whether a gate may start.

        Also after `most_s`, without the lock: its holder may be stopped.
        """
        if self._fd >= 0:
            return True
        try:
            self._fd = lock_file(self._path_abs, shared=not alone)
        except OSError:
            return True  # where no lock can be, others have none either
        now = time.monotonic()
        if self._fd >= 0:
            self._waits_since = 0.0
            return True
        self._waits_since = self._waits_since or now
        return now - self._waits_since > most_s

    def release(self) -> None:
        """Release the lock: no gate of this run runs."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
