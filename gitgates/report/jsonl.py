"""A run as JSON lines, one an event, written as it happens."""

from __future__ import annotations

import json

from gitgates.report.document import VERSION, result_fields, run_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.proc.terminal import Terminal
    from gitgates.types import Decision, GateResult, Plan


class JsonLines:
    """The listener that writes a line for each thing that happens, numbered from 1."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._number = 0

    def planned(self, plan: Plan) -> None:
        """Write what is going to run."""
        listed = {"hook": plan.event.name, "gates": list(plan.listed)}
        self.write("run-started", listed)

    def started(self, gate: str) -> None:
        """Write that a gate starts."""
        self.write("gate-started", {"name": gate})

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - as other listeners
        """Write how a gate ended."""
        self.write("gate-ended", result_fields(result))

    def tick(self) -> None:
        """Do nothing: time that passes is no event."""

    def said(self, text: str) -> None:
        """Write it."""
        self.write("note", {"text": text})

    def closing(self, decision: Decision, plan: Plan) -> None:
        """Write what was decided."""
        self._end("run-ended", run_document(decision, plan))

    def failed(self, document: dict[str, Any]) -> None:
        """Write why nothing was decided."""
        self._end("run-failed", document)

    def _end(self, event: str, document: dict[str, Any]) -> None:
        """Write the last line; what else there is to say of each gate, its own line has said."""
        if "gates" in document:
            document["gates"] = [
                {key: gate[key] for key in ("name", "status", "verdict", "action")}
                for gate in document["gates"]
            ]
        self.write(event, document)

    def write(self, event: str, fields: dict[str, Any]) -> None:
        """Write one line."""
        self._number += 1
        line = {"version": VERSION, "seq": self._number, "event": event, **fields}
        self._terminal.write(json.dumps(line).encode() + b"\n")
