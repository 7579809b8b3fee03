"""Read a source file: its language, and what in it is code, a string, or a comment. Pure.

No parser: a pattern for each family of languages that knows strings and comments. A file that it
misreads costs a wrong finding, or a missed one, and nothing else.
"""

from __future__ import annotations

import functools
import posixpath
import re
from bisect import bisect_left

from gitgates.core.record import Record
from gitgates.features.review.significance import is_test_name
from gitgates.features.review.weakening.finding import Pair, alternatives, patterns

_LARGEST = 1024 * 1024  # bytes; nobody writes more by hand
_LONGEST_LINE = 1000  # characters; what is behind them is not compared
_SIGN = re.compile(r"[^\n]")
_END = re.compile(r"\n")


class Side(Record):
    """One state of a source file. All texts have the same length, and the same lines."""

    language: str  # its name in `patterns.toml`; empty: none that has one
    text: str  # without comments
    code: str  # without comments, and without what is between quotes
    comments: str  # nothing but comments
    is_test: bool
    ends: tuple[int, ...]  # the place at which each line ends
    lines: tuple[str, ...]  # of the text, with single spaces
    whole_lines: tuple[str, ...]  # with their comments

    def line_of(self, match: re.Match[str]) -> int:
        """Return the number of the line that a match begins on, behind its white space."""
        text = match.group()
        return bisect_left(self.ends, match.start() + len(text) - len(text.lstrip())) + 1

    def about(self, number: int) -> str:
        """Return the code of a line; of a comment on its own, the code that follows."""
        return next((line for line in self.lines[number - 1 :] if line), "")


class SourceFile(Record):
    """One file of a language that we know, before and after."""

    pair: Pair
    before: Side | None
    after: Side | None


def read_pair(pair: Pair) -> SourceFile | None:
    """Return both sides of a source file; None if its language is not known."""
    old, new = _language_of(pair.old_path), _language_of(pair.path)
    if pair.read_by_nobody or not (old or new):
        return None
    was_named, is_named = is_test_name(pair.old_path), is_test_name(pair.path)
    # A test that is renamed so that no runner finds it is no longer one, whatever its folder.
    lost = pair.before is not None and was_named and not is_named
    before, after = pair.texts
    return SourceFile(
        pair=pair,
        before=_side(before, old, is_test=was_named or pair.is_test),
        after=_side(after, new, is_test=is_named or (pair.is_test and not lost)),
    )


def read_side(text: str, syntax: str) -> Side:
    """Separate code, strings and comments of a text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    plain, code, comments = [], [], []
    end = 0
    for token in _tokens(syntax).finditer(text):
        between, lexeme = text[end : token.start()], token.group()
        blank = _blank(lexeme)
        is_string = token["string"] is not None
        plain += [between, lexeme if is_string else blank]
        hollow = lexeme[0] + _blank(lexeme[1:-1]) + lexeme[-1] if len(lexeme) > 1 else lexeme
        code += [between, hollow if is_string else blank]
        comments += [_blank(between), blank if is_string else lexeme]
        end = token.end()
    rest = text[end:]
    without_comments = "".join([*plain, rest])
    return Side(
        language="",
        text=without_comments,
        code="".join([*code, rest]),
        comments="".join([*comments, _blank(rest)]),
        is_test=False,
        ends=tuple(newline.start() for newline in _END.finditer(text)),
        lines=_lines(without_comments),
        whole_lines=_lines(text),
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(" ".join(line[:_LONGEST_LINE].split()) for line in text.split("\n"))


def _blank(text: str) -> str:
    return _SIGN.sub(" ", text)


@functools.cache
def _tokens(syntax: str) -> re.Pattern[str]:
    table = {name: alternatives(value) for name, value in patterns()["syntax"][syntax].items()}
    return re.compile("(?P<string>{strings})|(?P<comment>{comments})".format(**table), re.DOTALL)


@functools.cache
def _languages() -> dict[str, str]:
    """Return the language of each suffix, and of each name of a file."""
    return {
        name: language
        for language, table in patterns()["languages"].items()
        for name in (*table.get("names", ()), *(f".{suffix}" for suffix in table["suffixes"]))
    }


def _language_of(path: str) -> str:
    name = posixpath.basename(path)
    return _languages().get(name) or _languages().get(f".{name.rpartition('.')[2].lower()}", "")


def _side(text: str | None, language: str, *, is_test: bool) -> Side | None:
    if text is None or not language or len(text) > _LARGEST:
        return None
    side = read_side(text, patterns()["languages"][language]["syntax"])
    return side._replace(language=language, is_test=is_test)
