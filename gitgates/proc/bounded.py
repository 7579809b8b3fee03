"""Compute a value in a forked child, with a deadline. Cold: for the user's regular expressions.

A backtracking match runs in C as long as it takes, and no signal handler runs during that time, so
only a process can be ended.
"""

from __future__ import annotations

import marshal
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import NoReturn, TypeVar

    _T = TypeVar("_T")
else:
    import _signal

LIMIT_S = 5.0  # for a gate's patterns, on at most a few hundred KB of output
_MOST_FDS = 1024  # if they cannot be listed
_SPARE_S = 1.0  # so that the parent ends it first
_LOOK_S = 0.05  # how often `is_stopped` is asked
_RESET = ("SIGINT", "SIGTERM", "SIGHUP", "SIGCHLD", "SIGPIPE", "SIGALRM")


def compute(
    task: Callable[[], _T], limit_s: float, is_stopped: Callable[[], bool] = lambda: False
) -> _T:
    """Return a function's result, of types that `marshal` takes; other effects are lost.

    Raises: TimeoutError past the limit, or if it is stopped; RuntimeError if it fails.
    """
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if not pid:
        _run(task, write_fd, limit_s)
    os.close(write_fd)
    answer = None
    try:
        answer = _read(read_fd, time.monotonic() + limit_s, is_stopped)
    finally:
        os.close(read_fd)
        if answer is None:
            os.kill(pid, _signal.SIGKILL)
        _pid, status = os.waitpid(pid, 0)
    if answer is None:
        raise TimeoutError
    if status:
        raise RuntimeError(f"a child ended with {os.waitstatus_to_exitcode(status)}")
    result: _T = marshal.loads(answer)  # noqa: S302 - from our own child
    return result


def _read(fd: int, until: float, is_stopped: Callable[[], bool]) -> bytes | None:
    """Read to the end; return None if it does not come in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    parts: list[bytes] = []
    while (left_s := until - time.monotonic()) > 0 and not is_stopped():
        if not poll.poll(min(left_s, _LOOK_S) * 1000 + 1):
            continue
        if not (data := os.read(fd, 1 << 16)):
            return b"".join(parts)
        parts.append(data)
    return None


def _run(task: Callable[[], object], fd: int, limit_s: float) -> NoReturn:
    """Run the task in the child, write the answer, and exit, even if the parent is gone."""
    status = 1
    try:
        _signal.set_wakeup_fd(-1)
        for name in _RESET:
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, limit_s + _SPARE_S)
        _close_all_but(fd)
        answer = marshal.dumps(task())  # type: ignore[arg-type]
        while answer:
            answer = answer[os.write(fd, answer) :]
        status = 0
    finally:
        os._exit(status)


def _close_all_but(fd: int) -> None:
    """Close what was inherited: locks, and pipes that tell others that our parent ended."""
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        fds = list(range(_MOST_FDS))
    for open_fd in fds:
        if open_fd != fd:
            os.closerange(open_fd, open_fd + 1)  # ignores one that is already closed
