"""Numbered folders, each used by one run at a time and kept for the next.

Beside the folder N are N.lock (held by the run that uses it), N.index (git's index of its files),
N.state (what is in it; missing while that changes, which reveals a killed run), N.log (what was
installed there), N.mark (in the environment of every process started there) and, if other machines
count, N.content (digests of its files).
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import LockError, StateError
from gitgates.core.record import Record
from gitgates.store.files import (
    is_regular,
    lock_file,
    make_folder,
    read_cached,
    read_state,
    remove_file,
    remove_tree,
    replace_cached,
    replace_file,
)

KEPT_FREE = 4
KEPT_S = 14 * 24 * 3600.0
KEPT_BYTES = 20 << 30  # in total; the first one stays, whatever its size
_MOST = 64


def content_file(folder_abs: str) -> str:
    """Return the file with the digests of a folder's files."""
    return f"{folder_abs}.content"


class Slot:
    """One numbered folder, leased by this process until `release`."""

    def __init__(self, base_abs: str, lock_fd: int) -> None:
        self.folder_abs = base_abs
        self.index_abs = f"{base_abs}.index"
        self.log_abs = f"{base_abs}.log"
        self._state_abs = f"{base_abs}.state"
        self._mark_abs = f"{base_abs}.mark"
        self._fd = lock_fd

    def state(self) -> tuple[object, ...] | None:
        """Return the recorded state of its content; None if unknown."""
        if not is_regular(self.index_abs):
            return None
        state = read_cached(self._state_abs)
        return state if isinstance(state, tuple) else None

    def begin(self) -> None:
        """Mark its content as changing."""
        remove_file(self._state_abs)

    def end(self, *state: object) -> None:
        """Record the state of its content."""
        replace_cached(self._state_abs, state, sync=False)

    def empty(self) -> None:
        """Remove everything in it.

        Raises: StateError if that is not possible.
        """
        self.begin()
        try:
            remove_file(self.index_abs)
            remove_file(f"{self.index_abs}.lock")  # left by a killed git
            remove_file(content_file(self.folder_abs))
            remove_file(self.log_abs)
            if os.path.lexists(self.folder_abs):
                remove_tree(self.folder_abs)
        except OSError as error:
            raise StateError(
                f"{self.folder_abs}: cannot be emptied: {error.strerror}",
                f"Remove it with: rm -rf '{self.folder_abs}'",
            ) from error

    def mark(self) -> str:
        """Return a mark for processes started in it; the mark is kept until `release`."""
        text = f"{os.getpid()}.{time.time_ns()}"
        replace_file(self._mark_abs, text.encode(), sync=False)
        return text

    def left_mark(self) -> str:
        """Return the mark that a killed run left; empty if there is none."""
        return os.fsdecode(read_state(self._mark_abs) or b"")

    def release(self) -> None:
        """Release the lease."""
        if self._fd >= 0:
            remove_file(self._mark_abs)
            os.close(self._fd)
            self._fd = -1


def take_slot(folder_abs: str) -> Slot:
    """Lease the first unused folder.

    Raises: StateError if nothing can be written; LockError if far too many are in use.
    """
    try:
        make_folder(folder_abs)
        for number in range(1, _MOST + 1):
            if _is_others(folder_abs, number):
                continue
            if (lock_fd := lock_file(f"{folder_abs}/{number}.lock")) >= 0:
                os.utime(lock_fd)  # used now
                return Slot(f"{folder_abs}/{number}", lock_fd)
    except OSError as error:
        raise StateError(f"{folder_abs}: cannot be written: {error.strerror}") from error
    raise LockError(
        f"{folder_abs}: {_MOST} private checkouts are in use at once",
        "Wait for the other gitgates runs to finish, or stop them.",
    )


def _is_others(folder_abs: str, number: int) -> bool:
    """Return whether another user of a shared repository made this folder or its lock."""
    for path_abs in (f"{folder_abs}/{number}", f"{folder_abs}/{number}.lock"):
        try:
            if os.lstat(path_abs).st_uid != os.geteuid():
                return True
        except FileNotFoundError:
            continue
    return False


def prune_slots(folder_abs: str, kept: int = KEPT_FREE) -> int:
    """Remove unused folders if they are too many, too large or too old; return how many.

    `kept`: how many may stay. Only folders to remove are locked, because a run that finds one
    locked takes another one. What cannot be removed stays.
    """
    removed = total = 0
    for count, each in enumerate(kept_slots(folder_abs), 1):
        total += each.size_bytes
        is_large = count > 1 and total > KEPT_BYTES
        if count <= kept and not is_large and each.age_s <= KEPT_S:
            continue
        lock_abs = f"{each.folder_abs}.lock"
        try:
            lock_fd = lock_file(lock_abs, flags=os.O_RDWR)
        except OSError:
            continue
        if lock_fd < 0:
            continue
        slot = Slot(each.folder_abs, lock_fd)
        try:
            slot.empty()
            os.unlink(lock_abs)
            removed += 1
        except (OSError, StateError):
            continue
        finally:
            slot.release()
    return removed


class KeptSlot(Record):
    """An existing folder."""

    folder_abs: str
    size_bytes: int  # as recorded
    age_s: float  # since it was last used


def kept_slots(folder_abs: str) -> list[KeptSlot]:
    """Return the existing folders."""
    slots = []
    for number in range(1, _MOST + 1):
        base_abs = f"{folder_abs}/{number}"
        try:
            used = os.stat(f"{base_abs}.lock").st_mtime
        except OSError:
            continue
        state = read_cached(f"{base_abs}.state")
        size = state[-1] if isinstance(state, tuple) and isinstance(state[-1], int) else 0
        slots.append(KeptSlot(base_abs, size, max(time.time() - used, 0.0)))
    return slots
