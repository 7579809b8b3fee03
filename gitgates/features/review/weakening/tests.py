"""Find removed tests and assertions, skipped tests, and suppressed warnings. Pure.

A test is known by its name: in its file, then anywhere else. One whose name is gone, but whose
assertions (or, with fewer than two, whose body) are there under a name that is new, was renamed.
What is left over was removed. So a test that was renamed and edited at once is listed as removed,
unless the values of an assertion stand together on a new line: the reviewer looks once more than
needed, rather than once less.

Assertions are counted: one that has another in its place, that has moved, or whose values stand
together on a new line, is not missed. A skip, or a suppression, that was there already, on the same
line of code anywhere or in the same file, is not new.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from gitgates.core.clean import first_few
from gitgates.core.record import Record
from gitgates.features.review.weakening.finding import (
    ASSERTIONS_GONE,
    EMPTY_ASSERTION,
    ONLY,
    SKIPPED,
    SUPPRESSED,
    TEST_FILE_GONE,
    TEST_GONE,
    Weakening,
    alternatives,
    pair_by,
    pattern,
    patterns,
)
from gitgates.features.review.weakening.source import Side, SourceFile

_NAMED = 5
_MOST_LISTED = 20  # tests that are gone from a file, one by one
_SHOWN = 120  # characters of an assertion
_GOES_ON = (")", "]", "{", ">", "where ")  # a line that still belongs to the head of a function
_SEPARATORS = re.compile(r"[\s,\"'{}]+")
_WORD = re.compile(r"[\"'`][^\"'`\n]*[\"'`]|\w+(?:(?<=\d)\.\d+)?")


class Test(Record):
    """One test; without a name, the rest of a test file."""

    file: int  # which of the sources
    name: str
    line: int
    body: Counter[str]  # its lines
    asserts: Counter[str]


def find_in_tests(sources: tuple[SourceFile, ...]) -> Iterable[Weakening]:
    """Yield tests and assertions that are gone."""
    before = [test for n, source in enumerate(sources) for test in _read_tests(n, source.before)]
    after = [test for n, source in enumerate(sources) for test in _read_tests(n, source.after)]
    pairs, removed = _match(before, after)
    rows = _new_rows(sources)
    unaccounted = [
        test
        for test in removed
        if not any(_appears_elsewhere(assertion, rows) for assertion in test.asserts)
    ]
    yield from _removed(sources, unaccounted, before)
    missing = Counter(assertion for test in before for assertion in test.asserts.elements())
    missing.subtract(assertion for test in after for assertion in test.asserts.elements())
    for old, new in sorted(pairs, key=lambda pair: (pair[1].file, pair[1].line)):
        dropped = [
            assertion
            for assertion in (old.asserts - new.asserts).elements()
            if missing[assertion] > 0
        ]
        added = [
            assertion
            for assertion in (new.asserts - old.asserts).elements()
            if missing[assertion] < 0
        ]
        example = next(
            (assertion for assertion in dropped if not _appears_elsewhere(assertion, rows)), ""
        )
        if len(dropped) > len(added) and example:
            place = f"in {new.name}" if new.name else "beside tests"
            count = f"{old.asserts.total()} → {new.asserts.total()}"
            detail = f"{place}: {count}, without `{example[:_SHOWN]}`"
            yield Weakening(sources[new.file].pair.path, ASSERTIONS_GONE, detail, new.line)


def has_tests(side: Side) -> bool:
    """Return whether a runner may find tests in a file."""
    marks_tests = patterns()["languages"][side.language].get("marks_tests")
    return side.is_test or bool(marks_tests and _heads(side))


def _read_tests(file: int, side: Side | None) -> list[Test]:
    """Return the tests on one side of a file, and what is beside them."""
    if side is None or not has_tests(side):
        return []
    heads, code = _heads(side), side.code.split("\n")
    ends = [_end_of_body(code, line - 1) for line, _name in heads]
    asserts: dict[int, Counter[str]] = {}
    for match in pattern("languages", side.language, "asserts").finditer(side.code):
        line = side.line_of(match)
        number = bisect_right(heads, (line, "\U0010ffff")) - 1
        owner = number if number >= 0 and line <= max(ends[number], heads[number][0]) else -1
        asserts.setdefault(owner, Counter())[side.lines[line - 1]] += 1
    tests = [
        Test(
            file=file,
            name=name,
            line=line,
            body=Counter(filter(None, side.lines[line:end])),
            asserts=asserts.get(number, Counter()),
        )
        for number, ((line, name), end) in enumerate(zip(heads, ends, strict=True))
    ]
    beside = Test(file=file, name="", line=0, body=Counter(), asserts=asserts.get(-1, Counter()))
    return [*tests, beside] if side.is_test else tests


def _heads(side: Side) -> list[tuple[int, str]]:
    """Return line and name of each test."""
    heads: dict[int, tuple[int, str]] = {}
    for regex in patterns()["languages"][side.language].get("tests", ()):
        for head in re.finditer(regex, side.code, re.MULTILINE):
            groups = head.groupdict()
            place, name = head.start("name" if groups.get("name") else "quote"), groups.get("name")
            end = side.code.find(groups.get("quote") or "\n", place + 1)
            line = bisect_right(side.ends, place) + 1
            heads.setdefault(place, (line, name or side.text[place + 1 : end]))
    return sorted(heads.values())


def _end_of_body(lines: list[str], head: int) -> int:
    """Return the line after a function that begins on a line, by its indentation."""
    indent = _indent_of(lines[head])
    for number in range(head + 1, len(lines)):
        text = lines[number].strip()
        if text and _indent_of(lines[number]) <= indent and not text.startswith(_GOES_ON):
            return number
    return len(lines)


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def _match(before: list[Test], after: list[Test]) -> tuple[list[tuple[Test, Test]], list[Test]]:
    """Match the tests of both sides; return the pairs, and removed tests."""
    pairs, old, new = pair_by(lambda test: (test.file, test.name), before, after)
    old, new = [test for test in old if test.name], [test for test in new if test.name]
    moved, old, new = pair_by(lambda test: test.name, old, new)
    renamed, old, _ = pair_by(_content, old, new)
    return [*pairs, *moved, *renamed], old


def _content(test: Test) -> frozenset[tuple[str, int]]:
    """Return what a renamed test keeps. Many have the same single assertion."""
    return frozenset((test.asserts if test.asserts.total() > 1 else test.body).items())


def _new_rows(sources: tuple[SourceFile, ...]) -> dict[str, list[Counter[str]]]:
    """Return the new lines of the tests, rows of a table or merged assertions: word → in which."""
    rows_by_word: dict[str, list[Counter[str]]] = {}
    for source in sources:
        if source.after and source.after.is_test:
            for line in {*source.after.lines}.difference(
                source.before.lines if source.before else ()
            ):
                row = Counter(_WORD.findall(line))
                for word in row:
                    rows_by_word.setdefault(word, []).append(row)
    return rows_by_word


def _appears_elsewhere(text: str, rows: dict[str, list[Counter[str]]]) -> bool:
    """Return whether the values of an assertion appear together elsewhere."""
    words = _WORD.findall(text)
    values = [word for word in words if word[0] in "0123456789\"'`"]
    needed = Counter(values if len(values) > 1 else words)
    rarest = min((rows.get(word, []) for word in needed), key=len, default=[])
    return any(needed <= row for row in rarest)


def _removed(
    sources: tuple[SourceFile, ...], removed: list[Test], before: list[Test]
) -> Iterable[Weakening]:
    for number, source in enumerate(sources):
        pair, tests = source.pair, [test for test in removed if test.file == number]
        names = first_few([test.name for test in tests], _NAMED)
        if pair.after is None:
            previous = [
                test for test in before if test.file == number and (test.name or test.asserts)
            ]
            if tests or (previous and not any(test.name for test in previous)):
                yield Weakening(pair.path, TEST_FILE_GONE, f"with {names or 'its assertions'}")
        elif len(tests) > _MOST_LISTED:
            yield Weakening(pair.path, TEST_GONE, f"{len(tests)} tests: {names}")
        else:
            origin = f", of {pair.renamed_from}" if pair.renamed_from else ""
            for test in tests:
                detail = f"{test.name} (line {test.line} before{origin})"
                yield Weakening(pair.path, TEST_GONE, detail)


# Marks


class Mark(Record):
    """One mark in a file. A mark that names several rules is one for each of them."""

    file: int
    what: str
    whose: str  # the tool, or the word itself
    rule: str  # empty: all of them
    about: str  # the code that it applies to
    line: int
    excerpt: str


def find_marks(sources: tuple[SourceFile, ...]) -> list[Weakening]:
    """Return the marks that are new."""
    before = [mark for file, source in enumerate(sources) for mark in _marks(file, source.before)]
    after = [mark for file, source in enumerate(sources) for mark in _marks(file, source.after)]
    _, before, after = pair_by(lambda m: (m.what, m.whose, m.rule, m.about), before, after)
    _, before, after = pair_by(lambda m: (m.file, m.what, m.whose, m.rule), before, after)
    # A mark for some rules that replaces one for all rules is not new.
    bare = [mark for mark in before if not mark.rule]
    lines = {(mark.file, mark.whose, mark.line): mark for mark in after if mark.rule}
    pairs, _, _ = pair_by(lambda mark: (mark.file, mark.whose), bare, lines.values())
    narrowed = {(new.file, new.whose, new.line) for _, new in pairs}
    findings = (
        Weakening(sources[mark.file].pair.path, mark.what, mark.excerpt, mark.line)
        for mark in after
        if (mark.file, mark.whose, mark.line) not in narrowed
    )
    return list(dict.fromkeys(findings))


def _marks(file: int, side: Side | None) -> Iterable[Mark]:
    if side is None:
        return
    if has_tests(side):
        for what, key in ((SKIPPED, "skips"), (ONLY, "only"), (EMPTY_ASSERTION, "empty")):
            for match in pattern("languages", side.language, key).finditer(side.code):
                number, word = side.line_of(match), "".join(match.group().split())
                line = side.lines[number - 1]
                yield Mark(file, what, word, "", line, number, line)
    table = patterns()["languages"][side.language]
    for text, tools in (
        (side.comments, {**table.get("suppressions", {}), **patterns()["everywhere"]}),
        (side.text, table.get("attributes", {})),
    ):
        for whose, value in tools.items():
            for match in re.finditer(alternatives(value), text, re.MULTILINE):
                number = side.line_of(match)
                about, excerpt = side.about(number), side.whole_lines[number - 1]
                rules = _SEPARATORS.split(match.groupdict().get("codes") or "")
                for rule in sorted({rule for rule in rules if rule}) or [""]:
                    yield Mark(file, SUPPRESSED, whose, rule, about, number, excerpt)
