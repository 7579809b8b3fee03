"""Insert tables and array items into a TOML text; never change or remove a character of it. Pure.

Every insertion is tried and then judged by a parser of its own: the new text must mean the old one
and the addition, and nothing else. So it does not matter whether tables are written with headers,
with dotted keys or inline, in whatever order: a place that does not do is not taken. tomlkit finds
and renders values; it does not write documents, because it loses commas behind comments and moves
tables that are out of order.
"""

from __future__ import annotations

import json
import re
import tomllib

import tomlkit
import tomlkit.exceptions
from tomlkit.items import Array, InlineTable, Item

from gitgates.config.render import render_entries, render_table, render_value
from gitgates.config.sections import Section, end_of_content, loads, split
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_ARRAY_TOKEN = re.compile(r"""#[^\n]*|"(?:\\.|[^"\\])*"|'[^']*'|,""")


class NoPlace(Exception):
    """The text is written so that the addition fits nowhere."""


class Insertion(Record):
    """Some text and where it goes. Several of them stand in the order of their positions."""

    position: int
    text: str


def insert_table(text: str, path: tuple[str, ...], entries: Mapping[str, object]) -> str:
    """Return `text` with one more table, which it does not have yet.

    Raises: NoPlace.
    """
    tries = (_beside, _at_the_end, _dotted, _inline)
    candidates = (found for attempt in tries for found in attempt(text, path, entries))
    return _first_that_fits(text, candidates, (path, dict(entries)))


def insert_key(text: str, path: tuple[str, ...], value: object) -> str:
    """Return `text` with one more key in a table that it has.

    Raises: NoPlace.
    """
    *table, name = path
    tries = (_dotted, _inline)
    candidates = (
        found for attempt in tries for found in attempt(text, tuple(table), {name: value})
    )
    return _first_that_fits(text, candidates, (path, value))


def extend_array(text: str, path: tuple[str, ...], items: tuple[str, ...]) -> str:
    """Return `text` with more texts at the end of an array that it has.

    Raises: NoPlace.
    """
    value: Any = loads(text)
    for name in path:
        value = value[name]
    candidates = (
        tuple(Insertion(start + at.position, at.text) for at in _array_insertions(written, items))
        for written, start in _find(text, path, Array)
    )
    return _first_that_fits(text, candidates, (path, [*value, *items]))


