"""Assertions whose failure is caught, and nothing made of it. Pure."""

from __future__ import annotations

import re

from gitgates.weakening.read_tests import indent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.read_tests import Test

_LONGEST = 20_000  # characters of a block
_WIDE = r"\b(?:AssertionError|Exception|BaseException)\b"
_EXCEPT = re.compile(rf"except\s*(?:\*?\s*\(?[^:]*{_WIDE}[^:]*)?:(?P<rest>.*)$")
_SUPPRESS = re.compile(rf"with\b.*\bsuppress\(.*{_WIDE}")
_HANDLED = re.compile(
    r"\b(?:raise|throw|assert\w*|expect|fail\w*|reject|panic|abort|exit|skip|xfail)\b|\.(?:fail|Fail)\b"
    r"|\b(?:done|next|cb|callback)\("
)
_RESCUE = re.compile(r"rescue\b.*(?:\bException\b|ExpectationNotMetError|Minitest::Assertion)")
_TRY = re.compile(r"\btry\s*(?=\{)")
_CATCH = re.compile(r"\s*catch\b\s*(?P<what>\([^)]*\))?[^{}\n]*(?=\{)")
# family → what a catch must name, so that the failure of an assertion is caught
_CAUGHT = {
    "js": re.compile(""),
    "c": re.compile(
        r"^$|AssertionError|Throwable|\bError\b|XunitException|AssertionException|AssertFailed"
    ),
    "php": re.compile(r"Throwable|\bException\b|AssertionFailed|ExpectationFailed"),
}
_CALLED_FAIL = re.compile(
    r"\bfail\s*\(|\bassert\s*(?:False\b|0\b|\(\s*false)|\bexpect\(\s*true\s*\)\s*\.\s*toBe\(\s*false"
)


def find_swallowed(test: Test) -> Iterable[tuple[str, int]]:
    """Yield the lines that catch what assertions raise and make nothing of it; and where."""
    if test.syntax == "python":
        yield from _in_python(test)
    elif test.syntax in _CAUGHT:
        yield from _in_braces(test)
    elif test.syntax == "ruby":
        for number, line in enumerate(test.code):
            text, after = line.strip(), test.code[number + 1 : number + 2]
            is_quiet = not any(_HANDLED.search(one) for one in after)
            if _RESCUE.match(text) and is_quiet and _is_claimed(test, 0, number):
                yield text, number


def _in_python(test: Test) -> Iterable[tuple[str, int]]:
    for number, line in enumerate(test.code):
        text = line.strip()
        if _SUPPRESS.match(text) and _is_claimed(test, number + 1, _block_end(test, number)):
            yield text, number
        if text != "try:":
            continue
        end = _block_end(test, number)
        if not _is_claimed(test, number + 1, end):
            continue
        while end < len(test.code) and _is_handler(test.code[end], line):
            after = _block_end(test, end)
            found = _EXCEPT.match(test.code[end].strip())
            handler = "\n".join([found["rest"], *test.code[end + 1 : after]]) if found else ""
            if found and not _HANDLED.search(handler):
                yield test.code[end].strip(), end
                break
            end = after


def _is_handler(line: str, opening: str) -> bool:
    return indent_of(line) == indent_of(opening) and line.strip().startswith("except")


def _block_end(test: Test, number: int) -> int:
    """Return the line behind the block that a line opens."""
    own = indent_of(test.code[number])
    for place in range(number + 1, len(test.code)):
        if test.code[place].strip() and indent_of(test.code[place]) <= own:
            return place
    return len(test.code)


def _is_claimed(test: Test, start: int, end: int) -> bool:
    """Tell whether something is claimed between two lines, other than that they are not reached."""
    return any(
        start <= place < end and not _CALLED_FAIL.search(test.code[place])
        for place in test.places
        if place >= 0
    )


def _in_braces(test: Test) -> Iterable[tuple[str, int]]:
    code = "\n".join(test.code)
    for found in _TRY.finditer(code):
        end = _closing(code, found.end())
        catch = _CATCH.match(code, end)
        if not catch or not _is_claimed(
            test, code.count("\n", 0, found.start()), code.count("\n", 0, end) + 1
        ):
            continue
        body = code[catch.end() : _closing(code, catch.end())]
        if _CAUGHT[test.syntax].search((catch["what"] or "").strip("() ")) and not _HANDLED.search(
            body
        ):
            text = " ".join(catch.group().split())
            yield text, code.count("\n", 0, catch.end())


def _closing(code: str, start: int) -> int:
    depth = 0
    for found in re.finditer(r"[{}]", code[start : start + _LONGEST]):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return start + found.end()
    return len(code)
