"""A block of lines of ours in somebody's text, between two comments: put in, cut out. Pure."""

from __future__ import annotations

from gitgates.errors import ConfigError

_BEGIN = "# gitgates: this block is written by "
_END = "# gitgates: the block ends here"
_MADE = "# made by "


def block(command: str, lines: str) -> str:
    """Return lines with the comments around them; `command` is what writes them."""
    return f"{_BEGIN}`{command}`\n{lines}{_END}\n"


def made(command: str) -> str:
    """Return the first line of a file that is there for our lines only."""
    return f"{_MADE}`{command}`\n"


def is_in(text: str) -> bool:
    """Tell whether there is a block of ours in a text."""
    return _BEGIN in text


def inside(text: str) -> str:
    """Return the lines of our blocks."""
    parts = text.split(_BEGIN)[1:]
    return "".join(part.partition(_END)[0].partition("\n")[2] for part in parts)


def insert(text: str, offset: int, block_: str, column: int = 0) -> str:
    """Return a text with a block at an offset, where a line begins or the text ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = "".join(" " * column + line for line in block_.splitlines(keepends=True))
    lines = lines.replace("\n", newline)
    if offset == len(text) and text and not text.endswith("\n"):
        lines = newline + lines.removesuffix(newline)
    return text[:offset] + lines + text[offset:]


def without(text: str, file: str) -> str | None:
    """Return a text without our blocks; None where nothing else was in a file that we made.

    Raises: ConfigError where the end of a block is missing.
    """
    while _BEGIN in text:
        start = text.rfind("\n", 0, text.index(_BEGIN)) + 1
        end = text.find(_END, start)
        if end < 0:
            raise ConfigError(
                f"{file}: the line `{_END}` is gone, so that nobody knows where our block ends",
                f"Take the block out by hand; it begins with the line `{_BEGIN}…`.",
            )
        line_end = text.find("\n", end)
        if line_end < 0:  # the file had no newline at its end
            start -= 2 if text[:start].endswith("\r\n") else 1
            return text[: max(start, 0)]
        text = text[:start] + text[line_end + 1 :]
        if text.startswith(_MADE) and text.count("\n") == 1:
            return None
    return text
