"""Find removed tests, and removed assertions, in a test or beside all of them. Pure.

A test is known by its name: in its file, then anywhere else. One whose name is gone, but whose body
is there under a name that is new, was renamed. What is left over was removed. Assertions are
counted: one that has another in its place, or that has moved, is not missed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter

from gitgates.record import Record
from gitgates.weakening.finding import (
    ASSERTIONS_GONE,
    TEST_FILE_GONE,
    TEST_GONE,
    Weakening,
    pair_by,
    pattern,
    patterns,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.source import Side, SourceFile

_ALIKE = 0.5  # of two bodies' lines: then one test has become the other
_MOST_COMPARED = 40_000  # pairs of tests, all over the change
_NAMED = 5
_MOST_TOLD = 20  # tests that are gone from a file, one by one
_LONGEST = 4000  # characters of an assertion
_SHOWN = 120  # of one that is shown
_OPEN = ("(", "[", "{", "\\")
_GOES_ON = (")", "]", "{", ">", "where ")  # a line that still belongs to the head of a function
_BRACKET = re.compile(r"[(\[{)\]}]")
_WORD = re.compile(r"[\"'`][^\"'`\n]*[\"'`]|\w+(?:(?<=\d)\.\d+)?")


class Test(Record):
    """One test; without a name, all that a file of tests has beside them."""

    file: int  # which of the sources
    name: str
    line: int
    body: tuple[str, ...]  # its lines without white space
    asserts: tuple[str, ...]


def find_in_tests(sources: tuple[SourceFile, ...]) -> Iterable[Weakening]:
    """Yield tests and assertions that are gone."""
    before = [test for n, one in enumerate(sources) for test in _read_tests(n, one.before)]
    after = [test for n, one in enumerate(sources) for test in _read_tests(n, one.after)]
    pairs, gone = _match(before, after)
    rows = _new_rows(sources)
    yield from _removed(sources, [test for test in gone if not _is_in_rows(test, rows)], before)
    missing = Counter(one for test in before for one in test.asserts)
    missing.subtract(one for test in after for one in test.asserts)
    for old, new in sorted(pairs, key=lambda pair: (pair[1].file, pair[1].line)):
        if lost := _lost(old, new, missing, rows):
            place = f"in {new.name}" if new.name else "beside tests"
            count = f"{len(old.asserts)} → {len(new.asserts)}"
            detail = f"{place}: {count}, without `{lost[:_SHOWN]}`"
            yield Weakening(sources[new.file].pair.path, ASSERTIONS_GONE, detail, new.line)


def has_tests(side: Side) -> bool:
    """Return whether a runner may find tests in a file."""
    if side.is_test or not patterns()["languages"][side.language].get("marks_tests"):
        return side.is_test
    return bool(_heads(side))


def _read_tests(file: int, side: Side | None) -> list[Test]:
    """Return the tests on one side of a file, and what is beside them."""
    if side is None or not has_tests(side):
        return []
    heads = _heads(side)
    lines, code = side.text.split("\n"), side.code.split("\n")
    ends = [_end_of_body(code, line - 1) for line, _name in heads]
    asserts: dict[int, list[str]] = {}
    for found in pattern("languages", side.language, "asserts").finditer(side.code):
        text = found.group()
        owner = _owner(side.line_of(found.start()), heads, ends)
        # The white space may be of the line before.
        place = found.start() + len(text) - len(text.lstrip())
        asserts.setdefault(owner, []).append(_assertion(side, place))
    tests = [
        Test(
            file=file,
            name=name,
            line=line,
            body=tuple(_bare(lines[line:end])),
            asserts=tuple(asserts.get(number, ())),
        )
        for number, ((line, name), end) in enumerate(zip(heads, ends, strict=True))
    ]
    beside = Test(file=file, name="", line=0, body=(), asserts=tuple(asserts.get(-1, ())))
    return [*tests, beside] if side.is_test else tests


def _heads(side: Side) -> list[tuple[int, str]]:
    """Return line and name of each test."""
    found: dict[int, tuple[int, str]] = {}
    for one in patterns()["languages"][side.language].get("tests", ()):
        for head in re.finditer(one, side.code, re.MULTILINE):
            groups = head.groupdict()
            place, name = head.start("name" if groups.get("name") else "quote"), groups.get("name")
            end = side.code.find(groups.get("quote") or "\n", place + 1)
            found.setdefault(place, (side.line_of(place), name or side.text[place + 1 : end]))
    return sorted(found.values())


def _end_of_body(lines: list[str], head: int) -> int:
    """Return the line behind a function that begins on a line, told by how far it is set in."""
    own = _indent_of(lines[head])
    for number in range(head + 1, len(lines)):
        text = lines[number].strip()
        if text and _indent_of(lines[number]) <= own and not text.startswith(_GOES_ON):
            return number
    return len(lines)


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def _owner(line: int, heads: list[tuple[int, str]], ends: list[int]) -> int:
    """Return which test a line is in; -1: in none."""
    number = bisect_right(heads, (line, "\U0010ffff")) - 1
    return number if number >= 0 and line <= max(ends[number], heads[number][0]) else -1


def _assertion(side: Side, place: int) -> str:
    """Return an assertion: its line, or all of it where that ends in an open bracket."""
    line = side.line_at(place)
    if not line.endswith(_OPEN):
        return line
    depth = 0
    for found in _BRACKET.finditer(side.code, place, place + _LONGEST):
        depth += 1 if found.group() in "([{" else -1
        if depth <= 0:
            return " ".join(side.text[place : found.end()].split())
    return line


def _bare(lines: list[str]) -> Iterable[str]:
    return (text for line in lines if (text := "".join(line.split())))


def _match(before: list[Test], after: list[Test]) -> tuple[list[tuple[Test, Test]], list[Test]]:
    """Return each test with what has become of it, and those that are gone."""
    pairs, old, new = pair_by(lambda test: (test.file, test.name), before, after)
    old, new = [one for one in old if one.name], [one for one in new if one.name]
    moved, old, new = pair_by(lambda test: test.name, old, new)
    pairs += moved
    if len(old) * len(new) > _MOST_COMPARED:
        return pairs, old
    gone = []
    for test in old:
        likeness = [(*_likeness(test, one), -number) for number, one in enumerate(new)]
        best = max(likeness, default=(0.0, False, 0))
        if best[0] < _ALIKE:
            gone.append(test)
        else:
            pairs.append((test, new.pop(-best[2])))
    return pairs, gone


def _likeness(one: Test, other: Test) -> tuple[float, bool]:
    common = sum((Counter(one.body) & Counter(other.body)).values())
    length = len(one.body) + len(other.body)
    return (2 * common / length if length else 0.0), one.file == other.file


def _new_rows(sources: tuple[SourceFile, ...]) -> list[set[str]]:
    """Return the words of each line that is new, in files that have got a table of cases."""
    rows: list[set[str]] = []
    for one in sources:
        if one.after and one.after.is_test:
            before = one.before.code if one.before else ""
            tables = pattern("test_files", "tables").findall
            if len(tables(one.after.code)) > len(tables(before)):
                old = set(one.before.text.split("\n") if one.before else ())
                rows += [_words(line) for line in one.after.text.split("\n") if line not in old]
    return rows


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _is_restated(text: str, others: Iterable[set[str]]) -> bool:
    """Return whether the values of an assertion stand together again; without any, its words."""
    words = _words(text)
    values = {word for word in words if word[0] in "0123456789\"'`"}
    return any((values or words) <= other for other in others)


def _is_in_rows(test: Test, rows: list[set[str]]) -> bool:
    return any(_is_restated(one, rows) for one in test.asserts)


def _lost(old: Test, new: Test, missing: Counter[str], rows: list[set[str]]) -> str:
    """Return the first assertion that a test has lost without another instead; or nothing.

    `missing` counts those that are gone all over the change; negative ones are new.
    """
    gone = _take(Counter(old.asserts) - Counter(new.asserts), missing, 1)
    came = _take(Counter(new.asserts) - Counter(old.asserts), missing, -1)
    if len(gone) <= len(came):
        return ""
    merged = [*rows, *map(_words, came)]
    return next((one for one in gone if not _is_restated(one, merged)), "")


def _take(wanted: Counter[str], stock: Counter[str], sign: int) -> list[str]:
    """Return what is wanted as far as it is in stock, and take it out of that."""
    taken = []
    for one in wanted.elements():
        if stock[one] * sign > 0:
            stock[one] -= sign
            taken.append(one)
    return taken


def _removed(
    sources: tuple[SourceFile, ...], gone: list[Test], before: list[Test]
) -> Iterable[Weakening]:
    for number, source in enumerate(sources):
        pair, tests = source.pair, [test for test in gone if test.file == number]
        if pair.after is None:
            had = [one for one in before if one.file == number and (one.name or one.asserts)]
            if tests or (had and not any(one.name for one in had)):
                detail = f"with {_names(tests)}" if tests else "with its assertions"
                yield Weakening(pair.path, TEST_FILE_GONE, detail)
        elif len(tests) > _MOST_TOLD:
            yield Weakening(pair.path, TEST_GONE, f"{len(tests)} tests: {_names(tests)}")
        else:
            where = f", of {pair.was}" if pair.was else ""
            for test in tests:
                yield Weakening(
                    pair.path, TEST_GONE, f"{test.name} (line {test.line} before{where})"
                )


def _names(tests: list[Test]) -> str:
    more = f" and {len(tests) - _NAMED} more" if len(tests) > _NAMED else ""
    return f"{', '.join(test.name for test in tests[:_NAMED])}{more}"
