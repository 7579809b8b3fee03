"""The lock on a worktree: many runs may look at its files at once, one may move them.

The kernel frees it when its holder is gone, however that came about. What the file says is only for
people.
"""

from __future__ import annotations

import fcntl
import os
import time

from gitgates.errors import LockError
from gitgates.record import Record
from gitgates.store.files import open_state

WAIT_S = 60.0
_LOOK_AGAIN_S = 0.05
_PATIENCE_S = 1.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Wait(Record):
    """How to wait for somebody else."""

    longest_s: float
    say: Callable[[str], None]  # hears once who is in the way
    look: Callable[[], None] = lambda: None  # called again and again; may raise


class Lock:
    """A lock that is held until `release`, or until this process is gone."""

    def __init__(self, state_abs: str) -> None:
        self._path_abs = f"{state_abs}/lock"
        self._fd = -1

    def acquire(self, wait: Wait, *, alone: bool) -> bool:
        """Take the lock; tell whether that was possible within the time.

        `alone`: nobody else may hold it; otherwise others may, too. One that is held already is
        taken the other way. Raises: OSError where there can be no such file; what `wait.look`
        raises.
        """
        self._open()
        mode = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        began = time.monotonic()
        said = False
        while True:
            try:
                fcntl.flock(self._fd, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited >= wait.longest_s:
                    return False
                wait.look()
                if waited >= _PATIENCE_S and not said:
                    said = True
                    wait.say(f"waiting for {self.holder()}")
                time.sleep(_LOOK_AGAIN_S)
            else:
                self._sign()
                return True

    def holder(self) -> str:
        """Return who took the lock last, for people."""
        try:
            with open(
                self._path_abs, encoding="utf-8", errors="replace", opener=open_state
            ) as file:
                return file.read().strip() or "another gitgates run"
        except OSError:
            return "another gitgates run"

    def busy_error(self) -> LockError:
        """Return the error that says who is in the way."""
        return LockError(
            f"the working tree is in use by {self.holder()}",
            "Wait for it to end, or end it; the lock is free as soon as it is gone.",
        )

    def release(self) -> None:
        """Give the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        if self._fd < 0:
            os.makedirs(os.path.dirname(self._path_abs), mode=0o700, exist_ok=True)
            self._fd = open_state(self._path_abs, os.O_RDWR | os.O_CREAT)

    def _sign(self) -> None:
        text = f"gitgates (process {os.getpid()}) since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
        os.pwrite(self._fd, text.encode(), 0)
        os.ftruncate(self._fd, len(text))
