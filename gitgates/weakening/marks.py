"""Tests that are skipped, assertions that always hold, tools that are told to look away. Pure.

Net: what was there already, on the same line of code anywhere or in the same file, is not new.
"""

from __future__ import annotations

import re

from gitgates.record import Record
from gitgates.weakening.finding import (
    EMPTY_ASSERTION,
    ONLY,
    SKIPPED,
    SUPPRESSED,
    Finding,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.weakening.languages import Language
    from gitgates.weakening.source import Side, Source

_SEPARATORS = re.compile(r"[\s,\"'{}]+")


class Mark(Record):
    """One mark in a file. A mark that names several rules is one for each of them."""

    file: int
    what: str
    whose: str  # the tool, or the word itself
    rule: str  # empty: all of them
    about: str  # the code that it stands at
    line: int
    shown: str


def find_marks(sources: tuple[Source, ...]) -> list[Finding]:
    """Return the marks that are new."""
    before = [
        mark for file, one in enumerate(sources) for mark in _marks(file, one.before, one.old)
    ]
    after = [mark for file, one in enumerate(sources) for mark in _marks(file, one.after, one.new)]
    keys: tuple[Callable[[Mark], object], ...] = (
        lambda mark: (mark.what, mark.whose, mark.rule, mark.about),
        lambda mark: (mark.file, mark.what, mark.whose, mark.rule),
    )
    for key in keys:
        before, after = _without_pairs(key, before, after)
    after = _without_narrowed(before, after)
    found = (
        Finding(sources[mark.file].pair.path, mark.what, mark.shown, mark.line) for mark in after
    )
    return list(dict.fromkeys(found))


def _marks(file: int, side: Side | None, language: Language | None) -> Iterable[Mark]:
    if side is None or language is None:
        return
    if side.is_test or (language.marks_tests and _has_tests(side, language)):
        for what, pattern in (
            (SKIPPED, language.skips),
            (ONLY, language.only),
            (EMPTY_ASSERTION, language.empty),
        ):
            yield from _in_code(file, side, what, pattern)
    for texts, patterns in (
        (side.comments, language.suppressions),
        (side.text, language.attributes),
    ):
        for whose, pattern in patterns:
            for found in re.finditer(pattern, texts, re.MULTILINE):
                yield from _suppressed(file, side, whose, found)


def _has_tests(side: Side, language: Language) -> bool:
    flags = re.MULTILINE | re.DOTALL
    return any(re.search(pattern, side.code, flags) for pattern in language.tests)


def _in_code(file: int, side: Side, what: str, pattern: str) -> Iterable[Mark]:
    if not pattern:
        return
    for found in re.finditer(pattern, side.code, re.MULTILINE):
        text = found.group()
        place = found.start() + len(text) - len(text.lstrip())
        line = side.line_at(place)
        yield Mark(file, what, "".join(text.split()), "", line, side.line_of(place), line)


def _suppressed(file: int, side: Side, whose: str, found: re.Match[str]) -> Iterable[Mark]:
    text = found.group()
    place = found.start() + len(text) - len(text.lstrip())
    rules = _SEPARATORS.split(found.groupdict().get("codes") or "")
    for rule in sorted({rule for rule in rules if rule}) or [""]:
        yield Mark(
            file=file,
            what=SUPPRESSED,
            whose=whose,
            rule=rule,
            about=side.about(place),
            line=side.line_of(place),
            shown=side.whole_line_at(place),
        )


def _without_pairs(
    key: Callable[[Mark], object], before: list[Mark], after: list[Mark]
) -> tuple[list[Mark], list[Mark]]:
    """Return what is left of both where each mark takes its like away."""
    waiting: dict[object, list[Mark]] = {}
    for mark in before:
        waiting.setdefault(key(mark), []).append(mark)
    left = []
    for mark in after:
        found = waiting.get(key(mark))
        if found:
            found.pop(0)
        else:
            left.append(mark)
    return [mark for marks in waiting.values() for mark in marks], left


def _without_narrowed(before: list[Mark], after: list[Mark]) -> list[Mark]:
    """Leave out what names some rules where all of them had been meant."""
    bare: dict[tuple[int, str], int] = {}
    for mark in before:
        if not mark.rule:
            bare[mark.file, mark.whose] = bare.get((mark.file, mark.whose), 0) + 1
    narrowed: set[tuple[int, str, int]] = set()
    for mark in after:
        place = (mark.file, mark.whose, mark.line)
        if place not in narrowed and mark.rule and bare.get(place[:2], 0):
            bare[place[:2]] -= 1
            narrowed.add(place)
    return [mark for mark in after if (mark.file, mark.whose, mark.line) not in narrowed]
