"""One pool of job slots for the machine: all runs of a user share it.

A slot is a numbered file, locked by whoever runs a gate, and free when its holder is gone. Runs
that wait have a ticket each, a FIFO whose name says whose turn it is: people's git hooks first,
then in the order of their arrival. Whoever releases a slot writes to the first one.

A stopped process (SIGSTOP) keeps its locks. So a slot file's time is the latest end of its gate,
and a ticket's access time is when its holder last looked: writing to a FIFO changes its other
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
# Whoever is killed wakes nobody, so each looks now and then, and less often further behind.
_POLL_S = 0.5
_LONGEST_POLL_S = 2.0
_AT_ONCE_S = 0.001  # a slot may have been released while the ticket was made
_STOPPED_S = 10.0  # after which whoever has not looked is passed over
_GRACE_S = 30.0  # of a gate that had to be over
_MOST_LOOKED_AT = 64  # slots, for how long they may still be held


class Use(Record):
    """What a slot is for, as its file says."""

    gate: str
    state_abs: str  # where it is recorded how long gates took

    def took_s(self) -> float | None:
        """Return how long the gate took before; None if that is not known."""
        from gitgates.store.proofs import durations  # only whoever waits asks

        return durations(self.state_abs).get(self.gate)


class Pool:
    """The slots, as one run sees them."""

    def __init__(self, folder_abs: str, size: int, *, is_urgent: bool) -> None:
        self._folder_abs, self._queue_abs = folder_abs, f"{folder_abs}/queue"
        self._size, self._is_urgent = size, is_urgent
        self._ticket, self.ticket_fd = "", -1  # readable when it makes sense to ask again
        self._spare: list[int] = []  # slots of gates that have ended
        self.poll_s = _POLL_S  # after which to ask again in any case
        self._stopped_abs: list[str] = []  # slots that are not waited for any more
        self.use = Use("", "")  # of the slots that are taken next
        self.since_ns = 0  # that it has waited, by the monotonic clock; 0: now

    def take(self, count: int, most: int = 0, for_s: float = 0.0) -> list[int] | None:
        """Lock `count` slots, at most all, or if nobody else waits up to `most`.

        Return their descriptors, or None if the run must wait. `for_s` is how long a gate may
        hold them.

        Raises: OSError if the folder cannot be written.
        """
        waiting = os.listdir(self._queue_abs)
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
        text = os.fsencode(f"{now_s}\n{self.use.gate}\n{self.use.state_abs}\n")
        for fd in fds:
            os.pwrite(fd, text, 0)  # what is behind it is of an earlier one
            os.utime(fd, (now_s + for_s, now_s + for_s))
        return fds

    def queue(self) -> tuple[int, float | None]:
        """Return this run's place among those that wait, and how long it may have to wait.

        None: that is not known.
        """
        try:
            before = sorted(name for name in os.listdir(self._queue_abs) if name < self._ticket)
        except OSError:
            before = []
        slots = range(min(self._size, _MOST_LOOKED_AT))
        left_s = [_left_s(read_or_empty(f"{self._folder_abs}/{number}")) for number in slots]
        times_ms = [int(name.split("-")[3]) for name in before if name.count("-") == 3]  # noqa: PLR2004 - as in _wait
        needs = [time_ms / 1000 or None for time_ms in times_ms]
        return len(before) + 1, when_free(left_s, needs) if len(needs) == len(before) else None

    def give_back(self, fds: list[int]) -> None:
        """Return the slots of a gate. They are kept for the next one, until `settle`."""
        self._spare += fds

    def take_stopped(self) -> list[str]:
        """Return which slots are in use beyond their time, if that let the last call go on."""
        stopped_abs, self._stopped_abs = self._stopped_abs, []
        return stopped_abs

    def settle(self) -> None:
        """Unlock what is kept: no gate needs it now."""
        if self._spare:
            release(self._spare)
            self._wake()

    def close(self) -> None:
        """Unlock what is kept, and give up the place in the queue."""
        self.settle()
        if self._ticket:
            self._leave_queue()
            self._wake()

    def _lock(self, numbers: range, fds: list[int], count: int) -> None:
        for number in numbers:
            if len(fds) >= count:
                return  # there may be a billion
            if (fd := lock_file(f"{self._folder_abs}/{number}")) >= 0:
                os.utime(fd)  # no gate of before had to be over: see _stopped
                fds.append(fd)

    def _has_waited_s(self) -> float:
        since_ns = int(self._ticket.split("-")[1]) if self._ticket else time.monotonic_ns()
        return (time.monotonic_ns() - since_ns) / 1e9

    def _stopped(self) -> list[str]:
        """Return the slots whose gates had to be over some time ago."""
        paths_abs = [f"{self._folder_abs}/{number}" for number in range(self._size)]
        return [path for path in paths_abs if _age_s(path) > _GRACE_S]

    def _leave_queue(self) -> None:
        if self._ticket:
            remove_file(f"{self._queue_abs}/{self._ticket}")
            os.close(self.ticket_fd)
            self._ticket, self.ticket_fd = "", -1

    def _is_first(self, waiting: list[str]) -> bool:
        """Return whether no living run waits that must go before this one."""
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
        os.rename(new_abs, f"{self._queue_abs}/{name}")  # where it never is without a holder
        self._ticket, self.ticket_fd = name, fd

    def _wake(self) -> None:
        """Tell the first run that waits to look again."""
        try:
            waiting = os.listdir(self._queue_abs)
        except OSError:
            return  # then nobody waits
        for name in sorted(waiting):
            if name != self._ticket and self._tell(name, b"."):
                return

    def _tell(self, name: str, text: bytes = b"") -> bool:
        """Write to a run that waits; return whether it still does. Remove it if that is gone."""
        ticket_abs = f"{self._queue_abs}/{name}"
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
        return new_ticket(is_urgent=self._is_urgent, since_ns=self.since_ns)


def open_pool(env: Mapping[str, str], size: int, *, is_urgent: bool, name: str = "") -> Pool | None:
    """Return the pool; None if there can be none, or it is switched off.

    With a `name`, that of jobs elsewhere: a folder in the other's.

    Raises: ConfigError as `usable_folder`.
    """
    folder_abs = usable_folder(env, f"{name}/queue" if name else "queue")
    is_usable = bool(folder_abs)
    return Pool(os.path.dirname(folder_abs), size, is_urgent=is_urgent) if is_usable else None


def usable_folder(env: Mapping[str, str], name: str) -> str:
    """Return a folder in the pool's, made if needed; empty if it must not be used.

    Raises: ConfigError where its name is not absolute: each folder would have a pool of its own.
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


