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
_MOST_TOLD = 20  # tests that are gone from a file, one by one
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
    before = [test for n, one in enumerate(sources) for test in _read_tests(n, one.before)]
    after = [test for n, one in enumerate(sources) for test in _read_tests(n, one.after)]
    pairs, gone = _match(before, after)
    rows = _new_rows(sources)
    unsaid = [test for test in gone if not any(_is_said(one, rows) for one in test.asserts)]
    yield from _removed(sources, unsaid, before)
    missing = Counter(one for test in before for one in test.asserts.elements())
    missing.subtract(one for test in after for one in test.asserts.elements())
    for old, new in sorted(pairs, key=lambda pair: (pair[1].file, pair[1].line)):
        lost = [one for one in (old.asserts - new.asserts).elements() if missing[one] > 0]
        came = [one for one in (new.asserts - old.asserts).elements() if missing[one] < 0]
        unsaid_one = next((one for one in lost if not _is_said(one, rows)), "")
        if len(lost) > len(came) and unsaid_one:
            place = f"in {new.name}" if new.name else "beside tests"
            count = f"{old.asserts.total()} → {new.asserts.total()}"
            detail = f"{place}: {count}, without `{unsaid_one[:_SHOWN]}`"
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
    for found in pattern("languages", side.language, "asserts").finditer(side.code):
        line = side.line_of(found)
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
    found: dict[int, tuple[int, str]] = {}
    for one in patterns()["languages"][side.language].get("tests", ()):
        for head in re.finditer(one, side.code, re.MULTILINE):
            groups = head.groupdict()
            place, name = head.start("name" if groups.get("name") else "quote"), groups.get("name")
            end = side.code.find(groups.get("quote") or "\n", place + 1)
            line = bisect_right(side.ends, place) + 1
            found.setdefault(place, (line, name or side.text[place + 1 : end]))
    return sorted(found.values())


def _end_of_body(lines: list[str], head: int) -> int:
    """Return the line behind a function that begins on a line, by its indentation."""
    own = _indent_of(lines[head])
    for number in range(head + 1, len(lines)):
        text = lines[number].strip()
        if text and _indent_of(lines[number]) <= own and not text.startswith(_GOES_ON):
            return number
    return len(lines)


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def _match(before: list[Test], after: list[Test]) -> tuple[list[tuple[Test, Test]], list[Test]]:
    """Match the tests of both sides; return the pairs, and removed tests."""
    pairs, old, new = pair_by(lambda test: (test.file, test.name), before, after)
    old, new = [one for one in old if one.name], [one for one in new if one.name]
    moved, old, new = pair_by(lambda test: test.name, old, new)
    renamed, old, _ = pair_by(_content, old, new)
    return [*pairs, *moved, *renamed], old


def _content(test: Test) -> frozenset[tuple[str, int]]:
    """Return what a test keeps under another name. Many have the same single assertion."""
    return frozenset((test.asserts if test.asserts.total() > 1 else test.body).items())


def _new_rows(sources: tuple[SourceFile, ...]) -> dict[str, list[Counter[str]]]:
    """Return the new lines of the tests, rows of a table or merged assertions: word → in which."""
    found: dict[str, list[Counter[str]]] = {}
    for one in sources:
        if one.after and one.after.is_test:
            for line in {*one.after.lines}.difference(one.before.lines if one.before else ()):
                row = Counter(_WORD.findall(line))
                for word in row:
                    found.setdefault(word, []).append(row)
    return found


def _is_said(text: str, rows: dict[str, list[Counter[str]]]) -> bool:
    """Return whether the values of an assertion appear together elsewhere."""
    words = _WORD.findall(text)
    values = [word for word in words if word[0] in "0123456789\"'`"]
    wanted = Counter(values if len(values) > 1 else words)
    rarest = min((rows.get(word, []) for word in wanted), key=len, default=[])
    return any(wanted <= row for row in rarest)


def _removed(
    sources: tuple[SourceFile, ...], gone: list[Test], before: list[Test]
) -> Iterable[Weakening]:
    for number, source in enumerate(sources):
        pair, tests = source.pair, [test for test in gone if test.file == number]
        names = first_few([test.name for test in tests], _NAMED)
        if pair.after is None:
            had = [one for one in before if one.file == number and (one.name or one.asserts)]
            if tests or (had and not any(one.name for one in had)):
                yield Weakening(pair.path, TEST_FILE_GONE, f"with {names or 'its assertions'}")
        elif len(tests) > _MOST_TOLD:
            yield Weakening(pair.path, TEST_GONE, f"{len(tests)} tests: {names}")
        else:
            where = f", of {pair.was}" if pair.was else ""
            for test in tests:
                detail = f"{test.name} (line {test.line} before{where})"
                yield Weakening(pair.path, TEST_GONE, detail)


# Marks


class Mark(Record):
    """One mark in a file. A mark that names several rules is one for each of them."""

    file: int
    what: str
    whose: str  # the tool, or the word itself
    rule: str  # empty: all of them
    about: str  # the code that it stands at
    line: int
    shown: str


def find_marks(sources: tuple[SourceFile, ...]) -> list[Weakening]:
    """Return the marks that are new."""
    before = [mark for file, one in enumerate(sources) for mark in _marks(file, one.before)]
    after = [mark for file, one in enumerate(sources) for mark in _marks(file, one.after)]
    _, before, after = pair_by(lambda m: (m.what, m.whose, m.rule, m.about), before, after)
    _, before, after = pair_by(lambda m: (m.file, m.what, m.whose, m.rule), before, after)
    # One that names some rules, where all of them had been meant before, is none.
    bare = [mark for mark in before if not mark.rule]
    lines = {(mark.file, mark.whose, mark.line): mark for mark in after if mark.rule}
    pairs, _, _ = pair_by(lambda mark: (mark.file, mark.whose), bare, lines.values())
    narrowed = {(new.file, new.whose, new.line) for _, new in pairs}
    found = (
        Weakening(sources[mark.file].pair.path, mark.what, mark.shown, mark.line)
        for mark in after
        if (mark.file, mark.whose, mark.line) not in narrowed
    )
    return list(dict.fromkeys(found))


def _marks(file: int, side: Side | None) -> Iterable[Mark]:
    if side is None:
        return
    if has_tests(side):
        for what, key in ((SKIPPED, "skips"), (ONLY, "only"), (EMPTY_ASSERTION, "empty")):
            for found in pattern("languages", side.language, key).finditer(side.code):
                number, word = side.line_of(found), "".join(found.group().split())
                line = side.lines[number - 1]
                yield Mark(file, what, word, "", line, number, line)
    table = patterns()["languages"][side.language]
    for text, tools in (
        (side.comments, {**table.get("suppressions", {}), **patterns()["everywhere"]}),
        (side.text, table.get("attributes", {})),
    ):
        for whose, value in tools.items():
            for found in re.finditer(alternatives(value), text, re.MULTILINE):
                number = side.line_of(found)
                about, shown = side.about(number), side.whole_lines[number - 1]
                rules = _SEPARATORS.split(found.groupdict().get("codes") or "")
                for rule in sorted({rule for rule in rules if rule}) or [""]:
                    yield Mark(file, SUPPRESSED, whose, rule, about, number, shown)
