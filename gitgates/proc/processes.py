"""Run the processes of gates: process groups, timeouts, captured output, signals.

One loop polls all processes of a run, without threads or `subprocess`. Statuses are only facts
here; other modules decide what they mean. `_signal` is the built-in part of `signal`, without the
enums, whose import takes longer than starting a gate.
"""

from __future__ import annotations

import os
import select
import time

from gitgates.core.types import Ending
from gitgates.proc.call import describe_start_error, spawn
from gitgates.store.files import make_folder, open_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from types import FrameType, TracebackType

    from gitgates.core.types import Command
    from gitgates.proc.shared_cpu import SharedCpu
else:
    import _signal

ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := int(getattr(_signal, name, 0)))
)
_WATCHED = (*ENDING, int(_signal.SIGCHLD))

GRACE_S = 2.0  # how long a group may take to end when asked
SETTLE_S = 0.2  # of that, before it is asked: `> >(tee log)` outlives its shell by a moment
_DRAIN_S = 0.2  # after a KILL
_LINGER_S = 0.02  # descendants send us no SIGCHLD, so look again
_TICK_S = 0.1  # for the live display
_FOREVER_S = 1e9
_PARENT_S = 0.25  # how often to check that our parent is still there


class Child:
    """One running process and its state."""

    def __init__(
        self, pid: int, fd: int, timeout_s: float, capture: Capture, *, strace: str = ""
    ) -> None:
        self.pid = pid
        self.fd = fd  # the read end of its output; -1 when closed
        self.capture = capture
        self.strace = strace  # where strace writes what it sees; empty: not observed
        self.shared_cpu: SharedCpu | None = None  # of an observed command
        self.left_since = 0.0  # since when strace waits for processes that it left running
        self.next_look = 0.0
        self.phase = "running"  # running, settling, terminating, killing, over
        self.deadline = time.monotonic() + timeout_s  # the end of this phase
        self.wait_status: int | None = None
        self.timed_out = False
        self.ended_by_us = False

    @property
    def is_gone(self) -> bool:
        """Whether the process itself has ended; its descendants may still run."""
        return self.wait_status is not None

    def enter(self, phase: str, for_s: float) -> None:
        """Enter the next phase, which lasts at most `for_s`."""
        self.phase = phase
        self.deadline = time.monotonic() + for_s

    def reap(self) -> None:
        """Reap the process if it has ended."""
        if self.wait_status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.wait_status = status

    def ending(self) -> Ending:
        """Return how it ended."""
        # If it was not reaped even after a KILL, it hangs in the kernel.
        code = -9 if self.wait_status is None else os.waitstatus_to_exitcode(self.wait_status)
        return Ending(
            exit_status=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=self.timed_out,
            ended_by_us=self.ended_by_us,
        )


