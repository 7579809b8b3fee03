"""Edit a JSON text in place: find each value, add one, take one out; all other bytes stay. Pure.

Strict, as in RFC 8259: comments, NaN and other liberties are refused, with their place, and so is a
key that stands twice, because readers differ in which of the two counts.

What says later whether a list or an object was there before us, is the first sign behind its
bracket: behind our own comes a space or a new line, and into an empty one of somebody else's the
value goes at once. Nothing has to be remembered elsewhere, so that a copy of the file, in another
checkout, can be undone as well.
"""

from __future__ import annotations

import json
import re

from gitgates.errors import ConfigError
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BYTE_ORDER_MARK = "\ufeff"
SPACE = " \t\r\n"
_SPACES = re.compile(f"[{SPACE}]*")
_WORD = re.compile(r"[A-Za-z_]+")
_INDENT = re.compile(r"[ \t]*")
_INDENTED_KEY = re.compile(r"^([ \t]+)\"", re.MULTILINE)
_KINDS = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
_DEEPEST = 200
_MOST_DIGITS = 19  # of a number that is read exactly
_HINT = "Mend it first; nothing was changed."


class Node(Record):
    """One value, and where it stands: text[start:end]."""

    value: Any  # without places
    start: int
    end: int
    key: str = ""  # in an object
    key_start: int = -1
    parts: tuple[Node, ...] = ()  # of an object or an array

    @property
    def kind(self) -> str:
        """Name its type in JSON's words; empty for true, false and null."""
        return _KINDS.get(type(self.value), "")

    @property
    def whole_start(self) -> int:
        """Where it begins, with its key."""
        return self.start if self.key_start < 0 else self.key_start

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None if there is none, or this is no object."""
        return next((part for part in self.members if part.key == key), None)

    @property
    def members(self) -> tuple[Node, ...]:
        """The values of an object; none of anything else."""
        return self.parts if self.kind == "object" else ()

    @property
    def items(self) -> tuple[Node, ...]:
        """The values of an array; none of anything else."""
        return self.parts if self.kind == "array" else ()


def parse(text: str, file: str) -> Node:
    """Return the value that a text holds.

    Raises: ConfigError with the file, line and column of what is no JSON.
    """
    reader = _Reader(text, file)
    node = reader.value(reader.skip(len(_BYTE_ORDER_MARK) * text.startswith(_BYTE_ORDER_MARK)), 0)
    end = reader.skip(node.end)
    if end < len(text):
        raise reader.refuse(end, "nothing more")
    return node


def line_and_column(text: str, offset: int) -> str:
    """Return line and column, both counted from one."""
    lines = re.split(r"\r\n|\r|\n", text[:offset].removeprefix(_BYTE_ORDER_MARK))
    return f"{len(lines)}:{len(lines[-1]) + 1}"


def append_to_nothing(text: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a text that holds nothing but spaces with a value on a line of its own."""
    newline = _newline_of(text)
    return text + newline + _render(value, "  ", newline)


def append(text: str, root: Node, holder: Node, value: Any, *, key: str = "") -> str:  # noqa: ANN401 - any JSON
    """Return the text with one more item in an array, or one more key in an object."""
    last = holder.parts[-1] if holder.parts else None
    newline, unit = _style(text, root)
    indent = _indent_at(text, last.whole_start if last else holder.start)
    label = f"{json.dumps(key)}: " if holder.kind == "object" else ""
    new = label + _render(value, unit, newline + indent)
    if last is None:
        return text[: holder.start + 1] + new + text[holder.start + 1 :]
    starts_line = text[: last.whole_start].rstrip(" \t").endswith(("\n", "\r"))
    comma = f",{newline}{indent}" if starts_line else ", "
    return text[: last.end] + comma + new + text[last.end :]


def remove(text: str, holder: Node, index: int) -> str:
    """Return the text without one item of an array, or one key of an object."""
    parts = holder.parts
    if index:
        start, end = parts[index - 1].end, parts[index].end
    elif len(parts) > 1:
        start, end = parts[0].whole_start, parts[1].whole_start
    elif is_made_by_us(text, holder):
        start, end = holder.start + 1, holder.end - 1
    else:
        start, end = parts[0].whole_start, parts[0].end
    return text[:start] + text[end:]


def prune(text: str, path: list[tuple[Node, int]]) -> str | None:
    """Return the text without what stands at the end of a path, and what held nothing else.

    What was there before us stays, empty. The path leads from the root: holder and index.
    None: the text was made for it.
    """
    for holder, index in reversed(path):
        if len(holder.parts) > 1 or not is_made_by_us(text, holder):
            return remove(text, holder, index)
    root = path[0][0]
    head, tail = text[: root.start], text[root.end :]
    if not head:
        return None
    newline = next((sign for sign in ("\r\n", "\r", "\n") if head.endswith(sign)), "")
    return head.removesuffix(newline) + tail


