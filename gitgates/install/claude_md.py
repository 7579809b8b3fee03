"""Our block in the text of CLAUDE.md: the rules of the gates, put in, renewed, taken out. Pure.

An empty line is added before it, and goes with it. What was there before us is told by the bytes
around it alone: a text that ended without a new line ends with our block without one.
"""

from __future__ import annotations

import re

from gitgates.errors import ConfigError

FILE = "CLAUDE.md"
BEGIN = "<!-- gitgates: begin -->"
END = "<!-- gitgates: end -->"


def put(text: str | None, rules: str) -> str:
    """Return the text with our block: where it is already, else at the end. None: no file.

    Raises: ConfigError where only half of our block is there.
    """
    if text is None:
        return _body(rules, "\n") + "\n"
    start, end = find(text)
    if start >= 0:
        return text[:start] + _body(rules, _newline_behind(text, start)) + text[end:]
    newline = "\r\n" if "\r\n" in text else "\n"
    body = _body(rules, newline)
    if text.endswith("\n"):
        return text + newline + body + newline
    return text + newline * 2 + body


def without(text: str) -> str | None:
    """Return the text without our block; None where the file was made for it.

    Raises: ConfigError as `put`.
    """
    start, end = find(text)
    if start < 0:
        return text
    newline = _newline_behind(text, start)
    head, tail = text[:start], text[end:]
    if not head and tail in ("", newline):
        return None
    if not tail:
        return head.removesuffix(newline * 2)
    return head.removesuffix(newline) + tail.removeprefix(newline)


def find(text: str) -> tuple[int, int]:
    """Return where our block begins and ends; -1 where there is none.

    Raises: ConfigError where only half of it is there, or it is there twice.
    """
    begins, ends = _lines(text, BEGIN), _lines(text, END)
    if not begins and not ends:
        return -1, -1
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise ConfigError(
            f"{FILE}: nobody knows where our block is: `{BEGIN}` stands there {len(begins)} times, "
            f"and `{END}` {len(ends)} times, each on a line of its own",
            "Take the block out by hand; the file was left alone.",
        )
    return begins[0], ends[0] + len(END)


def _body(rules: str, newline: str) -> str:
    return f"{BEGIN}\n{rules.strip()}\n{END}".replace("\n", newline)


def _newline_behind(text: str, start: int) -> str:
    return "\r\n" if text.startswith("\r", start + len(BEGIN)) else "\n"


def _lines(text: str, mark: str) -> list[int]:
    """Return where a mark stands on a line of its own."""
    found = re.finditer(rf"^\ufeff?({re.escape(mark)})\r?$", text, re.MULTILINE)
    return [match.start(1) for match in found]
