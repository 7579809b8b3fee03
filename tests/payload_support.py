"""The payload of an agent's event as one row of fields, which cases are written as."""

from __future__ import annotations

from typing import Any

from gitgates.core.agent_types import AgentFacts, Payload, Prompt, ToolUse, TurnEnd

# The parts of a payload, and which of their fields have another name in a row.
PARTS: dict[str, tuple[Any, dict[str, str]]] = {
    "tool": (
        ToolUse,
        {
            "name": "tool",
            "other_names": "tool_names",
            "kind": "tool_kind",
            "id": "tool_use_id",
            "input": "tool_input",
        },
    ),
    "agent": (AgentFacts, {"id": "agent_id", "type": "agent_type"}),
    "prompt": (Prompt, {"id": "prompt_id", "text": "prompt"}),
    "ending": (TurnEnd, {"message": "last_message"}),
}


def row_of(payload: Payload) -> dict[str, Any]:
    """Return all fields, also those of parts."""
    row = payload._asdict()
    for part, (_record, names) in PARTS.items():
        fields = row.pop(part)._asdict()
        row |= {names.get(name, name): value for name, value in fields.items()}
    return row


def payload_with(**row: Any) -> Payload:
    """Return a payload with these fields, and others as usual."""
    parts = {}
    for part, (record, names) in PARTS.items():
        own = {names.get(name, name): name for name in record._fields}
        parts[part] = record(**{own[name]: row.pop(name) for name in [*row] if name in own})
    return Payload(**row, **parts)