def is_made_by_us(text: str, holder: Node) -> bool:
    """Return whether a list or an object that holds something was not there before we came."""
    return text[holder.start + 1] in SPACE


def _newline_of(text: str) -> str:
    """Return how a text ends its lines."""
    return next((sign for sign in ("\r\n", "\r", "\n") if sign in text), "\n")


def _style(text: str, root: Node) -> tuple[str, str]:
    """Return how a text ends its lines, and a step of its indentation: empty for one line."""
    newline = _newline_of(text)
    inside = text[root.start : root.end].replace("\r", "\n")
    first = _INDENTED_KEY.search(inside)
    if first is None:
        return newline, "" if root.parts and "\n" not in inside else "  "
    return newline, first[1].removeprefix(_indent_at(text, root.start)) or "  "


def _render(value: Any, unit: str, line_start: str) -> str:  # noqa: ANN401 - any JSON
    if unit:
        text = json.dumps(value, indent=unit, ensure_ascii=False)
        return text.replace("\n", line_start)
    # One line, with a space behind each bracket.
    if isinstance(value, dict) and value:
        inside = [f"{json.dumps(k)}: {_render(item, unit, '')}" for k, item in value.items()]
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list) and value:
        return f"[ {', '.join(_render(item, unit, '') for item in value)} ]"
    return json.dumps(value, ensure_ascii=False)


def _indent_at(text: str, offset: int) -> str:
    """Return the indentation of the line that a place is in."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start += text.startswith(_BYTE_ORDER_MARK, start)
    found = _INDENT.match(text, start)
    return found[0] if found else ""


def _number(digits: str) -> float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _no_constant(name: str) -> None:
    raise ValueError(name)


_SCALARS = json.JSONDecoder(parse_int=_number, parse_constant=_no_constant)


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file

    def skip(self, at: int) -> int:
        """Return where the next sign that is no space stands."""
        found = _SPACES.match(self._text, at)
        return found.end() if found else at

    def refuse(self, at: int, wanted: str) -> ConfigError:
        """Return the error about what stands here instead of what was wanted."""
        rest = self._text[at:]
        word = _WORD.match(rest)
        got = f"`{word[0] if word else rest[:1]}`" if rest else "the end of the file"
        if rest.startswith(("//", "/*", "#")):
            got = "a comment, which JSON does not have"
        where = f"{self._file}:{line_and_column(self._text, at)}"
        return ConfigError(f"{where}: got {got}, expected {wanted}", _HINT)

    def value(self, at: int, depth: int) -> Node:
        """Read the value that begins here."""
        if depth > _DEEPEST:
            raise self.refuse(at, f"at most {_DEEPEST} levels")
        sign = self._text[at : at + 1]
        if sign == "{":
            parts, end = self._parts(at, depth, "}")
            return Node({part.key: part.value for part in parts}, at, end, parts=parts)
        if sign == "[":
            parts, end = self._parts(at, depth, "]")
            return Node([part.value for part in parts], at, end, parts=parts)
        value, end = self._scalar(at)
        return Node(value, at, end)

    def _scalar(self, at: int) -> tuple[Any, int]:
        is_text = self._text.startswith('"', at)
        try:
            return _SCALARS.raw_decode(self._text, at)
        except ValueError as error:
            wanted = "a string that ends on its line, with JSON's escapes"
            raise self.refuse(at, wanted if is_text else "a JSON value") from error

    def _parts(self, start: int, depth: int, closing: str) -> tuple[tuple[Node, ...], int]:
        """Return what stands in brackets, and where they end."""
        parts: list[Node] = []
        keys: set[str] = set()
        at = self.skip(start + 1)
        while parts or self._text[at : at + 1] != closing:
            part = self._member(at, depth) if closing == "}" else self.value(at, depth + 1)
            if part.key in keys:
                twice = self._text[at : self._scalar(at)[1]]
                where = f"{self._file}:{line_and_column(self._text, at)}"
                raise ConfigError(f"{where}: {twice} stands there twice", _HINT)
            keys |= {part.key} if closing == "}" else set()
            parts.append(part)
            at = self.skip(part.end)
            if self._text[at : at + 1] == closing:
                break
            at = self._expect(at, ",", f" or {closing}")
        return tuple(parts), at + 1

    def _member(self, at: int, depth: int) -> Node:
        if self._text[at : at + 1] != '"':
            raise self.refuse(at, "a key in double quotes")
        key, end = self._scalar(at)
        node = self.value(self._expect(self.skip(end), ":"), depth + 1)
        return node._replace(key=key, key_start=at)

    def _expect(self, at: int, sign: str, also: str = "") -> int:
        """Return where what follows the sign begins."""
        if self._text[at : at + 1] != sign:
            raise self.refuse(at, f"{sign}{also}")
        return self.skip(at + 1)
