"""A deadline for the whole process (SIGALRM), and the start time of the process."""

from __future__ import annotations

import os
import time

from gitgates.proc.call import DeadlineExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal

_AT_ONCE_S = 0.001  # zero would mean never
_HANDLED = (_signal.SIGALRM, _signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)
_STARTED = 19  # the place of `starttime`, after the name. Source: proc(5), /proc/PID/stat
_IMPORTS_S = 0.05  # without /proc: roughly how long ago the process began


def set_alarm(after_s: float) -> None:
    """Raise `DeadlineExceeded` in the main thread after a time, wherever it is."""
    _signal.signal(_signal.SIGALRM, _on_alarm)
    _signal.setitimer(_signal.ITIMER_REAL, max(after_s, _AT_ONCE_S))


def stop_alarm() -> None:
    """Cancel the alarm."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)


class _Hold:
    """Whether an alarm must wait, and whether one is waiting."""

    is_on = False
    is_due = False


def hold_signals() -> set[int]:
    """Hold back signals with Python handlers; return the mask for `release_signals`."""
    old_mask: set[int] = _signal.pthread_sigmask(_signal.SIG_BLOCK, _HANDLED)
    _Hold.is_on = True  # the mask applies only to this thread
    return old_mask


def release_signals(old_mask: set[int]) -> None:
    """Let waiting signals arrive.

    Raises: DeadlineExceeded if the alarm was among them.
    """
    _Hold.is_on = False
    _signal.pthread_sigmask(_signal.SIG_SETMASK, old_mask)
    if _Hold.is_due:
        _Hold.is_due = False
        raise DeadlineExceeded


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    if not _Hold.is_on:
        raise DeadlineExceeded
    _Hold.is_due = True


def process_start_time() -> float:
    """Return the time at which this process began, in seconds since the epoch.

    The result is never too early, and at most about one tick (10 ms) too late: an event that ended
    before must not seem to have been in progress.
    """
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            ticks = int(file.read().rpartition(b")")[2].split()[_STARTED])
        # The kernel rounds down to whole ticks.
        began = (ticks + 1) / os.sysconf("SC_CLK_TCK")
        up_for = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time() - _IMPORTS_S
    return time.time() - max(up_for - began, 0.0)
