"""The interface for the progress of a run: to a terminal, a log, or nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import GateResult, Plan
    from gitgates.proc.resources import Wait


class Listener:
    """Receives the progress of a run; this one ignores it."""

    live = False  # whether `tick` is called while something runs
    waits: Mapping[str, Wait] = {}  # gate → what it waits for now

    def phase(self, text: str) -> None:
        """Receive the current phase, other than gates; empty: none."""

    def planned(self, plan: Plan) -> None:
        """Receive the plan."""

    def started(self, gate: str) -> None:
        """Receive that a gate starts."""

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Receive the result of a gate."""

    def waiting(self, gate: str, wait: Wait) -> None:
        """Receive what a gate waits for, after a moment, and with each new place."""
        self.message(f"{gate} waits for {wait.text}")

    def tick(self) -> None:
        """Be called periodically while something runs."""

    def message(self, text: str) -> None:
        """Receive a message that a person should see at once."""

    def note(self, text: str) -> None:
        """Receive a remark that belongs to the results; here, it is a message as well."""
        self.message(text)
