"""What counts as a word in messages, and what a query asks for. Pure; cold.

The index and the scan both search what `words` returns, so that they find the same. Case, accents
and forms of the same letter make no difference. A sign of Chinese or Japanese, and an emoji, is a
word for itself; so words of several of them are searched as a phrase.
"""

from __future__ import annotations

import re
import unicodedata

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 100  # characters of a word; what is longer is found by its beginning
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(f"[{_ALONE}{_EMOJI}]|[^\\W_{_ALONE}]+")
_PLAIN = re.compile("[a-z0-9]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_COLOURS = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")  # would be a part of the word behind them
_TERM = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')


class Term(Record):
    """Words that stand one behind the other."""

    words: str  # joined by one space
    begins: bool = False  # the last one only begins so


def words(text: str) -> str:
    """Return the words of a text as they are compared, joined by one space."""
    if "\x1b" in text:
        text = _COLOURS.sub(" ", text)
    if text.isascii():
        found = _PLAIN.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKD", text).casefold()
        found = _WORD.findall(unicodedata.normalize("NFC", _ACCENTS.sub("", folded)))
    return " ".join(word[:_LONGEST] for word in found)


def terms(query: str) -> tuple[Term, ...]:
    """Return what a query asks for: `word`, `begin*`, `"some words"`. Nothing else is special."""
    found: list[Term] = []
    for match in _TERM.finditer(query):
        quoted, star, bare = match.groups()
        joined = words(bare if quoted is None else quoted)
        begins = bool(star) if bare is None else bare.endswith("*")
        if joined:
            found.append(Term(joined, begins))
    return tuple(dict.fromkeys(found))


def hits(term: Term, joined: str) -> int:
    """Return how often a term is in what `words` has returned."""
    end = "" if term.begins else " "
    return f" {joined} ".count(f" {term.words}{end}")


def places(text: str) -> Iterator[tuple[int, str]]:
    """Return where the words of a text begin, and the words as they are compared."""
    return ((match.start(), words(match[0])) for match in _WORD.finditer(text))