def new_ticket(*, is_urgent: bool, since_ns: int = 0) -> str:
    """Return a name that says whose turn it is. `since_ns`: of who has waited before; 0: now."""
    return f"{0 if is_urgent else 1}-{since_ns or time.monotonic_ns():020}-{os.getpid()}"


def is_stopped(path_abs: str) -> bool:
    """Return whether a waiting run's file has not been written for long."""
    return _age_s(path_abs) > _STOPPED_S


def when_free(left_s: Sequence[float | None], before: Sequence[float | None]) -> float | None:
    """Return in how many seconds a run's turn comes; None if that is unknown.

    `left_s`: how long each holder still needs; `before`: how long each run before this one will
    need.
    """
    free = [seconds for seconds in left_s if seconds is not None]
    needs = [seconds for seconds in before if seconds is not None]
    if not free or len(free) < len(left_s) or len(needs) < len(before):
        return None
    for seconds in needs:
        free.sort()
        free[0] += seconds
    return min(free)


def _left_s(text: bytes) -> float | None:
    """Return how long a slot may still be held, by its file; None if unknown."""
    began, _, rest = os.fsdecode(text).partition("\n")
    gate, _, rest = rest.partition("\n")
    took_s = Use(gate, rest.partition("\n")[0]).took_s()
    try:
        return max(took_s - (time.time() - float(began)), 0.0) if took_s else None
    except ValueError:
        return None


def _age_s(path_abs: str) -> float:
    """Return how long ago a file's time passed; endless if it is gone."""
    try:
        return time.time() - os.stat(path_abs).st_mtime
    except OSError:
        return float("inf")


def release(fds: list[int]) -> None:
    """Unlock slots, or other locked files."""
    while fds:
        os.close(fds.pop())
