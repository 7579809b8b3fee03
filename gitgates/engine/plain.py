"""Bytes that a tool wrote, as text that shows what a reader of it would see. Cold.

What a terminal would not show as text goes: colours, titles, links, control characters, progress
that was overwritten. So does what no reader sees but a language model reads: characters without
width, tags, marks that turn the direction of writing.
"""

from __future__ import annotations

import re

# Sources: ECMA-48 5.4 and 8.3 (CSI, OSC, DCS, SOS, PM, APC). One that has no end hides nothing
# behind the end of its line.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_ENDS = re.compile(r"(?<!\r)\r+\n|[\x0b\x0c\x85\u2028\u2029]")


def plain(data: bytes) -> str:
    """Return the text of an output: lines of what is seen, tabs kept."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
    text = _LINE_ENDS.sub("\n", text)
    if "\r" in text:
        text = "\n".join(_last_written(line) for line in text.split("\n"))
    return _UNSEEN.sub("", text)


def _last_written(line: str) -> str:
    """Return what a line of progress shows in the end."""
    return line.rstrip("\r").rpartition("\r")[2]


def plain_line(text: str, longest: int = 200) -> str:
    """Return a text on one line of at most `longest` characters; surrogates become `?`."""
    shown = plain(text.encode("utf-8", "replace"))
    line = " ".join(shown[: 20 * longest].split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
