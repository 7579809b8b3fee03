"""One pool of job slots for the machine: all runs of a user share it.

A slot is a numbered file, locked by the run of a gate, and free when its holder is gone. Each
waiting run has a ticket, a FIFO whose name gives its place: people's git hooks first, then in order
of arrival. Whoever releases a slot writes to the first ticket.

A stopped process (SIGSTOP) keeps its locks. So a slot file's time is the latest possible end of its
gate, and a ticket's access time is when its holder last looked: writing to a FIFO changes its other
times.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.store.files import lock_file, read_or_empty, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLE = "GITGATES_POOL"
# A killed run wakes nobody, so each run looks now and then, less often further back in the queue.
_POLL_S = 0.5
_LONGEST_POLL_S = 2.0
_AT_ONCE_S = 0.001  # a slot may have become free while the ticket was made
_STOPPED_S = 10.0  # a run that has not looked for so long is passed over
_GRACE_S = 30.0  # for a gate that should be over
_MOST_LOOKED_AT = 64  # slots, to estimate when they become free


class Use(Record):
    """What a slot is for, as its file says."""

    gate: str = ""
    state_abs: str = ""  # where it is recorded how long gates took
    root_abs: str = ""  # of the gate's worktree

    def took_s(self) -> float | None:
        """Return how long the gate took before; None if unknown."""
        from gitgates.store.proofs import durations  # only whoever waits asks

        return durations(self.state_abs).get(self.gate)


class Pool:
    """The slots, as one run sees them."""

    def __init__(self, folder_abs: str, size: int, *, is_urgent: bool) -> None:
        self._folder_abs, self.queue_abs = folder_abs, f"{folder_abs}/queue"
        self._size, self._is_urgent = size, is_urgent
        self._ticket, self.ticket_fd = "", -1  # readable when it is worth asking again
        self._spare: list[int] = []  # slots of gates that have ended
        self.poll_s = _POLL_S  # when to ask again in any case
        self._stopped_abs: list[str] = []  # slots that are no longer waited for
        self.use = Use()  # for the next slots
        self.since_ns = 0  # since when it has waited, by the monotonic clock; 0: now

    def take(self, count: int, most: int = 0, for_s: float = 0.0) -> list[int] | None:
        """Lock `count` slots, at most all; if nobody else waits, up to `most`.

        Returns their descriptors, or None if the run must wait. `for_s` is how long a gate may hold
        them.

        Raises: OSError if the folder cannot be written.
        """
        waiting = os.listdir(self.queue_abs)
        self.poll_s = _POLL_S
        others = len(waiting) > (self._ticket in waiting)
        if others and not self._is_first(waiting):
            self._wait()
            self.settle()
            return None
        count = min(count, self._size)
        most = count if others else max(count, most)
        fds, self._spare = self._spare[:most], self._spare[most:]
        self._lock(range(self._size), fds, most)
        if len(fds) < count and self._has_waited_s() > _GRACE_S:
            self._stopped_abs = self._stopped()
            self._lock(range(self._size, self._size + len(self._stopped_abs)), fds, count)
        if len(fds) < count:
            self._stopped_abs = []
            release(fds)
            self._wait()
            return None
        self._leave_queue()
        if others:
            self._wake()  # there may be another free one
        now_s = time.time()
        use = (field.replace("\n", " ") for field in self.use)
        text = os.fsencode("\n".join((str(now_s), *use, "")))
        for fd in fds:
            os.pwrite(fd, text, 0)  # what follows is an earlier gate's
            os.utime(fd, (now_s + for_s, now_s + for_s))
        return fds

    def queue(self) -> tuple[int, float | None, str]:
        """Return this run's place in the queue, how long it may wait, and a slot's last gate.

        None: unknown.
        """
        try:
            before = sorted(name for name in os.listdir(self.queue_abs) if name < self._ticket)
        except OSError:
            before = []
        slots = range(min(self._size, _MOST_LOOKED_AT))
        uses = [_held(read_or_empty(f"{self._folder_abs}/{number}")) for number in slots]
        needs = [int(name.rpartition("-")[2]) / 1000 or None for name in before]  # as in _wait
        return len(before) + 1, when_free([left_s for left_s, _gate in uses], needs), uses[0][1]

    def give_back(self, fds: list[int]) -> None:
        """Give back a gate's slots, which are kept for the next gate until `settle`."""
        self._spare += fds

    def take_stopped(self) -> list[str]:
        """Return the overdue slots, if the last call went on because of them."""
        stopped_abs, self._stopped_abs = self._stopped_abs, []
        return stopped_abs

    def settle(self) -> None:
        """Unlock kept slots, because no gate needs them now."""
        if self._spare:
            release(self._spare)
            self._wake()

    def close(self) -> None:
        """Unlock kept slots, and give up the place in the queue."""
        self.settle()
        if self._ticket:
            self._leave_queue()
            self._wake()

    def _lock(self, numbers: range, fds: list[int], count: int) -> None:
        for number in numbers:
            if len(fds) >= count:
                return  # there may be a billion
            if (fd := lock_file(f"{self._folder_abs}/{number}")) >= 0:
                os.utime(fd)  # so that it is not overdue: see _stopped
                fds.append(fd)

    def _has_waited_s(self) -> float:
        since_ns = int(self._ticket.split("-")[1]) if self._ticket else time.monotonic_ns()
        return (time.monotonic_ns() - since_ns) / 1e9

    def _stopped(self) -> list[str]:
        """Return the slots whose gates should have been over some time ago."""
        paths_abs = [f"{self._folder_abs}/{number}" for number in range(self._size)]
        return [path for path in paths_abs if _age_s(path) > _GRACE_S]

    def _leave_queue(self) -> None:
        if self._ticket:
            remove_file(f"{self.queue_abs}/{self._ticket}")
            os.close(self.ticket_fd)
            self._ticket, self.ticket_fd = "", -1

    def _is_first(self, waiting: list[str]) -> bool:
        """Return whether no waiting run must go before this one."""
        own = self._ticket or self._new_ticket()
        before = sorted(name for name in waiting if name < own)
        self.poll_s = min(_POLL_S * (len(before) + 1), _LONGEST_POLL_S)
        return not any(map(self._tell, before))

    def _wait(self) -> None:
        if self._ticket:
            os.utime(self.ticket_fd)
            return
        self.poll_s = _AT_ONCE_S
        name = f"{self._new_ticket()}-{int((self.use.took_s() or 0.0) * 1000)}"
        new_abs = f"{self._folder_abs}/{name}"
        os.mkfifo(new_abs, 0o600)
        fd = os.open(new_abs, os.O_RDWR | os.O_NONBLOCK)
        os.rename(new_abs, f"{self.queue_abs}/{name}")  # in the queue, it always has a holder
        self._ticket, self.ticket_fd = name, fd

    def _wake(self) -> None:
        """Tell the first waiting run to look again."""
        try:
            waiting = os.listdir(self.queue_abs)
        except OSError:
            return  # then nobody waits
        for name in sorted(waiting):
            if name != self._ticket and self._tell(name, b"."):
                return

    def _tell(self, name: str, text: bytes = b"") -> bool:
        """Write to a waiting run; return whether it still waits. Remove a dead run's ticket."""
        ticket_abs = f"{self.queue_abs}/{name}"
        try:
            fd = os.open(ticket_abs, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it
            remove_file(ticket_abs)
            return False
        try:
            os.write(fd, text)
            return time.time() - os.fstat(fd).st_atime < _STOPPED_S
        except BlockingIOError:  # it has not read for long
            return False
        finally:
            os.close(fd)

    def _new_ticket(self) -> str:
        since_ns = self.since_ns or time.monotonic_ns()
        return f"{0 if self._is_urgent else 1}-{since_ns:020}-{os.getpid()}"


def open_pool(env: Mapping[str, str], size: int, *, is_urgent: bool, name: str = "") -> Pool | None:
    """Return the pool; None if it is impossible, or switched off.

    With a `name`, return the pool for jobs elsewhere, which is a folder in this one's.

    Raises: ConfigError as `usable_folder`.
    """
    folder_abs = usable_folder(env, f"{name}/queue" if name else "queue")
    is_usable = bool(folder_abs)
    return Pool(os.path.dirname(folder_abs), size, is_urgent=is_urgent) if is_usable else None


def usable_folder(env: Mapping[str, str], name: str) -> str:
    """Return a folder in the pool's, made if needed; empty if it must not be used.

    Raises: ConfigError if its path is not absolute: each folder would have its own pool.
    """
    named = env.get(VARIABLE, "")
    if named == "0":
        return ""
    if named and not named.startswith("/"):
        message = f"{VARIABLE}: got {named!r}, expected an absolute path, or 0"
        raise ConfigError(message, f"Set it to the full path, or unset it: unset {VARIABLE}")
    top_abs = pool_folder(env)
    folder_abs = f"{top_abs}/{name}"
    try:
        if not os.path.isdir(folder_abs):
            for path_abs in (top_abs, os.path.dirname(folder_abs), folder_abs):
                os.makedirs(path_abs, 0o700, exist_ok=True)  # for its user alone
        status = os.lstat(top_abs)
    except OSError:
        return ""
    is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return folder_abs if is_own else ""


def pool_folder(env: Mapping[str, str]) -> str:
    """Return the pool's folder; its owner must be checked."""
    return env.get(VARIABLE, "") or f"/tmp/gitgates-{os.geteuid()}"  # noqa: S108 - as it says


def when_free(left_s: Sequence[float | None], before: Sequence[float | None]) -> float | None:
    """Return in how many seconds a run's turn comes; None if unknown.

    `left_s`: how long each holder still needs; `before`: how long each run before this one will
    need.
    """
    free = [seconds for seconds in left_s if seconds is not None]
    for seconds in before if len(free) == len(left_s) else (None,):
        if seconds is None:
            return None
        free.sort()
        free[0] += seconds
    return min(free)


def _held(text: bytes) -> tuple[float | None, str]:
    """Return how long a slot may still be held, and by which gate, by the slot's file."""
    began, gate, state_abs, root_abs, *_ = *os.fsdecode(text).split("\n"), "", "", ""
    took_s = Use(gate, state_abs).took_s()
    try:
        left_s = max(took_s - (time.time() - float(began)), 0.0) if took_s else None
    except ValueError:
        left_s = None
    return left_s, f"`{gate}` in {root_abs}" if root_abs else ""


def _age_s(path_abs: str) -> float:
    """Return how long ago a file's time was; infinite if the file is gone."""
    try:
        return time.time() - os.stat(path_abs).st_mtime
    except OSError:
        return float("inf")


def release(fds: list[int]) -> None:
    """Unlock slots, or other locked files."""
    while fds:
        os.close(fds.pop())
