r"""Sanitise text that we did not write: names, paths, configuration, gates' output. Pure.

Such text could control a terminal (ECMA-48 and xterm's ctlseqs), reverse the text beside it, or
tell a language model what no person sees. `visible` and `sanitise` show such
characters as `\x1b` or `\u202e`, for people; `plain` takes them out, for agents and Markdown. Log
files and JSON keep the text as it is.

Cold: git hooks load this, and `re` with it, only if something is not plain ASCII.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_RESET = "\x1b[0m"
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_HIDDEN = (
    # C0 but tab and newline, DEL, C1, and what `surrogateescape` makes of the bytes of C1: an 8-bit
    # terminal takes those as commands, too. The other bytes that are no UTF-8 stay.
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f"
    # Nothing is seen of these: Unicode's Default_Ignorable_Code_Point, line and paragraph
    # separators, and annotations.
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\ud800-\udc7f\udd00-\udfff"  # surrogates that stand for nothing
)
# Behind a visible character that is not ASCII, joiners only shape it: emoji, Persian, Indic.
_SHAPED_OR_HIDDEN = re.compile(
    rf"([^\x00-\x7f{_HIDDEN}][\u200c\u200d\ufe0e\ufe0f]{{1,2}})|[{_HIDDEN}]"
)
# The first group colours. A string (OSC, DCS, SOS, PM, APC) that does not end on its line is no
# sequence to us: its text is shown, as nothing else could be told from what it hides.
_SEQUENCE = re.compile(
    r"""(\x1b\[[0-9:;]*m)
    | \x1b (?: \[ [0-?]* [\ -/]* [@-~]?
             | []PX^_] (?: [^\n\x07\x1b]* (?: \x07 | \x1b\\ ) )?
             | [\ -/]* [0-~]? )""",
    re.VERBOSE,
)
_8_BIT = re.compile(r"[\x90\x98\x9b-\x9f]")  # introducers of sequences, in one character
_CARRIAGE_RETURNS = re.compile(r"(?<!\r)\r+\n")  # in linear time, whatever the text


def visible(text: str) -> str:
    """Return text with control and invisible characters escaped, except for tabs and newlines."""
    return text if _is_plain(text) else _SHAPED_OR_HIDDEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if "\udc80" <= char <= "\udcff":
        char = chr(ord(char) - 0xDC00)  # the byte that it stands for
    return match[1] or ascii(char)[1:-1]


def visible_line(text: str) -> str:
    """Return text as one line: newlines, tabs and bytes that are no UTF-8 are escaped as well."""
    line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return line.encode("utf-8", "backslashreplace").decode()


def sanitise(output: bytes, *, colour: bool) -> bytes:
    """Return output without escape sequences, except for those of colours with `colour`.

    Other sequences are removed: cursor movement, clearing, titles, links, the clipboard, replies.
    Text that a carriage return would overwrite gets its own line.
    """
    text = output.decode("utf-8", "surrogateescape")
    parts = _SEQUENCE.split(text)  # every second one colours, or is None
    colours = [part or "" if colour else "" for part in parts[1::2]]
    texts = [visible(_CARRIAGE_RETURNS.sub("\n", part).replace("\r", "\n")) for part in parts[::2]]
    joined = "".join(text + code for text, code in zip(texts, [*colours, ""], strict=True))
    # An open colour, or hidden text, would go on in what others write.
    return (joined + (_RESET if any(colours) else "")).encode("utf-8", "surrogateescape")


def plain(text: str | bytes) -> str:
    """Return the visible lines: no escape sequences, nothing invisible, no overwritten text."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if _is_plain(text):  # as almost all is
        return text
    text = _8_BIT.sub(lambda match: f"\x1b{chr(ord(match[0]) - 0x40)}", text)
    text = _CARRIAGE_RETURNS.sub("\n", "".join(_SEQUENCE.split(text)[::2]))
    if "\r" in text:
        # What a line of progress shows in the end.
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _SHAPED_OR_HIDDEN.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    return match[1] or ("\n" if match[0] in _LINE_ENDS else "")


def plain_line(text: str, longest: int = 200) -> str:
    """Return a text on one line of at most `longest` characters (0: any number of them).

    Surrogates become `?`.
    """
    visible_text = plain(text.encode("utf-8", "replace"))
    line = " ".join((visible_text[: 20 * longest] if longest else visible_text).split())
    return line if len(line) <= longest or not longest else line[: longest - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """Return `1 gate` or `2 gates`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_few(texts: Sequence[str], most: int, left_out: int = 0) -> str:
    """Return `a, b and 2 more`: the first texts, and how many others there are.

    `left_out`: of others that are not even in `texts`.
    """
    more = max(len(texts) - most, 0) + left_out
    return ", ".join(texts[:most]) + (f" and {more} more" if more else "")


def utf8(text: str) -> str:
    """Return text that JSON and XML can hold: bytes that are no UTF-8 are replaced."""
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud7ff" < char < "\ue000" else char for char in text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()
