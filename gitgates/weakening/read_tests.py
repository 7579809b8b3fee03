"""The tests of a file: where each begins and ends, what it claims, for which cases. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right

from gitgates.record import Record
from gitgates.weakening.cases import rows_of
from gitgates.weakening.claims import Claim, read_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.languages import Language
    from gitgates.weakening.source import Side

    Places = list[tuple[int, str]]  # line and name of each test

_GOES_ON = (")", "]", "{", ">", "where ")  # a line that still belongs to the head of a function


class Test(Record):
    """One test."""

    file: int  # which of the sources
    syntax: str
    name: str
    line: int
    body: tuple[str, ...]
    code: tuple[str, ...]  # the lines behind its head, without what is in strings
    claims: tuple[Claim, ...]
    places: tuple[int, ...]  # which line of its code each claim begins on; -1: on its head
    rows: tuple[str, ...] = ()  # what it runs for
    loops: int = 1  # how often a loop in it runs


class TestFile(Record):
    """What one side of a file holds."""

    tests: tuple[Test, ...] = ()
    beside: tuple[Claim, ...] = ()  # assertions in no test, where the file is one of tests


def read_tests(file: int, side: Side | None, language: Language | None) -> TestFile:
    """Return the tests on one side of a file."""
    if side is None or language is None or not language.tests:
        return TestFile()
    if not (side.is_test or language.marks_tests):
        return TestFile()
    heads = sorted(_heads(side, language))
    lines = side.code.split("\n")
    ends = [_end_of_body(lines, line - 1) for line, _name in heads]
    claims = _claims(side, language, heads, ends)
    rows, loops = rows_of(
        side, language.syntax, [line for line, _ in heads], lambda line: _owner(line, heads, ends)
    )
    plain = side.text.split("\n")
    tests = tuple(
        Test(
            file=file,
            syntax=language.syntax,
            name=name,
            line=line,
            body=tuple(text for row in plain[line:end] if (text := "".join(row.split()))),
            code=tuple(lines[line:end]),
            claims=tuple(claim for _, claim in claims.get(number, ())),
            places=tuple(place - line - 1 for place, _ in claims.get(number, ())),
            rows=tuple(rows.get(number, ())),
            loops=loops.get(number, 1),
        )
        for number, ((line, name), end) in enumerate(zip(heads, ends, strict=True))
    )
    beside = tuple(claim for _, claim in claims.get(-1, ())) if side.is_test else ()
    return TestFile(tests, beside)


def _claims(
    side: Side, language: Language, heads: Places, ends: list[int]
) -> dict[int, list[tuple[int, Claim]]]:
    """Return the assertions of each test, with their lines; under -1 those of none."""
    claims: dict[int, list[tuple[int, Claim]]] = {}
    for found in re.finditer(language.asserts, side.code, re.MULTILINE):
        text = found.group()
        owner = _owner(side.line_of(found.start()), heads, ends)
        # The white space may be of the line before.
        place = found.start() + len(text) - len(text.lstrip())
        one = (side.line_of(place), read_claim(side, place))
        claims.setdefault(owner, []).append(one)
    return claims


def _heads(side: Side, language: Language) -> Iterable[tuple[int, str]]:
    """Return line and name of each test."""
    seen = set()
    for pattern in language.tests:
        for found in re.finditer(pattern, side.code, re.MULTILINE | re.DOTALL):
            groups = found.groupdict()
            if groups.get("name"):
                place, name = found.start("name"), groups["name"]
            else:
                place = found.start("quote")
                name = side.text[place + 1 : side.code.find(groups["quote"], place + 1)]
            if place not in seen:
                seen.add(place)
                yield side.line_of(place), name


def _end_of_body(lines: list[str], head: int) -> int:
    """Return the line behind a function that begins on a line, told by how far it is set in."""
    own = indent_of(lines[head])
    for number in range(head + 1, len(lines)):
        text = lines[number].strip()
        if text and indent_of(lines[number]) <= own and not text.startswith(_GOES_ON):
            return number
    return len(lines)


def indent_of(line: str) -> int:
    """Return how far a line is set in."""
    return len(line) - len(line.lstrip())


def _owner(line: int, heads: Places, ends: list[int]) -> int:
    """Return which test a line is in; -1: in none."""
    number = bisect_right(heads, (line, "\U0010ffff")) - 1
    return number if number >= 0 and line <= max(ends[number], heads[number][0]) else -1
