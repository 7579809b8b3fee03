"""One line on the terminal that says what is running, once that takes longer than a moment."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.proc.terminal import Terminal

_PATIENCE_S = 0.3
_WIDTH = 78


class LiveLine:
    """Draws what runs, and takes it away again before anything else is written."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._running: dict[str, float] = {}
        self._drawn = ""

    def started(self, gate: str) -> None:
        """Add a gate."""
        self._running[gate] = time.monotonic()

    def ended(self, gate: str) -> None:
        """Take a gate away."""
        self._running.pop(gate, None)
        self.clear()

    def tick(self) -> None:
        """Draw the line anew where it says something else by now."""
        now = time.monotonic()
        slow = [f"{gate} {now - at:.0f} s" for gate, at in self._running.items()]
        if not any(now - at > _PATIENCE_S for at in self._running.values()):
            return
        text = f"running: {', '.join(slow)}"[:_WIDTH]
        if text != self._drawn:
            self._drawn = text
            self._terminal.write(b"\r\x1b[K" + text.encode("utf-8", "replace"))

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._drawn:
            self._drawn = ""
            self._terminal.write(b"\r\x1b[K")
