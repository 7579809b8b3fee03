"""Tests and assertions that have become rows of a table: none of them is gone. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.read_tests import Test

_LITERAL = re.compile(r"(?<![\w.])\d[\w.]*|[\"'`][^\"'`\n]*[\"'`]")


def is_merged(old: Test, new: Test) -> bool:
    """Tell whether a test makes up for its fewer assertions by running for more rows."""
    was, now = max(1, len(old.rows)) * old.loops, max(1, len(new.rows)) * new.loops
    return now > was and len(new.claims) * now >= len(old.claims) * was


def is_in_rows(test: Test, rows: tuple[str, ...]) -> bool:
    """Tell whether the values of a test that is gone stand in a row that is new.

    Values are numbers and texts of its assertions; without any, it is in none.
    """
    for claim in test.claims:
        values = set(_LITERAL.findall(claim.shown))
        if values and any(values <= set(_LITERAL.findall(row)) for row in rows):
            return True
    return False
