"""An end to everything that a hook does, whatever it waits for: its host waits no longer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal


_AT_ONCE_S = 0.001  # zero would mean never


class OutOfTime(BaseException):
    """The time is up. No `except Exception` on the way is to take it for something smaller."""


def set_alarm(after_s: float) -> None:
    """Raise `OutOfTime` in the main thread after a time, wherever it is then."""
    _signal.signal(_signal.SIGALRM, _ring)
    _signal.setitimer(_signal.ITIMER_REAL, max(after_s, _AT_ONCE_S))


def stop_alarm() -> None:
    """Let nothing happen."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise OutOfTime
