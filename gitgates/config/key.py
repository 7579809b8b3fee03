"""What a key of the configuration is, and the shapes of JSON that many of them have."""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TEXT = {"type": "string"}
FILLED = {"type": "string", "pattern": r"\S"}
TEXTS = {"type": "array", "items": FILLED}


class Key(Record):
    """One key: how its value is parsed, what it means, where it may stand."""

    name: str  # as it is written
    field: str  # the record's field
    parse: Callable[[object], object]
    default: str  # as it is written; empty: none
    meaning: str
    json: Mapping[str, object]  # its JSON Schema
    only_in: tuple[str, ...] = ()  # the hooks that it has a meaning in; (): all


def enum(*words: str) -> dict[str, object]:
    """Return the JSON Schema of one of some words."""
    return {"type": "string", "enum": list(words)}
