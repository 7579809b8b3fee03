"""Put a value into a JSON text and take it out again, and leave every other byte where it is. Pure.

What says later whether a list or an object was there before us, is the first sign behind its
bracket: behind our own comes a space or a new line, and into an empty one of somebody else's the
value goes at once. Nothing has to be remembered elsewhere, so that a copy of the file, in another
checkout, can be undone as well.
"""

from __future__ import annotations

import json
import re

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.install.json_text import Member, Node

_SPACE = " \t\r\n"
_INDENT = re.compile(r"[ \t]*")
_INDENTED_KEY = re.compile(r"^([ \t]+)\"", re.MULTILINE)


class Style(Record):
    """How a text is written."""

    newline: str = "\n"
    unit: str = "  "  # one step of indentation
    one_line: bool = False


class New(Record):
    """What is to be added; an array's item has no key."""

    value: Any
    key: str = ""


def style_of(text: str, root: Node | None) -> Style:
    """Return how a text is written; one that holds next to nothing is taken to have lines."""
    newline = next((sign for sign in ("\r\n", "\r", "\n") if sign in text), "\n")
    if root is None:
        return Style(newline)
    inside = text[root.start : root.end]
    first = _INDENTED_KEY.search(inside.replace("\r", "\n"))
    unit = first[1].removeprefix(_indent_at(text, root.start)) if first else ""
    has_lines = "\n" in inside or "\r" in inside
    return Style(newline, unit or "  ", one_line=bool(root.members) and not has_lines)


def render(value: Any, style: Style, indent: str) -> str:  # noqa: ANN401 - any JSON
    """Return a value as text, for a place in a line that is indented so."""
    if style.one_line:
        text = json.dumps(value, ensure_ascii=False)
        return text if not isinstance(value, dict | list) else _spaced(value)
    text = json.dumps(value, indent=style.unit, ensure_ascii=False)
    return text.replace("\n", style.newline + indent)


def append(text: str, holder: Node, new_: New, style: Style) -> str:
    """Return the text with one more item in an array, or one more key in an object."""
    before = holder.items[-1:] or holder.members[-1:]
    indent = _indent_at(text, (before[0].start if before else holder.start))
    label = f"{json.dumps(new_.key)}: " if holder.kind == "object" else ""
    new = label + render(new_.value, style, indent)
    at = before[0].end if before else holder.start + 1
    if before:
        starts_line = text[: before[0].start].rstrip(" \t").endswith(("\n", "\r"))
        new = f",{style.newline}{indent}{new}" if starts_line else f", {new}"
    return text[:at] + new + text[at:]


def remove(text: str, holder: Node, index: int) -> str:
    """Return the text without one item of an array, or one key of an object."""
    parts: tuple[Node | Member, ...] = holder.items or holder.members
    if index:
        start, end = parts[index - 1].end, parts[index].end
    elif len(parts) > 1:
        start, end = parts[0].start, parts[1].start
    elif is_made_by_us(text, holder):
        return text[: holder.start + 1] + text[holder.end - 1 :]
    else:
        start, end = parts[0].start, parts[0].end
    return text[:start] + text[end:]


def is_made_by_us(text: str, holder: Node) -> bool:
    """Tell whether a list or an object that holds something was not there before we came."""
    return text[holder.start + 1] in _SPACE


def _spaced(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a value on one line, with a space behind each bracket."""
    if isinstance(value, dict) and value:
        inside = [f"{json.dumps(key)}: {_spaced(item)}" for key, item in value.items()]
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list) and value:
        return f"[ {', '.join(map(_spaced, value))} ]"
    return json.dumps(value, ensure_ascii=False)


def _indent_at(text: str, offset: int) -> str:
    """Return the indentation of the line that a place is in."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start += text.startswith("\ufeff", start)
    found = _INDENT.match(text, start)
    return found[0] if found else ""
