"""Edit a JSON text in place: find values, add one, remove one; all other bytes stay. Pure.

Strict, as in RFC 8259: comments, NaN and other extensions are refused, and so is a duplicate key,
because readers differ in which one counts.

The first character after a bracket says later whether a list or object existed before us: our own
bracket is followed by a newline, and into somebody else's empty one, the value goes directly.
Nothing is stored elsewhere, so the edit can also be undone in a copy of the file, in another
checkout.
"""

from __future__ import annotations

import json
import re

from gitgates.core.errors import ConfigError
from gitgates.core.limits import DEEPEST, LONGEST, parse_json, too_long
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BYTE_ORDER_MARK = "\ufeff"
SPACE = f"{_BYTE_ORDER_MARK} \t\r\n"
_TOKEN = re.compile(r'[ \t\r\n]*([{}\[\],:]|"(?:[^"\\]|\\.)*"|[^{}\[\],:" \t\r\n]+)')
_INDENT = re.compile(r"[ \t]*")
_INDENTED_KEY = re.compile(r"^([ \t]+)\"", re.MULTILINE)
_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number"}
_HINT = "Fix it first; nothing was changed."


class Node(Record):
    """One value, and its span: text[start:end]."""

    value: Any  # without positions
    start: int
    end: int
    key: str = ""  # in an object
    key_start: int = -1
    parts: tuple[Node, ...] = ()  # the values in an object or an array

    @property
    def whole_start(self) -> int:
        """Where the value begins, with its key."""
        return self.start if self.key_start < 0 else self.key_start

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None if there is none, or this is not an object."""
        return next((part for part in self.members if part.key == key), None)

    @property
    def members(self) -> tuple[Node, ...]:
        """The values of an object; none of anything else."""
        return self.parts if isinstance(self.value, dict) else ()

    @property
    def items(self) -> tuple[Node, ...]:
        """The values of an array; none of anything else."""
        return self.parts if isinstance(self.value, list) else ()


def parse(text: str, file: str) -> Node:
    """Return the value in a text.

    Raises: ConfigError with the file, and where it is not valid JSON.
    """
    head = len(_BYTE_ORDER_MARK) * text.startswith(_BYTE_ORDER_MARK)
    if len(text) > LONGEST:
        raise ConfigError(f"{file}: {too_long(len(text))}", _HINT)
    try:
        options = {"object_pairs_hook": _unique, "parse_constant": _no_constant}
        value = parse_json(text[head:], **options)
        return _locate(text, head, value, 0)
    except json.JSONDecodeError as error:
        location = f"{file}:{error.lineno}:{error.colno}"
        raise ConfigError(f"{location}: is not valid JSON: {error.msg}", _HINT) from error
    except ValueError as error:
        raise ConfigError(f"{file}: is not valid JSON: {error}", _HINT) from error


def require(node: Node, kind: type, what: str, file: str) -> None:
    """Refuse a value of another type. Raises: ConfigError."""
    if not isinstance(node.value, kind):
        got = "null" if node.value is None else _KINDS.get(type(node.value), "a number")
        raise ConfigError(f"{file}: {what} is {got}, expected {_KINDS[kind]}", _HINT)


def insert(text: str, keys: tuple[str, ...], value: Any, file: str) -> str:  # noqa: ANN401 - any JSON
    """Insert a value at a path of keys; an existing list gets its items."""
    if not text.strip(SPACE):
        for key in reversed(keys):
            value = {key: value}
        newline = _newline_of(text)
        return text + newline + _render(value, "  ", newline)
    root = node = parse(text, file)
    for depth, key in enumerate(keys):
        child = node.get(key)
        if child is None:
            for inner in reversed(keys[depth + 1 :]):
                value = {inner: value}
            return _append(text, root, node, value, label=f"{json.dumps(key)}: ")
        node = child
    for item in reversed(value):
        text = _append(text, root, node, item)
    return text


def remove(text: str, holder: Node, index: int) -> str:
    """Return the text without one item of an array, or one key of an object."""
    parts = holder.parts
    if index:
        start, end = parts[index - 1].end, parts[index].end
    elif len(parts) > 1:
        start, end = parts[0].whole_start, parts[1].whole_start
    elif _is_made_by_us(text, holder):
        start, end = holder.start + 1, holder.end - 1
    else:
        start, end = parts[0].whole_start, parts[0].end
    return text[:start] + text[end:]


def prune(text: str, path: list[tuple[Node, int]]) -> str | None:
    """Remove the value at a path, and containers that become empty.

    Containers that existed before us stay, empty. The path, from the root, has each holder and
    index. Returns None if the whole text was made for the value.
    """
    for holder, index in reversed(path):
        if len(holder.parts) > 1 or not _is_made_by_us(text, holder):
            return remove(text, holder, index)
    root = path[0][0]
    head, tail = text[: root.start], text[root.end :]
    if not head:
        return None
    newline = next((sign for sign in ("\r\n", "\r", "\n") if head.endswith(sign)), "")
    return head.removesuffix(newline) + tail


def _is_made_by_us(text: str, holder: Node) -> bool:
    """Return whether we made a list or an object that is not empty."""
    return text[holder.start + 1] in " \t\r\n"


def _append(text: str, root: Node, holder: Node, value: Any, *, label: str = "") -> str:  # noqa: ANN401 - any JSON
    last = holder.parts[-1] if holder.parts else None
    indent = _indent_at(text, last.whole_start if last else holder.start)
    newline = _newline_of(text)
    new = label + _render(value, _step(text, root), newline + indent)
    if last is None:
        return text[: holder.start + 1] + new + text[holder.start + 1 :]
    starts_line = text[: last.whole_start].rstrip(" \t").endswith(("\n", "\r"))
    comma = f",{newline}{indent}" if starts_line else ", "
    return text[: last.end] + comma + new + text[last.end :]


def _newline_of(text: str) -> str:
    """Return the newline of a text."""
    return next((sign for sign in ("\r\n", "\r", "\n") if sign in text), "\n")


def _step(text: str, root: Node) -> str:
    """Return one level of the indentation."""
    inside = text[root.start : root.end].replace("\r", "\n")
    first = _INDENTED_KEY.search(inside)
    return (first[1].removeprefix(_indent_at(text, root.start)) if first else "") or "  "


def _render(value: Any, unit: str, line_start: str) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", line_start)


def _indent_at(text: str, offset: int) -> str:
    """Return the indentation of the line at an offset."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start += text.startswith(_BYTE_ORDER_MARK, start)
    match = _INDENT.match(text, start)
    return match[0] if match else ""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _value in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"duplicate key {json.dumps(twice)}")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _locate(text: str, at: int, value: Any, depth: int) -> Node:  # noqa: ANN401 - any JSON
    """Find the parts of a value whose text is known to be JSON and to begin here."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    token = _next(text, at)
    if not isinstance(value, dict | list):
        return Node(value, token.start(1), token.end())
    parts: list[Node] = []
    end = token
    inner: Any
    for inner in value.items() if isinstance(value, dict) else value:
        if isinstance(value, dict):
            name = _next(text, end.end())
            colon = _next(text, name.end())
            part = _locate(text, colon.end(), inner[1], depth + 1)
            part = part._replace(key=inner[0], key_start=name.start(1))
        else:
            part = _locate(text, end.end(), inner, depth + 1)
        parts.append(part)
        end = _next(text, part.end)  # a comma, or the bracket
    if not parts:
        end = _next(text, end.end())
    return Node(value, token.start(1), end.end(), parts=tuple(parts))


def _next(text: str, at: int) -> re.Match[str]:
    match = _TOKEN.match(text, at)
    if match is None:
        raise ValueError(f"nothing at {at}")
    return match
