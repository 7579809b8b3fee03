"""Values of a parsed settings file that may hold anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def table(value: object, *path: str) -> dict[str, Any]:
    """Return the table at `path`; an empty one if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list; all else is left out."""
    items = value if isinstance(value, list) else []
    return [table(item) for item in items if isinstance(item, dict)]


def texts(value: object) -> tuple[str, ...]:
    """Return a text, or the texts of a list, as a tuple; all else is left out."""
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))
