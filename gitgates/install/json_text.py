"""Where what stands in a JSON text: the span of each key and value, so that others' bytes can stay.

Strict, as in RFC 8259: comments, NaN and other liberties are refused, with their place, and so is a
key that stands twice, because readers differ in which of the two counts. Pure.
"""

from __future__ import annotations

import json
import re

from gitgates.errors import ConfigError
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    Kind: TypeAlias = Literal["object", "array", "string", "number", "literal"]

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"[A-Za-z_]+")
_DEEPEST = 200
_BYTE_ORDER_MARK = "\ufeff"
_HINT = "Mend it first; nothing was changed."


class Node(Record):
    """One value, and where it stands: text[start:end]."""

    kind: Kind
    start: int
    end: int
    value: Any = None  # of a string, a number or a literal
    items: tuple[Node, ...] = ()  # of an array
    members: tuple[Member, ...] = ()  # of an object

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None where there is none, or this is no object."""
        return next((member.node for member in self.members if member.key == key), None)


class Member(Record):
    """One key of an object with its value; `start` is where the key does."""

    key: str
    start: int
    node: Node

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.node.end


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


def plain(node: Node) -> Any:  # noqa: ANN401 - whatever the JSON says
    """Return a value without its places."""
    if node.kind == "object":
        return {member.key: plain(member.node) for member in node.members}
    if node.kind == "array":
        return [plain(item) for item in node.items]
    return node.value


def place(text: str, offset: int) -> str:
    """Return line and column, both counted from one."""
    lines = re.split(r"\r\n|\r|\n", text[:offset].removeprefix(_BYTE_ORDER_MARK))
    return f"{len(lines)}:{len(lines[-1]) + 1}"


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file

    def skip(self, at: int) -> int:
        """Return where the next sign that is no space stands."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def refuse(self, at: int, wanted: str) -> ConfigError:
        """Return the error about what stands here instead of what was wanted."""
        rest = self._text[at:]
        if rest.startswith(("//", "/*", "#")):
            got = "a comment, which JSON does not have"
        elif not rest:
            got = "the end of the file"
        else:
            word = _WORD.match(rest)
            got = f"`{word[0] if word else rest[0]}`"
        where = f"{self._file}:{place(self._text, at)}"
        return ConfigError(f"{where}: got {got}, expected {wanted}", _HINT)

    def value(self, at: int, depth: int) -> Node:
        """Read the value that begins here."""
        sign = self._text[at : at + 1]
        if depth > _DEEPEST:
            raise self.refuse(at, f"at most {_DEEPEST} levels")
        if sign == "{":
            return self._object(at, depth)
        if sign == "[":
            return self._array(at, depth)
        if sign == '"':
            end, value = self._string(at)
            return Node("string", at, end, value)
        if number := _NUMBER.match(self._text, at):
            # Kept as text where it is not small: nobody asks for it.
            digits = number[0]
            value_ = json.loads(digits) if len(digits) < 20 else digits  # noqa: PLR2004 - fits 64 bits
            return Node("number", at, number.end(), value_)
        word = _WORD.match(self._text, at)
        if word and word[0] in _LITERALS:
            return Node("literal", at, word.end(), _LITERALS[word[0]])
        raise self.refuse(at, "a JSON value")

    def _string(self, at: int) -> tuple[int, str]:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.refuse(at, "a string that ends on its line, with JSON's escapes")
        text: str = json.loads(found[0])
        return found.end(), text

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        seen: set[str] = set()
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "}" or members:
            if self._text[at : at + 1] != '"':
                raise self.refuse(at, "a key in double quotes")
            end, key = self._string(at)
            if key in seen:
                where = f"{self._file}:{place(self._text, at)}"
                raise ConfigError(f"{where}: {self._text[at:end]} stands there twice", _HINT)
            seen.add(key)
            colon = self._expect(end, ":")
            node = self.value(self.skip(colon), depth + 1)
            members.append(Member(key, at, node))
            at = self.skip(node.end)
            if self._text[at : at + 1] == "}":
                break
            at = self.skip(self._expect(at, ",", " or }"))
        return Node("object", start, at + 1, members=tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "]" or items:
            items.append(self.value(at, depth + 1))
            at = self.skip(items[-1].end)
            if self._text[at : at + 1] == "]":
                break
            at = self.skip(self._expect(at, ",", " or ]"))
        return Node("array", start, at + 1, items=tuple(items))

    def _expect(self, at: int, sign: str, also: str = "") -> int:
        """Return where what follows the sign begins."""
        at = self.skip(at)
        if self._text[at : at + 1] != sign:
            raise self.refuse(at, f"{sign}{also}")
        return at + 1