class Group:
    """Processes that one loop waits for. A context manager."""

    def __init__(self, signals: SignalPipe, on_tick: Callable[[], None] | None = None) -> None:
        self._signals = signals
        self._parent = os.getppid()
        self._children: list[Child] = []
        self._on_tick = on_tick
        self._poll = select.poll()

    def __enter__(self) -> Group:
        self._poll.register(self._signals.fd, select.POLLIN)
        return self

    def __exit__(self, *exc: object) -> None:
        self.end_all()
        while self._children:
            self.wait()

    def start(
        self, command: Command, timeout_s: float, capture: Capture, *, strace: str = ""
    ) -> Child | str:
        """Start a process. Return it, or why it could not be started. `strace`: see Child."""
        try:
            read_fd, write_fd = os.pipe()
        except OSError as error:
            return describe_start_error(command, error)
        try:
            if strace:
                from gitgates.proc.shared_cpu import spawn_observed  # few gates are observed

                pid, shared_cpu = spawn_observed(command, write_fd)
            else:
                pid, shared_cpu = spawn(command, write_fd), None
        except OSError as error:
            os.close(read_fd)
            return describe_start_error(command, error)
        finally:
            os.close(write_fd)
        os.set_blocking(read_fd, False)
        child = Child(pid, read_fd, timeout_s, capture, strace=strace)
        child.shared_cpu = shared_cpu
        self._children.append(child)
        self._poll.register(read_fd, select.POLLIN)
        return child

    def end_all(self) -> None:
        """Terminate every process; `wait` kills those that do not end."""
        for child in self._children:
            self.end(child)

    def end(self, child: Child) -> None:
        """Terminate one process; as above."""
        if child.phase in ("running", "settling"):
            child.ended_by_us = not child.is_gone
            self._terminate(child)

    def wait(self, most_s: float = 0.0, wake_fds: tuple[int, ...] = ()) -> Child | None:
        """Wait until one process and its descendants are gone; return it (None: none left).

        With `most_s`, return None after that time, or when one of `wake_fds` can be read, even if
        there are no processes.
        """
        until = time.monotonic() + (most_s or _FOREVER_S)
        while self._children or most_s:
            for child in self._children:
                self._advance(child)
                if child.phase == "over":
                    self._children.remove(child)
                    return child
            if time.monotonic() >= until:
                return None
            if self._poll_once(until, wake_fds):
                return None
        return None

    def _most_s(self, until: float) -> float:
        """Return how long nothing needs to be looked at."""
        ends = [child.deadline for child in self._children]
        ends += [child.shared_cpu.next_look for child in self._children if child.shared_cpu]
        nearest = min(min([*ends, until]) - time.monotonic(), _PARENT_S)
        if any(child.is_gone for child in self._children):
            nearest = min(nearest, _LINGER_S)
        if self._on_tick:
            nearest = min(nearest, _TICK_S)
        return max(0.0, nearest)

    def _poll_once(self, until: float, wake_fds: tuple[int, ...]) -> bool:
        """Wait for output, ends, signals or deadlines; return whether a wake-up can be read."""
        is_awake = False
        for wake_fd in wake_fds:
            self._poll.register(wake_fd, select.POLLIN)
        for fd, _events in self._poll.poll(self._most_s(until) * 1000 + 1):
            if fd == self._signals.fd:
                self.handle_signals()
            elif fd in wake_fds:
                is_awake = bool(os.read(fd, 4096))
            else:
                self._read(next(child for child in self._children if child.fd == fd))
        for wake_fd in wake_fds:
            self._poll.unregister(wake_fd)
        if self._on_tick:
            self._on_tick()
        if os.getppid() != self._parent:
            # Our parent is gone, and nobody waits for our answer: act as if told to end.
            self._parent = os.getppid()
            self._signals.received.append(int(_signal.SIGHUP))
            self.end_all()
        return is_awake

    def handle_signals(self) -> int:
        """Act on signals received since the last call; return the first of all, or 0."""
        before = len(self._signals.received)
        self._signals.drain()
        if len(self._signals.received) > before == 0:
            self.end_all()
        if len(self._signals.received) > max(before, 1):
            for child in self._children:  # a second signal: no more grace
                child.deadline = min(child.deadline, time.monotonic())
        return self._signals.received[0] if self._signals.received else 0

    def _read(self, child: Child) -> bool:
        """Read available output; return whether there was any."""
        try:
            data = os.read(child.fd, 65536)
        except BlockingIOError:
            return False
        if data:
            child.capture.feed(data)
        else:
            self._close(child)
        return bool(data)

    def _close(self, child: Child) -> None:
        if child.fd >= 0:
            self._poll.unregister(child.fd)
            os.close(child.fd)
            child.fd = -1

    def _advance(self, child: Child) -> None:
        """Advance the state of one process: its end, its descendants, its deadlines."""
        child.reap()
        if child.is_gone and not group_lives(child.pid):
            self._finish(child)  # if its pipe is still open, a process outside the group holds it
            return
        late = time.monotonic() >= child.deadline
        match child.phase:
            case "running" if child.strace and not (child.is_gone or late):
                _end_left(child)
                if child.shared_cpu:
                    child.shared_cpu.adjust(child.pid)
            case "running" if child.is_gone:
                child.enter("settling", SETTLE_S)
            case "running" if late:
                child.timed_out = True
                self._terminate(child)
            case "settling" if late:
                self._terminate(child)
            case "terminating" if late:
                _signal_group(child.pid, _signal.SIGKILL)
                child.enter("killing", _DRAIN_S)
            case "killing" if late:
                self._finish(child)
            case _:
                pass

    def _terminate(self, child: Child) -> None:
        _signal_group(child.pid, _signal.SIGTERM)
        child.enter("terminating", GRACE_S - (SETTLE_S if child.is_gone else 0))

    def _finish(self, child: Child) -> None:
        while child.fd >= 0 and self._read(child):
            pass
        self._close(child)
        child.capture.close()
        child.phase = "over"


def _end_left(child: Child) -> None:
    """End what an observed process left running, because strace would wait for it."""
    now = time.monotonic()
    if now < child.next_look:
        return
    from gitgates.proc.traced import command_has_ended, end_left  # few gates are observed

    child.next_look = now + _PARENT_S
    if not command_has_ended(child.pid):
        child.left_since = 0.0
    elif not child.left_since:
        child.left_since = now
    else:
        is_late = now - child.left_since > GRACE_S
        end_left(child.pid, _signal.SIGKILL if is_late else _signal.SIGTERM)


