"""Find skipped tests, assertions that always hold, and suppressed warnings. Pure.

Net: what was there already, on the same line of code anywhere or in the same file, is not new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gitgates.record import Record
from gitgates.weakening.finding import (
    EMPTY_ASSERTION,
    ONLY,
    SKIPPED,
    SUPPRESSED,
    Weakening,
    alternatives,
    pair_by,
    pattern,
    patterns,
)
from gitgates.weakening.source import Side, SourceFile
from gitgates.weakening.tests import has_tests

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
