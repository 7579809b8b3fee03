r"""Keep from a person's terminal what the output of a gate could command it with. Pure.

Colours (`ESC [ … m`) stay where the terminal takes colour. Every other sequence is taken out:
cursor movement, clearing, titles, links, the clipboard, replies. What is left of control characters
is shown, such as `\x08`. Log files and JSON keep the output as it is. Source: ECMA-48, xterm's
ctlseqs.

Cold: only a gate whose output is shown needs it. Loads nothing, as git hooks do.
"""

from __future__ import annotations

_PARAMETERS = frozenset("0123456789:;<=>?")
_OF_COLOURS = frozenset("0123456789:;")
_INTERMEDIATES = frozenset(" !\"#$%&'()*+,-./")
_STRINGS = frozenset("]PX^_")  # OSC, DCS, SOS, PM, APC: up to BEL or ESC \
_RESET = "\x1b[0m"

# C0 but tab and newline, DEL, C1, and the bytes of C1 that are no UTF-8 (as `surrogateescape` has
# them): an 8-bit terminal takes those as commands, too.
_SHOWN = {
    code: f"\\x{code & 0xFF:02x}"
    for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0xDC80, 0xDCA0))
    if chr(code) not in "\t\n"
}


def tame(output: bytes, *, colour: bool) -> bytes:
    """Return output that can only write and, with `colour`, colour; each line stays one.

    What a carriage return would write over is on a line of its own.
    """
    text = output.decode("utf-8", "surrogateescape")
    first, *rest = text.split("\x1b")
    parts = [_written(first)]
    coloured = False
    for number, part in enumerate(rest):
        ends = number + 1 < len(rest) and rest[number + 1].startswith("\\")
        kept, length = _sequence(part, ends=ends)
        if kept and colour:
            coloured = True
            parts.append(kept)
        parts.append(_written(part[length:]))
    if coloured:
        # An open colour, or hidden text, would go on in what others write.
        parts.append(_RESET)
    return "".join(parts).encode("utf-8", "surrogateescape")


def visible(text: str) -> str:
    """Return text with its control characters shown, but for tabs and newlines."""
    return text.translate(_SHOWN)


def _written(text: str) -> str:
    while "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return visible(text.replace("\r", "\n"))


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
