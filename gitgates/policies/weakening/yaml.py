"""As much of YAML as the settings of tools use, read without a parser for all of it. Pure.

Mappings and lists, set in or in brackets; texts, quoted or not, on one line or as a block. Anchors
and tags are read as text. The standard library has no YAML, and a reader of settings that are only
compared need not be right about what nobody writes there.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Value: TypeAlias = "str | list[Value] | dict[str, Value]"
    Line: TypeAlias = tuple[int, str]  # how far it is set in, and the rest

_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#'"\[{][^#]*?)\s*:(?:\s+(?P<rest>.*)|$)""")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_BLOCK = re.compile(r"[|>][+-]?\d?$")


def parse(text: str) -> Value:
    """Return the first document of a text; a text on its own where it is neither map nor list."""
    lines: list[Line] = []
    for raw in text.splitlines():
        if raw.startswith(("---", "...")):
            if lines:
                break
            continue
        lines.append((len(raw) - len(raw.lstrip()), raw.strip()))
    value, _end = _value(lines, _skip(lines, 0), -1)
    return value


def _plain(text: str) -> str:
    """Return what stands on a line, without its comment."""
    return (
        text if text[:1] in ("'", '"') and text[-1:] == text[:1] else _COMMENT.sub("", text).strip()
    )


def _skip(lines: list[Line], at: int) -> int:
    while at < len(lines) and (not lines[at][1] or lines[at][1].startswith("#")):
        at += 1
    return at


def _value(lines: list[Line], at: int, above: int) -> tuple[Value, int]:
    """Read what is set in further than `above`; return it and the place behind it."""
    if at >= len(lines) or lines[at][0] <= above:
        return "", at
    indent, text = lines[at]
    if text == "-" or text.startswith("- "):
        return _list(lines, at, indent)
    if _KEY.match(text):
        return _map(lines, at, indent)
    return _scalar(_plain(text)), _skip(lines, at + 1)


def _list(lines: list[Line], at: int, indent: int) -> tuple[Value, int]:
    found: list[Value] = []
    while at < len(lines) and lines[at][0] == indent and re.match(r"-(?:\s|$)", lines[at][1]):
        rest = lines[at][1][1:].lstrip()
        if not rest or rest.startswith("#"):
            value, at = _value(lines, _skip(lines, at + 1), indent)
        elif _KEY.match(rest) or rest.startswith("- "):
            inner = indent + len(lines[at][1]) - len(rest)
            lines[at] = (inner, rest)
            value, at = _value(lines, at, indent)
        else:
            value, at = _scalar(_plain(rest)), _skip(lines, at + 1)
        found.append(value)
    return found, at


def _map(lines: list[Line], at: int, indent: int) -> tuple[Value, int]:
    found: dict[str, Value] = {}
    while at < len(lines) and lines[at][0] == indent and (match := _KEY.match(lines[at][1])):
        key, rest = match["key"].strip("'\""), _plain(match["rest"] or "")
        value: Value
        if _BLOCK.match(rest):
            value, at = _block(lines, at + 1, indent)
        elif rest:
            value, at = _scalar(rest), _skip(lines, at + 1)
        else:
            at = _skip(lines, at + 1)
            # A list may stand as far out as its key.
            is_list = at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("-")
            value, at = _value(lines, at, indent - 1 if is_list else indent)
        found[key] = value
    return found, at if at >= len(lines) or lines[at][0] <= indent else _skip(lines, at + 1)


def _block(lines: list[Line], at: int, above: int) -> tuple[str, int]:
    texts = []
    while at < len(lines) and (not lines[at][1] or lines[at][0] > above):
        texts.append(lines[at][1])
        at += 1
    return "\n".join(texts).strip(), _skip(lines, at)


def _scalar(text: str) -> Value:
    if text.startswith("[") and text.endswith("]"):
        return [_unquoted(part) for part in text[1:-1].split(",") if part.strip()]
    if text.startswith("{") and text.endswith("}"):
        pairs = (part.partition(":") for part in text[1:-1].split(",") if part.strip())
        return {_unquoted(key): _unquoted(value) for key, _, value in pairs}
    return _unquoted(text)


def _unquoted(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]
    return text[1:-1] if quoted else text
