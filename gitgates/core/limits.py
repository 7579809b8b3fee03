"""Limits of size and depth for settings files, checked before a parser meets them. Cold.

tomllib's time grows with the square of a dotted key's parts, all parsers recurse, and a hook reads
what a branch brings along. People's settings are far below these limits.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

LONGEST = 1 << 19  # characters, or bytes
DEEPEST = 200  # levels of arrays, objects and tables
MOST_PARTS = 16  # of a dotted key

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w.\"'-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}", re.ASCII)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raises: tomllib.TOMLDecodeError, with the place, also if it is too long or too deep.
    """
    if len(text) > LONGEST:
        raise tomllib.TOMLDecodeError(too_long(len(text)))
    if dotted := _DOTTED.search(text):
        line, column = _place(text, dotted.start())
        what = f"a key of more than {MOST_PARTS} parts"
        raise tomllib.TOMLDecodeError(f"{what} (at line {line}, column {column})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        line, column = _place(text, _deep(text))
        what = f"nested deeper than {DEEPEST} levels"
        raise tomllib.TOMLDecodeError(f"{what} (at line {line}, column {column})") from None


def parse_json(text: str | bytes, **options: Any) -> Any:  # noqa: ANN401 - any JSON
    """Parse a JSON text, or its UTF-8; `options` are those of `json.loads`.

    Raises: json.JSONDecodeError, also if it is too deep; ValueError if it is not valid UTF-8.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        what = f"nested deeper than {DEEPEST} levels"
        raise json.JSONDecodeError(what, text, _deep(text)) from None


def too_long(length: int) -> str:
    """Say that a text is too long to be settings."""
    return f"it has {length} characters, expected at most {LONGEST}"


def _deep(text: str) -> int:
    """Return the offset of the bracket that is one too deep; 0 if there is none."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > DEEPEST:
            return token.start()
    return 0


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
