"""Find where each table stands in a TOML text. Pure; changes nothing.

TOML parsers say what a text means and not where. A line that starts with `[` is a header only where
no array or multi-line text is open; that is so exactly if everything since the last header parses.
"""

from __future__ import annotations

import re
import tomllib

from gitgates.record import Record


class Section(Record):
    """One header and what belongs to it. Positions count characters of the text."""

    path: tuple[str, ...]  # (): what stands before the first header
    start: int  # the header line; its body where there is none
    body: int  # behind the header line
    end: int


def split(text: str) -> tuple[Section, ...]:
    """Return the sections of a valid TOML text, in order; they cover it without a gap."""
    found: list[Section] = []
    path: tuple[str, ...] = ()
    start = body = position = 0
    for line in _lines(text):
        if line.lstrip(" \t").startswith("[") and parses(text[start:position]):
            found.append(Section(path, start, body, position))
            path, start, body = _path_of(line), position, position + len(line)
        position += len(line)
    return (*found, Section(path, start, body, position))


def end_of_content(text: str, section: Section) -> int:
    """Return the position behind the last line of a section that says something.

    Comments right below it belong to it, unless they lead over to the next header.
    """
    lines = _lines(text[section.start : section.end])
    last = len(lines)
    while last and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
        last -= 1
    below = last
    while below < len(lines) and lines[below].strip():
        below += 1
    if below < len(lines) or section.end == len(text):
        last = below
    return section.start + sum(map(len, lines[:last]))


def loads(text: str) -> dict[str, object]:
    """Parse TOML. Raises: tomllib.TOMLDecodeError."""
    return tomllib.loads(text.replace("\r\n", "\n"))


def parses(text: str) -> bool:
    """Tell whether a text is TOML."""
    try:
        loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _path_of(header: str) -> tuple[str, ...]:
    path: list[str] = []
    node: object = loads(header)
    while True:
        if isinstance(node, list):
            node = node[-1]
        if not isinstance(node, dict) or not node:
            return tuple(path)
        name, node = next(iter(node.items()))
        path.append(name)


def _lines(text: str) -> list[str]:
    # str.splitlines would cut at form feeds and other characters that TOML allows in comments.
    return [line for line in re.split(r"(?<=\n)", text) if line]
