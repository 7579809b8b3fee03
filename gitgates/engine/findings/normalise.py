"""Remove from a text what differs between equal runs: times, addresses, temporary paths. Cold.

Each pattern takes time in proportion to the text, whatever the text is: no part of one can begin
at many places of what another part has already taken.
"""

from __future__ import annotations

import re

from gitgates.core.clean import plain

_UNIT = r"(?:ns|µs|μs|us|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d)\b)?"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# What stays: the name of a file before a line in it, else two files would be one.
_PLACED = r"\.[A-Za-z]\w{0,9}(?::\d|\(\d)"
_NO_NAME, _NO_PATH = rf"(?![\w.-]{{0,100}}{_PLACED})", rf"(?![\w/.-]{{0,100}}{_PLACED})"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RULES: tuple[tuple[str, str], ...] = (
    (r"\[\.\.\. \d+ bytes left out \.\.\.\]", "[...]"),  # our own mark, see proc/processes.py
    (rf"(?<!\w){_UUID}(?!\w){_NO_NAME}", "<uuid>"),
    (rf"(?<![\w.-])\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}{_ZONE})?(?![\w-]){_NO_PATH}", "<time>"),
    (rf"\b{_DAY}[a-z]*,? (?:{_MONTH}[a-z]* +\d{{1,2}}|\d{{1,2}} {_MONTH}[a-z]*)\b", "<time>"),
    (r"(?<![\w:.])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?![\w:])", "<time>"),
    (r"\b0x[0-9a-fA-F]{6,}\b", "<address>"),
    (rf"(?<!\w)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{12,}}(?!\w){_NO_NAME}", "<hex>"),
    (rf"(?<![\w.])(?:\d+ ?h ?)?(?:\d+ ?m ?)?\d+(?:\.\d+)? ?{_UNIT}(?!\w)", "<duration>"),
    (r"(?i)\b(pid|seed|goroutine)([ =:]{1,3})\d+\b", r"\1\2<number>"),
    (r"(?m)^(thread '[^'\n]{1,300}') \(\d+\)", r"\1"),  # the header of a panic in Rust
    (r"(?<=[\w.-][.-])\d{3,}(?=\.(?:tmp|sock|lock|pid|log)\b)", "<number>"),
    (r"\btmp(?=[a-z_]*\d)[a-z0-9_]{8}\b|\btmp\.[A-Za-z0-9]{10}\b", "<tmp>"),
    (r"([=\-_*#~!.])\1{3,}", r"\1\1\1"),  # lines that fill the width of the terminal
)
_PLACES: tuple[tuple[str, str], ...] = (
    (r"(\.[A-Za-z]\w{0,9}|file)(?::\d+){1,4}(?![\w.])", r"\1"),  # a.py:12:5
    (r"(\.[A-Za-z]\w{0,9})\(\d+(?:,\d+)?\)", r"\1"),  # a.ts(12,5)
    (r"(?i)\b(lines?|columns?|col)([ =]|: )\d+(?: ?[-–] ?\d+)?\b", r"\1"),
    (r"(?m)^[ \t]*\d+(?=[ \t]*\|)", ""),  # the margin of a quoted source
)
_TEMPORARY = re.compile(
    r"(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)/[^\s'\"`<>()\[\]{},:;]*"
    r"|(?<!\w)[^\s'\"`<>()\[\]{},:;=]{0,200}/pytest-of-[^\s'\"`<>()\[\]{},:;]*"
)
_FILE = re.compile(r"(?!tmp[.\w]{6})[\w+-][\w.+-]*?\.[A-Za-z]\w{0,9}")
_SPACE = re.compile(r"[ \t]+")
_VOLATILE = tuple((re.compile(pattern), to) for pattern, to in _RULES)
_PLACE = tuple((re.compile(pattern), to) for pattern, to in _PLACES)


def normalise(text: str) -> str:
    """Return a text without what differs between two equal failures, positions included.

    Numbers that no rule names stay: `expected 3, got 4` is another failure than `got 5`.
    """
    return _tidy(_sub(_PLACE, without_volatile(text)))


def without_volatile(text: str) -> str:
    """Return a text without times, addresses and temporary names; positions in files stay."""
    return _tidy(
        _sub(_VOLATILE, _TEMPORARY.sub(_temporary, plain(text.encode("utf-8", "replace"))))
    )


def _temporary(match: re.Match[str]) -> str:
    """Return the replacement of a temporary path: a file in it keeps its name."""
    last = match[0].rpartition("/")[2]
    return f"<tmp>/{last}" if _FILE.fullmatch(last) else "<tmp>"


def _sub(rules: tuple[tuple[re.Pattern[str], str], ...], text: str) -> str:
    for pattern, to in rules:
        text = pattern.sub(to, text)
    return text


def _tidy(text: str) -> str:
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
