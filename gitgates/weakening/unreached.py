"""A test that returns before its assertions. Pure."""

from __future__ import annotations

import re

from gitgates.weakening.read_tests import indent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.read_tests import Test

_RETURN = re.compile(r"(?:return(?:\s+(?:None|0|true|Ok\(\(\)\)))?|exit\s+0|next)\s*;?$")
_ONE_LINE = re.compile(
    r"(?:if\b.*[\s:)}{]return(?:\s+None)?\s*;?\s*\}?|(?:return|next)\s+(?:if|unless)\s.*)$"
)
_IF = re.compile(r"if\b")


def find_unreached(test: Test) -> tuple[str, int] | None:
    """Return the line that leaves a test before an assertion of it, and its place; or None.

    Only one that stands by itself in the test, or in an `if` that does: what is deeper may be of a
    function in it.
    """
    last = max(test.places, default=-1)
    base = min((indent_of(line) for line in test.code if line.strip()), default=0)
    before, is_asserted = "", False
    for number, line in enumerate(test.code[: max(0, last)]):
        text = " ".join(line.split())
        if not text:
            continue
        own = indent_of(line)
        if _RETURN.match(text) and (
            own == base or (_is_under_if(before, base) and not is_asserted)
        ):
            return (text if own == base else f"{' '.join(before.split())} {text}"), number
        if own == base and _ONE_LINE.match(text) and not is_asserted:
            return text, number
        # What has just been claimed may be told to a type checker by an `if`.
        is_asserted = number in test.places or (is_asserted and bool(_IF.match(text)))
        before = line
    return None


def _is_under_if(line: str, base: int) -> bool:
    return indent_of(line) == base and bool(_IF.match(line.strip()))
