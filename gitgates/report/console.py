"""Tell a run on a terminal while it goes on: each gate as it ends, and a line for what runs."""

from __future__ import annotations

from gitgates.report.live import LiveLine
from gitgates.report.text import (
    Style,
    as_bytes,
    closing_text,
    result_text,
    shown,
    skipped_lines,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.proc.terminal import Terminal
    from gitgates.types import Decision, GateResult, Plan


class Console:
    """The listener that prints."""

    def __init__(self, terminal: Terminal, style: Style) -> None:
        self._terminal = terminal
        self._style = style
        self._live = LiveLine(terminal) if terminal.live and not style.quiet else None
        self._skipped: set[str] = set()  # lines of skipped gates that are printed already

    def planned(self, plan: Plan) -> None:
        """Do nothing: each gate is told when it ends."""

    def started(self, gate: str) -> None:
        """Show that a gate runs."""
        if self._live:
            self._live.started(gate)

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Print how a gate ended, below the skipped gates that are listed before it."""
        if self._live:
            self._live.ended(result.gate)
        for line in skipped_lines(result.gate, plan, self._style):
            if line not in self._skipped:
                self._skipped.add(line)
                self._terminal.write(as_bytes(f"{line}\n"))
        self._terminal.write(result_text(result, plan, self._style))

    def tick(self) -> None:
        """Bring the live line up to date."""
        if self._live:
            self._live.tick()

    def said(self, text: str) -> None:
        """Print it."""
        if self._live:
            self._live.clear()
        self._terminal.write(as_bytes(f"gitgates: {shown(text)}\n"))

    def closing(self, decision: Decision, plan: Plan) -> bytes:
        """Return what is to be printed when the run is over."""
        return closing_text(decision, plan, self._style, self._skipped)
