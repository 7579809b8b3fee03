"""One pool of job slots for the machine: all runs of a user share it.

A slot is a numbered file, locked by whoever runs a gate, and free when its holder is gone. Runs
that wait have a ticket each, a locked file whose name says whose turn it is: people's git hooks
first, then in the order of their arrival.
"""

from __future__ import annotations

import os
import time

from gitgates.store.files import lock_file, make_folder, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "GITGATES_POOL"


class Pool:
    """The slots, as one run sees them."""

    def __init__(self, folder_abs: str, size: int, *, is_urgent: bool) -> None:
        self._folder_abs, self._queue_abs = folder_abs, f"{folder_abs}/queue"
        self._size, self._is_urgent = size, is_urgent
        self._ticket, self._ticket_fd = "", -1
        self._spare: list[int] = []  # slots of gates that have ended

    def take(self, count: int) -> list[int] | None:
        """Lock as many slots; return their descriptors, or None where the run has to wait.

        Raises: OSError where the folder cannot be written.
        """
        waiting = os.listdir(self._queue_abs)
        if len(self._spare) == count and not waiting:
            fds, self._spare = self._spare, []
            return fds
        release(self._spare)
        if waiting and not self._is_first(waiting):
            self._wait()
            return None
        fds = []
        for number in range(self._size):
            if len(fds) < count and (fd := lock_file(f"{self._folder_abs}/{number}")) >= 0:
                fds.append(fd)
        if len(fds) < min(count, self._size):
            release(fds)
            self._wait()
            return None
        self._leave_queue()
        return fds

    def give_back(self, fds: list[int]) -> None:
        """Return the slots of a gate. They are kept for the next one, if nobody waits for them."""
        release(self._spare)
        self._spare = fds

    def close(self) -> None:
        """Unlock what is kept, and give up the place in the queue."""
        release(self._spare)
        self._leave_queue()

    def _leave_queue(self) -> None:
        if self._ticket_fd >= 0:
            remove_file(f"{self._queue_abs}/{self._ticket}")
            os.close(self._ticket_fd)
            self._ticket, self._ticket_fd = "", -1

    def _is_first(self, waiting: list[str]) -> bool:
        """Return whether no living run waits that is to go before this one."""
        own = self._ticket or self._new_ticket()
        for name in sorted(waiting):
            if name >= own:
                break
            fd = lock_file(f"{self._queue_abs}/{name}", flags=os.O_RDWR)
            if fd < 0 and os.path.exists(f"{self._queue_abs}/{name}"):
                return False
            if fd >= 0:  # its holder is gone
                remove_file(f"{self._queue_abs}/{name}")
                os.close(fd)
        return True

    def _wait(self) -> None:
        if self._ticket_fd < 0:
            self._ticket = self._new_ticket()
            self._ticket_fd = lock_file(f"{self._queue_abs}/{self._ticket}")

    def _new_ticket(self) -> str:
        return f"{0 if self._is_urgent else 1}-{time.monotonic_ns():020}-{os.getpid()}"


def open_pool(env: Mapping[str, str], size: int, *, is_urgent: bool) -> Pool | None:
    """Return the pool; None where there can be none, or it is switched off."""
    named = env.get(VARIABLE, "")
    if named == "0":
        return None
    folder_abs = named or f"/tmp/gitgates-{os.geteuid()}"  # noqa: S108 - whose it is, is looked at
    try:
        if not os.path.isdir(f"{folder_abs}/queue"):
            make_folder(f"{folder_abs}/queue")
        status = os.lstat(folder_abs)
    except OSError:
        return None
    is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return Pool(folder_abs, size, is_urgent=is_urgent) if is_own else None


def release(fds: list[int]) -> None:
    """Unlock slots, or other locked files."""
    while fds:
        os.close(fds.pop())
