"""Turn signals into bytes on a pipe, so that one poll waits for output, exits and interruptions.

Nothing is raised inside a handler: whoever waits reads the pipe and decides. `_signal` is the
built-in part of `signal`, without the enums that take longer to import than a gate to start.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType, TracebackType
else:
    import _signal

ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := int(getattr(_signal, name, 0)))
)
_WATCHED = (*ENDING, int(_signal.SIGCHLD))


class SignalPipe:
    """While entered: ending signals and SIGCHLD are noted on `fd` instead of taking effect.

    Signals that were ignored when we started stay ignored (`nohup`), but for SIGCHLD.
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
            self._before.append((number, _signal.signal(number, _noted)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        for number, handler in self._before:
            _signal.signal(number, handler)  # type: ignore[arg-type]
        _signal.set_wakeup_fd(self._wakeup_before)
        self.drain()
        os.close(self.fd)
        os.close(self._write_fd)

    def drain(self) -> None:
        """Take what has arrived off the pipe; ending signals are added to `received`."""
        try:
            arrived = os.read(self.fd, 512)
        except BlockingIOError:
            return
        self.received += [number for number in arrived if number in ENDING]


def _noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the number to the pipe already."""
