"""Read a source file: its language, and what in it is code, a string, or a comment. Pure.

No parser: a pattern for each family of languages that knows strings and comments. A file that it
misreads costs a wrong finding, or a missed one, and nothing else.
"""

from __future__ import annotations

import functools
import posixpath
import re
from bisect import bisect_left

from gitgates.record import Record
from gitgates.weakening.finding import alternatives, pattern, patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.finding import Pair

_LARGEST = 1024 * 1024  # bytes; nobody writes more by hand
_LONGEST_LINE = 500  # characters on each side of a place
_SIGN = re.compile(r"[^\n]")
_END = re.compile(r"\n")


class Side(Record):
    """One state of a source file. All texts have the same length, and the same lines."""

    language: str  # its name in `patterns.toml`; empty: none that has one
    whole: str
    text: str  # without comments
    code: str  # without comments, and without what is between quotes
    comments: str  # nothing but comments
    is_test: bool
    ends: tuple[int, ...]  # where each line ends

    def line_of(self, place: int) -> int:
        """Return the number of the line of a place in the text."""
        return bisect_left(self.ends, place) + 1

    def line_at(self, place: int) -> str:
        """Return the line of a place: code and strings, without its comment."""
        start, end = self._ends(place)
        return _squeeze(self.text[start:end])

    def whole_line_at(self, place: int) -> str:
        """Return the line of a place as it stands in the file."""
        start, end = self._ends(place)
        return _squeeze(self.whole[start:end])

    def about(self, place: int) -> str:
        """Return the code of a place's line; of a comment on its own, the code that follows."""
        while True:
            start, end = self._ends(place)
            line = _squeeze(self.text[start:end])
            if line or end >= len(self.text) or self.text[end] != "\n":
                return line
            place = end + 1

    def _ends(self, place: int) -> tuple[int, int]:
        """Return where a line begins and ends; of one that nobody wrote, what is around a place."""
        number = bisect_left(self.ends, place)
        start = self.ends[number - 1] + 1 if number else 0
        end = self.ends[number] if number < len(self.ends) else len(self.text)
        return max(start, place - _LONGEST_LINE), min(end, place + _LONGEST_LINE)


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
    # Whatever a test's folder says: one that is renamed so that no runner finds it is none.
    lost = pair.before is not None and was_named and not is_named
    return SourceFile(
        pair=pair,
        before=_side(pair.before, old, is_test=was_named or pair.is_test),
        after=_side(pair.after, new, is_test=is_named or (pair.is_test and not lost)),
    )


def is_test_name(path: str) -> bool:
    """Return whether a runner finds tests in a file by its name."""
    by_name, by_folder = pattern("test_files", "name"), pattern("test_files", "folder")
    return bool(by_name.match(posixpath.basename(path)) or by_folder.search(path))


def read_side(text: str, syntax: str) -> Side:
    """Tell code, strings and comments of a text apart."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    plain, code, comments = [], [], []
    end = 0
    for token in _tokens(syntax).finditer(text):
        between, found = text[end : token.start()], token.group()
        blank = _blank(found)
        is_string = token["string"] is not None
        plain += [between, found if is_string else blank]
        code += [between, _blank_strings(found) if is_string else blank]
        comments += [_blank(between), blank if is_string else found]
        end = token.end()
    rest = text[end:]
    return Side(
        language="",
        whole=text,
        text="".join([*plain, rest]),
        code="".join([*code, rest]),
        comments="".join([*comments, _blank(rest)]),
        is_test=False,
        ends=tuple(found.start() for found in _END.finditer(text)),
    )


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


def _side(content: bytes | None, language: str, *, is_test: bool) -> Side | None:
    if content is None or not language or len(content) > _LARGEST:
        return None
    syntax = patterns()["languages"][language]["syntax"]
    side = read_side(content.decode("utf-8", "replace"), syntax)
    return side._replace(language=language, is_test=is_test)


@functools.cache
def _tokens(syntax: str) -> re.Pattern[str]:
    table = {name: alternatives(value) for name, value in patterns()["syntax"][syntax].items()}
    return re.compile("(?P<string>{strings})|(?P<comment>{comments})".format(**table), re.DOTALL)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _blank_strings(quoted: str) -> str:
    return quoted[0] + _blank(quoted[1:-1]) + quoted[-1] if len(quoted) > 1 else quoted


def _blank(text: str) -> str:
    return _SIGN.sub(" ", text)
