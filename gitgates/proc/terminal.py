"""What the terminal can do, and the one place that writes to it."""

from __future__ import annotations

import os

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Terminal(Record):
    """One output of ours."""

    fd: int
    colour: bool = False
    live: bool = False  # a line may be drawn and drawn over again
    tell: Callable[[str], object] | None = None  # is told why a write was not possible

    def write(self, data: bytes) -> str:
        """Write all of `data`; return why that was not possible, or nothing.

        A reader that is gone is no reason to fail: it has what it wanted.
        """
        try:
            while data:
                data = data[os.write(self.fd, data) :]
        except BrokenPipeError:
            return ""
        except OSError as error:
            why = error.strerror or str(error)
            if self.tell:
                self.tell(why)
            return why
        return ""


def open_terminal(fd: int, env: Mapping[str, str]) -> Terminal:
    """Return what is known of one of our outputs. Source: no-color.org, force-color.org."""
    smart = os.isatty(fd) and env.get("TERM", "") != "dumb"
    colour = not env.get("NO_COLOR") and (smart or bool(env.get("FORCE_COLOR")))
    return Terminal(fd=fd, colour=colour, live=smart)
