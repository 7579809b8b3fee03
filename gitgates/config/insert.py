"""Insert tables, keys and array items into a TOML text; change or remove nothing of it. Pure.

A new table is a block of text beside ours, or at the end; tomlkit extends arrays and writes into
inline tables. Each way is tried and then verified by reading back: every character of the old text
is still there, in its order, and the new text means the old one and the addition, and nothing else.
"""

from __future__ import annotations

import json
import re
import tomllib
from itertools import chain, pairwise

import tomlkit
import tomlkit.exceptions

from gitgates.clean import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^[ \t]*\[.*\n?", re.MULTILINE)


class CannotInsert(Exception):
    """The text is written so that the addition fits nowhere."""


def insert(text: str, path: tuple[str, ...], value: object, comments: tuple[str, ...] = ()) -> str:
    """Return `text` with one more table, or key, which it does not have yet.

    Comments stand above the table, where it is no inline one. Raises: CannotInsert.
    """
    if isinstance(value, dict):
        candidates = _with_block(text, path, value, comments)
    else:
        candidates = _with_line(text, path, value)
    expected: dict[str, Any] = tomllib.loads(text)
    node = expected
    for name in path[:-1]:
        node = node.setdefault(name, {})
    node[path[-1]] = value
    return _verified(text, chain(candidates, _with_key(text, path, value)), expected)


def extend(text: str, path: tuple[str, ...], items: tuple[str, ...]) -> str:
    """Return `text` with more texts at the end of an array that it has.

    Raises: CannotInsert.
    """
    expected: dict[str, Any] = tomllib.loads(text)
    array = _at(expected, path)
    array += items
    return _verified(text, _with_items(text, path, items), expected)


def _verified(text: str, candidates: Iterator[str], expected: object) -> str:
    for new in candidates:
        rest = iter(new)
        if all(char in rest for char in text) and _means(new, expected):
            return new
    raise CannotInsert


def _means(text: str, expected: object) -> bool:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    # Unlike `==`, this tells 1 from true, and finds nan equal to nan.
    one, other = (json.dumps(one, sort_keys=True, default=repr) for one in (found, expected))
    return one == other


def _with_block(
    text: str, path: tuple[str, ...], entries: Mapping[str, object], comments: tuple[str, ...]
) -> Iterator[str]:
    """Behind the tables of the same kind, else behind our last one, else at the end."""
    block = "".join(f"# {one}\n" for one in comments) + render_table(path, entries)
    sections = _sections(text)
    for depth in (len(path) - 1, len(path) - 2):
        kin = [end for found, end in sections if found[:depth] == path[:depth] != ()]
        if kin:
            yield _with_gap(text, kin[-1], block)
    yield _with_gap(text, len(text), block)


def _with_line(text: str, path: tuple[str, ...], value: object) -> Iterator[str]:
    """As the last line of its table."""
    for found, end in _sections(text):
        if found == path[:-1]:
            gap = "" if text[:end].endswith("\n") else "\n"
            line = f"{gap}{_key(path[-1])} = {render_value(value)}\n"
            yield text[:end] + line.replace("\n", _line_end(text)) + text[end:]


def _sections(text: str) -> list[tuple[tuple[str, ...], int]]:
    """Return the path of each header, and where what belongs to it ends.

    A line of a text or array may look like a header: what is inserted there is found out by reading
    it back.
    """
    starts = [match.start() for match in _HEADER.finditer(text)]
    return [
        (
            _path_of(text[start:end]),
            start + _content_length(text[start:end], is_last=end == len(text)),
        )
        for start, end in pairwise([*starts, len(text)])
    ]


def _path_of(section: str) -> tuple[str, ...]:
    try:
        node: Any = tomllib.loads(section.partition("\n")[0])
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while node := node[-1] if isinstance(node, list) else node:
        name, node = next(iter(node.items()))
        path.append(name)
    return tuple(path)


def _content_length(section: str, *, is_last: bool) -> int:
    """Return how much of a section says something, with the comments right below it.

    Comments that lead over to the next header do not belong to it.
    """
    # str.splitlines would cut at form feeds and other characters that TOML allows in comments.
    lines = [line for line in re.split(r"(?<=\n)", section) if line]
    last = len(lines)
    while last and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
        last -= 1
    below = last
    while below < len(lines) and lines[below].strip():
        below += 1
    return len("".join(lines[: below if below < len(lines) or is_last else last]))


def _with_gap(text: str, position: int, block: str) -> str:
    """Insert a block, set apart from what is before and behind it by one empty line."""
    before, behind = text[:position], text[position:]
    gap = "" if not before or before.endswith(("\n\n", "\n\r\n")) else "\n"
    gap += "" if not before or before.endswith("\n") else "\n"
    gap_behind = "\n" if behind and not behind.startswith(("\n", "\r\n")) else ""
    return before + f"{gap}{block}{gap_behind}".replace("\n", _line_end(text)) + behind


def _line_end(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _with_key(text: str, path: tuple[str, ...], value: object) -> Iterator[str]:
    """As a key of the nearest table above that there is."""
    for depth in range(len(path) - 1, 0, -1):
        nested = value
        for name in reversed(path[depth + 1 :]):
            nested = {name: nested}
        try:
            document = tomlkit.parse(text)
            _at(document, path[:depth]).add(path[depth], tomlkit.value(render_value(nested)))
        except (tomlkit.exceptions.TOMLKitError, AttributeError, KeyError, TypeError):
            continue
        yield document.as_string()


def _with_items(text: str, path: tuple[str, ...], items: tuple[str, ...]) -> Iterator[str]:
    """As tomlkit appends them; it forgets the comma before a comment, which is put there first."""
    try:
        array = _at(tomlkit.parse(text), path)
        written = array.as_string()
        last = array[-1].as_string() if array else ""
    except (tomlkit.exceptions.TOMLKitError, AttributeError, KeyError, TypeError):
        return
    starts = [match.start() for match in re.finditer(re.escape(written), text)]
    ends = [match.end() for match in re.finditer(re.escape(last), written)] if last else []
    commas = (start + end for start in starts for end in reversed(ends))
    for with_comma in (text, *(f"{text[:at]},{text[at:]}" for at in commas)):
        try:
            document = tomlkit.parse(with_comma)
        except tomlkit.exceptions.TOMLKitError:
            continue
        array = _at(document, path)
        for item in items:
            array.append(tomlkit.value(render_value(item)))
        yield document.as_string()


def _at(node: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - of tomllib or of tomlkit
    for name in path:
        node = node[name]
    return node


def render_table(path: tuple[str, ...], entries: Mapping[str, object]) -> str:
    """Return a header and its keys, a line each."""
    lines = (f"{_key(name)} = {render_value(value)}\n" for name, value in entries.items())
    return f"[{'.'.join(map(_key, path))}]\n" + "".join(lines)


def render_value(value: object) -> str:
    """Return a value on one line; a table becomes an inline one."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {render_value(one)}" for name, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(render_value, value)) + "]"
    return _text(value) if isinstance(value, str) else str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # A command full of double quotes is easier to read between single ones.
    literal = ('"' in value or "\\" in value) and "'" not in value and value.isprintable()
    text = str(tomlkit.string(value, literal=literal).as_string())
    # What nobody sees is shown to who reads the file; it says the same.
    return "".join(char if visible(char) == char else f"\\U{ord(char):08x}" for char in text)
