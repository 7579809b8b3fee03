"""Read the fields of an agent's payload; one of the wrong type counts as absent. Pure."""

from __future__ import annotations

import os

from gitgates.core.agent_types import BackgroundTask, Replacement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The fields of `tool_input` with the replaced text, the new text, or the whole new file.
_OLD, _NEW, _WHOLE = ("old_string", "old_str"), ("new_string", "new_str"), ("content", "file_text")
_EVERYWHERE = (
    "replace_all",
    "allow_multiple",
    "change_all",
)  # if all occurrences are replaced


def text_of(table: dict[str, Any], name: str) -> str:
    """Return a text in a table; empty if there is none."""
    value = table.get(name)
    # Half of a surrogate pair cannot be encoded.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def path_of(table: dict[str, Any], name: str) -> str:
    """Return a path in a table; empty if there is none."""
    value = table.get(name)
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        # A file name need not be text: the host may send bytes, or surrogates as Python does.
        return os.fsdecode(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return os.fsdecode(value.encode("utf-8", "replace"))


def edits_in(tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
    """Return the replacements in a tool's input, with the field names of most tools."""
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
    """Return the tables in an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def tasks_in(value: object) -> tuple[BackgroundTask, ...]:
    """Return the background tasks."""
    return tuple(
        BackgroundTask(text_of(table, "type"), text_of(table, "status"))
        for table in tables_in(value)
    )
