"""Read the fields of an agent's payload: a missing one, or one of another type, is absent. Pure."""

from __future__ import annotations

import os

from gitgates.core.agent_types import BackgroundTask, Replacement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The fields of `tool_input` with the text that a tool replaces, with the new one, or all of it.
_OLD, _NEW, _WHOLE = ("old_string", "old_str"), ("new_string", "new_str"), ("content", "file_text")
_EVERYWHERE = ("replace_all", "allow_multiple", "change_all")  # whether it replaces each place


def text_of(table: dict[str, Any], name: str) -> str:
    """Return a text of a table; empty if there is none."""
    value = table.get(name)
    # Half of a surrogate pair cannot be encoded.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def path_of(table: dict[str, Any], name: str) -> str:
    """Return a path of a table; empty if there is none."""
    value = table.get(name)
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        # A file name need not be text: the host may send its bytes, or what Python makes of them.
        return os.fsdecode(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return os.fsdecode(value.encode("utf-8", "replace"))


def edits_in(tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
    """Return the replacements that the input of a tool names, as most tools name them."""
    for name in _WHOLE:
        if name in tool_input:
            return (Replacement(new=text_of(tool_input, name), whole=True),)
    several = tool_input.get("edits")
    tables = several if isinstance(several, list) else [tool_input]
    return tuple(
        Replacement(
            old=text_of(table, old),
            new=text_of(table, new),
            everywhere=any(table.get(name) is True for name in _EVERYWHERE),
        )
        for table in tables
        if isinstance(table, dict)
        for old, new in zip(_OLD, _NEW, strict=True)
        if isinstance(table.get(old), str)
    )


def tables_in(value: object) -> list[dict[str, Any]]:
    """Return the tables of an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def tasks_in(value: object) -> tuple[BackgroundTask, ...]:
    """Return what runs in the background."""
    return tuple(
        BackgroundTask(text_of(table, "type"), text_of(table, "status"))
        for table in tables_in(value)
    )
