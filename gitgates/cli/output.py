"""Standard output and error of the verbs: a write never fails; why one did is said at the end.

A verb that has begun to change something must not be ended by a full disk behind `>`. A reader that
goes away (`gitgates check | head -1`) has what it wanted: that is no failure at all.
"""

from __future__ import annotations

import io
import os
import sys

from gitgates import environ, errors
from gitgates.system.terminal import Terminal, open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_lost: list[str] = []  # why standard output could not be written


class _Sink(io.RawIOBase):
    """A terminal as Python's streams want it."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fd

    def isatty(self) -> bool:
        return os.isatty(self._terminal.fd)

    def write(self, data: ReadableBuffer) -> int:
        content = bytes(data)
        self._terminal.write(content)
        return len(content)


def take_over() -> None:
    """Let all that is written to `sys.stdout` and `sys.stderr` come here."""
    sys.stdout = _stream(stdout(), sys.stdout)
    sys.stderr = _stream(open_terminal(2, environ.read()), sys.stderr)


def stdout() -> Terminal:
    """Return standard output, for what writes bytes; a failure is remembered."""
    return open_terminal(1, environ.read())._replace(tell=_lost.append)


def settle(status: int) -> int:
    """Say why standard output could not be written; return the status that the process ends with.

    What is lost on standard error has no place to be said; the status stands for it.
    """
    sys.stdout.flush()
    if not _lost:
        return status
    sys.stderr.write(f"gitgates: standard output cannot be written: {_lost[0]}\n")
    sys.stderr.flush()
    return errors.StateError.exit_status


def _stream(terminal: Terminal, before: TextIO | None) -> TextIO:
    # Without a file behind it, such a stream is None.
    return io.TextIOWrapper(
        io.BufferedWriter(_Sink(terminal)),
        encoding=before.encoding if before else "utf-8",
        errors=before.errors if before else "backslashreplace",
        line_buffering=True,
    )