def group_lives(pid: int) -> bool:
    """Return whether a process that is gone has a group member that still runs."""
    try:
        os.killpg(pid, 0)
    except OSError:  # no member, or none that we may signal
        return False
    return not _only_zombies(pid)


def _only_zombies(group: int) -> bool:
    """Return whether a group has only zombies, as happens if PID 1 is not a real init.

    Source: proc(5), /proc/PID/stat: pid (comm) state ppid pgrp. Always False without /proc.
    """
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                state, _parent, of_group = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in (b"Z", b"X"):
            return False
    return bool(pids)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


class Capture:
    """Takes output as it comes; keeps at most `limit` bytes in memory, and `log_limit` in the log.

    The log file is created with the first byte, so a silent gate leaves no file. If it cannot be
    written (a full disk), the gate goes on and `log_abs` is empty.
    """

    def __init__(
        self,
        limit: int,
        log_abs: str = "",
        log_limit: int = 16 << 20,
        before_log: Callable[[], object] = lambda: None,  # called before the log file is made
    ) -> None:
        self.log_abs = log_abs
        self._before_log = before_log
        self._log_fd = -1
        self._log_limit = max(log_limit, 1)
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self.log_abs and self._total < self._log_limit:
            self._write_log(data[: self._log_limit - self._total], self._total)
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def replace(self, output: bytes) -> None:
        """Replace all output so far, when the process has ended."""
        self._head.clear()
        self._tail.clear()
        self._total = 0
        self.feed(output)

    def take(self, part: Capture) -> None:
        """Take the output of another capture, which is closed, and remove its log."""
        try:
            fd = open_state(part.log_abs, os.O_RDONLY)
        except OSError:  # there is none
            self.feed(part.captured()[0])
            return
        while data := os.read(fd, 65536):
            self.feed(data)
        os.close(fd)
        remove_file(part.log_abs)

    def close(self) -> None:
        """Close the log file; a full log ends with the end of the output."""
        if self._log_fd >= 0:
            if self._total > self._log_limit and self.log_abs:
                end = (self._head + self._tail)[-min(self._half, self._log_limit // 2) :]
                at = self._log_limit - len(end)
                self._write_log(_gap(self._total - at - len(end)) + end, at)
            os.close(self._log_fd)
            self._log_fd = -1
        if not self._total:
            self.log_abs = ""

    def captured(self) -> tuple[bytes, int]:
        """Return the kept output with its gap marked, and how many bytes were dropped."""
        tail = bytes(self._tail[-self._half :])
        dropped = self._total - len(self._head) - len(tail)
        return bytes(self._head) + (_gap(dropped) if dropped else b"") + tail, dropped

    def _write_log(self, data: bytes, at: int) -> None:
        try:
            if self._log_fd < 0:
                self._before_log()
                make_folder(os.path.dirname(self.log_abs))
                flags = os.O_RDWR | os.O_CREAT | (0 if at else os.O_TRUNC)
                self._log_fd = open_state(self.log_abs, flags)
            while data:
                written = os.pwrite(self._log_fd, data, at)
                data, at = data[written:], at + written
        except OSError:
            self.log_abs = ""


def _gap(dropped: int) -> bytes:
    return b"\n[... %d bytes left out ...]\n" % dropped


class SignalPipe:
    """While entered, ending signals and SIGCHLD are written to `fd` instead of taking effect.

    One poll waits for output, exits and interruptions. Nothing is raised inside a handler.
    Signals that were ignored when we started stay ignored (`nohup`), except for SIGCHLD.
    """

    def __init__(self) -> None:
        self.fd = -1
        self.received: list[int] = []  # the ending signals, in order
        self._write_fd = -1
        self._before: list[tuple[int, object]] = []
        self._wakeup_before = -1

    def __enter__(self) -> SignalPipe:
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        self._wakeup_before = _signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in _WATCHED:
            if number in ENDING and _signal.getsignal(number) == _signal.SIG_IGN:
                continue
            self._before.append((number, _signal.signal(number, _ignore_signal)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        # Otherwise, a signal that arrives in between would be lost, and a message printed.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _WATCHED)
        for number, handler in self._before:
            _signal.signal(number, handler)  # type: ignore[arg-type]
        _signal.set_wakeup_fd(self._wakeup_before)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        self.drain()
        os.close(self.fd)
        os.close(self._write_fd)

    def drain(self) -> None:
        """Drain the pipe; add ending signals to `received`."""
        try:
            arrived = os.read(self.fd, 512)
        except BlockingIOError:
            return
        self.received += [number for number in arrived if number in ENDING]


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has already written the number to the pipe."""