def line_end_of(text: str) -> str:
    """Return the line end that most lines of a text have."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _first_that_fits(
    text: str,
    candidates: Iterator[tuple[Insertion, ...]],
    addition: tuple[tuple[str, ...], object],
) -> str:
    expected = loads(text)
    _put(expected, *addition)
    for insertions in candidates:
        new = _apply(text, insertions)
        try:
            if _fingerprint(loads(new)) == _fingerprint(expected):
                return new
        except tomllib.TOMLDecodeError:
            continue
    raise NoPlace


def _apply(text: str, insertions: tuple[Insertion, ...]) -> str:
    for position, addition in reversed(insertions):
        text = text[:position] + addition + text[position:]
    return text


def _put(tables: dict[str, object], path: tuple[str, ...], value: object) -> None:
    node = tables
    for name in path[:-1]:
        node = node.setdefault(name, {})  # type: ignore[assignment]
    node[path[-1]] = value


def _fingerprint(tables: object) -> str:
    # Unlike `==`, this tells 1 from true, and finds nan equal to nan.
    return json.dumps(tables, sort_keys=True, default=repr)


def _beside(
    text: str, path: tuple[str, ...], entries: Mapping[str, object]
) -> Iterator[tuple[Insertion, ...]]:
    """Behind the tables of the same kind, else behind our last one."""
    sections = split(text)
    for depth in (len(path) - 1, len(path) - 2):
        kin = [section for section in sections if depth and section.path[:depth] == path[:depth]]
        if kin:
            yield _block(text, end_of_content(text, kin[-1]), render_table(path, entries))


def _at_the_end(
    text: str, path: tuple[str, ...], entries: Mapping[str, object]
) -> Iterator[tuple[Insertion, ...]]:
    yield _block(text, len(text), render_table(path, entries))


def _block(text: str, position: int, block: str) -> tuple[Insertion, ...]:
    """Set a block apart from what is before and behind it by one empty line."""
    before, behind = text[:position], text[position:]
    gap_before = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    if before.endswith(("\n\n", "\n\r\n")):
        gap_before = ""
    gap_behind = "\n" if behind and not behind.startswith(("\n", "\r\n")) else ""
    block = f"{gap_before}{block}{gap_behind}".replace("\n", line_end_of(text))
    return (Insertion(position, block),)


def _dotted(
    text: str, path: tuple[str, ...], entries: Mapping[str, object]
) -> Iterator[tuple[Insertion, ...]]:
    """As dotted keys in the nearest table above."""
    for section in reversed(_above(text, path)):
        position = end_of_content(text, section)
        lines = render_entries(path[len(section.path) :], entries)
        gap = "\n" if text[:position] and not text[:position].endswith("\n") else ""
        yield (Insertion(position, f"{gap}{lines}".replace("\n", line_end_of(text))),)


def _inline(
    text: str, path: tuple[str, ...], entries: Mapping[str, object]
) -> Iterator[tuple[Insertion, ...]]:
    """Into the nearest inline table above."""
    for depth in range(len(path), 0, -1):
        nested = dict(entries)
        for name in reversed(path[depth:]):
            nested = {name: nested}
        addition = render_value(nested).removeprefix("{ ").removesuffix(" }")
        for written, start in _find(text, path[:depth], InlineTable):
            inside = written[1:-1].rstrip()
            comma = ", " if inside.strip() else " "
            space = "" if written[1:-1] != inside else " "
            yield (Insertion(start + 1 + len(inside), f"{comma}{addition}{space}"),)


def _above(text: str, path: tuple[str, ...]) -> list[Section]:
    found = [section for section in split(text) if section.path == path[: len(section.path)]]
    return sorted(found, key=lambda section: len(section.path))


def _find(text: str, path: tuple[str, ...], kind: type[Item]) -> Iterator[tuple[str, int]]:
    """Yield how the value at `path` may be written, and each place where that text stands."""
    for section in reversed(_above(text, path)):
        body = text[section.body : section.end]
        written = _written(body, path[len(section.path) :], kind)
        position = body.find(written) if written else -1
        while position >= 0:
            yield written, section.body + position
            position = body.find(written, position + 1)


def _written(body: str, path: tuple[str, ...], kind: type[Item]) -> str:
    try:
        node: Any = tomlkit.parse(body)
        for name in path:
            node = node[name]
    except (tomlkit.exceptions.TOMLKitError, KeyError, TypeError):
        return ""
    return node.as_string() if isinstance(node, kind) else ""


def _array_insertions(written: str, items: tuple[str, ...]) -> tuple[Insertion, ...]:
    """Return what makes `["a"]` into `["a", "b"]`, in the array's own manner."""
    rendered = [render_value(item) for item in items]
    tokens = [match for match in _ARRAY_TOKEN.finditer(written) if match[0][0] != "#"]
    values = [match for match in tokens if match[0] != ","]
    if not values:
        return (Insertion(1, ", ".join(rendered)),)
    last = values[-1]
    has_comma = tokens[-1].start() > last.start()
    line = written[: last.start()].rpartition("\n")
    line_end = written.find("\n", last.end())
    if not line[1] or line[2].strip() or line_end < 0:
        inside = "".join(f", {item}" for item in rendered)
        return (Insertion(last.end(), inside),)
    if written[line_end - 1] == "\r":
        line_end -= 1
    end = "\r\n" if "\r\n" in written else "\n"
    lines = [f"{end}{line[2]}{item}" for item in rendered]
    if has_comma:
        return (Insertion(line_end, ",".join(lines) + ","),)
    return (Insertion(last.end(), ","), Insertion(line_end, ",".join(lines)))
