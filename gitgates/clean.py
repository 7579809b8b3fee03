r"""Sanitise text that we did not write: names, paths, configuration, the output of gates. Pure.

Such text could command a terminal (ECMA-48 and xterm's ctlseqs), turn the direction of what stands
beside it, or tell a language model what no person sees. `visible` and `sanitise` show such
characters as `\x1b` or `\u202e`, for people; `plain` takes them out, for agents and Markdown. Log
files and JSON keep the text as it is.

Without `re`: hooks of git load this where something is not plain ASCII.
"""

from __future__ import annotations

_PARAMETERS = frozenset("0123456789:;<=>?")
_OF_COLOURS = frozenset("0123456789:;")
_INTERMEDIATES = frozenset(" !\"#$%&'()*+,-./")
_STRINGS = frozenset("]PX^_")  # OSC, DCS, SOS, PM, APC: up to BEL or ESC \
_8_BIT = {0x40 + ord(final): f"\x1b{final}" for final in "[]PX^_\\"}
_RESET = "\x1b[0m"
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
# Ranges of characters, their ends included, of which nothing is seen. Unicode's
# Default_Ignorable_Code_Point, line and paragraph separators, and annotations.
_INVISIBLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
# C0 but tab and newline, DEL, C1, and what `surrogateescape` makes of the bytes of C1: an 8-bit
# terminal takes those as commands, too. The other bytes that are no UTF-8 stay.
_CONTROLS = ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xDC80, 0xDC9F))
_NO_BYTES = ((0xD800, 0xDC7F), (0xDD00, 0xDFFF))  # surrogates that stand for nothing
_HIDDEN = (*_CONTROLS, *_INVISIBLE, *_NO_BYTES)
# Behind a visible character that is not ASCII these only shape it: emoji, Persian, Indic scripts.
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_MOST_JOINERS = 2


def _is_hidden(code: int) -> bool:
    if (char := chr(code)).isascii() and char.isprintable():
        return False  # most are
    return any(first <= code <= last for first, last in _HIDDEN)


class _Shown(dict[int, str]):
    """For `str.translate`: what stands for each character; found out when one is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = self.hidden(code) if _is_hidden(code) else chr(code)
        return shown

    def hidden(self, code: int) -> str:
        """Return what stands for a character of which nothing is seen."""
        is_byte = "\udc80" <= chr(code) <= "\udcff"
        return ascii(chr(code - 0xDC00 if is_byte else code))[1:-1]


class _Removed(_Shown):
    """The same, where what is not seen is taken out."""

    def hidden(self, code: int) -> str:
        """Return nothing, or a newline for what ends a line."""
        return "\n" if chr(code) in _LINE_ENDS else ""


_SHOWN, _REMOVED = _Shown(), _Removed()


def visible(text: str) -> str:
    """Return text with control characters and invisible ones shown, but for tabs and newlines."""
    # A few invisible characters count as printable, none of them is ASCII.
    return text if _is_plain(text) else _mapped(text, _SHOWN)


def visible_line(text: str) -> str:
    """Return text as one line: newlines, tabs and bytes that are no UTF-8 are shown as well."""
    line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return line.encode("utf-8", "backslashreplace").decode()


def sanitise(output: bytes, *, colour: bool) -> bytes:
    """Return output that can only write and, with `colour`, colour; each line stays one.

    Other sequences are taken out: cursor movement, clearing, titles, links, the clipboard, replies.
    What a carriage return would write over is on a line of its own.
    """
    text = output.decode("utf-8", "surrogateescape")
    parts = _sequences(text)
    coloured = False
    for at, part in enumerate(parts):
        if at % 2:
            parts[at] = part if colour else ""
            coloured = coloured or bool(parts[at])
        else:
            parts[at] = visible(_newlines(part).replace("\r", "\n"))
    # An open colour, or hidden text, would go on in what others write.
    parts += [_RESET] if coloured else []
    return "".join(parts).encode("utf-8", "surrogateescape")


def plain(text: str | bytes) -> str:
    """Return lines of what a reader sees: no sequences, nothing invisible, no overwritten text."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if any(chr(code) in text for code in _8_BIT):  # translating a long text takes its time
        text = text.translate(_8_BIT)
    text = "".join(_sequences(text)[::2])
    text = _newlines(text)
    if "\r" in text:
        # What a line of progress shows in the end.
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text if _is_plain(text) else _mapped(text, _REMOVED)


def plain_line(text: str, longest: int = 200) -> str:
    """Return a text on one line of at most `longest` characters (0: any number of them).

    Surrogates become `?`.
    """
    shown = plain(text.encode("utf-8", "replace"))
    line = " ".join((shown[: 20 * longest] if longest else shown).split())
    return line if len(line) <= longest or not longest else line[: longest - 1].rstrip() + "…"


def utf8(text: str) -> str:
    """Return text that JSON and XML can hold: bytes that are no UTF-8 are replaced."""
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud7ff" < char < "\ue000" else char for char in text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _mapped(text: str, table: _Shown) -> str:
    if not any(joiner in text for joiner in _JOINERS):
        return text.translate(table)
    parts = []
    room = 0
    for char in text:
        if char in _JOINERS and room:
            room -= 1
            parts.append(char)
            continue
        room = _MOST_JOINERS if char > "\x7f" and not _is_hidden(ord(char)) else 0
        parts.append(table[ord(char)])
    return "".join(parts)


def _newlines(text: str) -> str:
    if "\r\n" not in text:
        return text
    *lines, last = text.split("\n")
    return "\n".join([*(line.rstrip("\r") for line in lines), last])


def _sequences(text: str) -> list[str]:
    """Return text and, in every second place, the sequence behind it where that only colours."""
    first, *rest = text.split("\x1b")
    parts = [first]
    for number, part in enumerate(rest):
        ends = number + 1 < len(rest) and rest[number + 1].startswith("\\")
        kept, length = _sequence(part, ends=ends)
        parts += [kept, part[length:]]
    return parts


def _sequence(part: str, *, ends: bool) -> tuple[str, int]:
    """Read the sequence that an ESC and `part` start; return it where it colours, and its length.

    `ends`: what follows `part` is the end of a string. One that does not end on its line is no
    sequence to us: its text is shown, as nothing else could be told from what it hides.
    """
    kind = part[:1]
    if kind == "[":
        return _control(part)
    if kind and kind in _STRINGS:
        line, newline, _ = part.partition("\n")
        content, bell, _ = line.partition("\x07")
        if bell:
            return "", len(content) + 1
        return "", len(part) if ends and not newline else 1
    length = _span(part, 0, _INTERMEDIATES)
    return "", length + 1 if "0" <= part[length : length + 1] <= "~" else length


def _control(part: str) -> tuple[str, int]:
    parameters = _span(part, 1, _PARAMETERS)
    end = _span(part, parameters, _INTERMEDIATES)
    final = part[end : end + 1]
    if not "@" <= final <= "~":
        return "", end
    if final == "m" and end == parameters and _OF_COLOURS.issuperset(part[1:end]):
        return f"\x1b{part[: end + 1]}", end + 1
    return "", end + 1


def _span(text: str, start: int, allowed: frozenset[str]) -> int:
    """Return the end of the run of allowed characters from `start` on."""
    while start < len(text) and text[start] in allowed:
        start += 1
    return start
