"""A piece of code, cut where its brackets allow it. Pure."""

from __future__ import annotations

import re

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.source import Side

_LONGEST = 20_000  # characters of one piece: a table of cases is long, an assertion is not
_BRACKET = re.compile(r"[(\[{)\]}]")
_OPENING = "([{"
_SPACE = re.compile(r"\s+")


class Piece(Record):
    """Some code: `text` with its strings, `code` as long without what is in them."""

    code: str
    text: str

    def cut(self, start: int, end: int | None = None) -> Piece:
        """Return a part of it, without white space around."""
        code, text = self.code[start:end], self.text[start:end]
        left = len(text) - len(text.lstrip())
        right = len(text.rstrip())
        return Piece(code[left:right], text[left:right])

    def flat(self) -> str:
        """Return its code with what is in brackets blank, as long as it is."""
        return "".join(_outside(self.code))

    def split(self, pattern: str) -> list[Piece]:
        """Cut it at each match that is in no brackets."""
        at, parts = 0, []
        for found in re.finditer(pattern, self.flat()):
            parts.append(self.cut(at, found.start()))
            at = found.end()
        return [part for part in [*parts, self.cut(at)] if part.text]

    def inside(self) -> Piece | None:
        """Return what is in its brackets; None where it is not one pair of them."""
        if self.code[:1] in _OPENING and self.code and _close(self.code, 0) == len(self.code):
            return self.cut(1, -1)
        return None

    def plain(self) -> str:
        """Return its text without any white space: how long its lines are is no difference."""
        return _SPACE.sub("", self.text).replace(",)", ")").replace(",]", "]").replace(",}", "}")


def brackets_at(side: Side, place: int) -> Piece | None:
    """Return the brackets that open at a place, or behind white space, with all in them."""
    code = side.code[place : place + _LONGEST]
    start = len(code) - len(code.lstrip())
    if code[start : start + 1] not in _OPENING or not code[start:]:
        return None
    end = _close(code, start)
    return Piece(code[start:end], side.text[place + start : place + end])


def statement_at(side: Side, place: int, longest: int) -> Piece:
    """Return the statement that begins at a place; a chain of calls may go on over lines."""
    code = side.code[place : place + longest]
    end = _end_of_statement(code)
    return Piece(code, side.text[place : place + longest]).cut(0, end)


def elements(piece: Piece) -> list[Piece]:
    """Return what stands between the commas in a pair of brackets."""
    inside = piece.inside()
    return inside.split(",") if inside else []


def brackets_end(piece: Piece) -> int:
    """Return the place behind the first pair of brackets."""
    opening = _BRACKET.search(piece.code)
    return _close(piece.code, opening.start()) if opening else len(piece.code)


def _end_of_statement(code: str) -> int:
    depth = 0
    for found in re.finditer(r"[(\[{]|[)\]}]|;|\n(?!\s*\??\.)", code):
        sign = found.group()
        if sign in _OPENING:
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0:
                return found.start()
        elif not depth:
            return found.start()
    return len(code)


def _close(code: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at the start."""
    depth = 0
    for found in _BRACKET.finditer(code, start):
        depth += 1 if found.group() in _OPENING else -1
        if depth == 0:
            return found.end()
    return len(code)


def _outside(code: str) -> Iterable[str]:
    depth, at = 0, 0
    for found in _BRACKET.finditer(code):
        between = code[at : found.start()]
        yield between if depth == 0 else " " * len(between)
        opens = found.group() in _OPENING
        depth = depth + 1 if opens else max(depth - 1, 0)
        yield "\0"  # no operator, no word, no white space
        at = found.end()
    yield code[at:] if depth == 0 else " " * len(code[at:])
