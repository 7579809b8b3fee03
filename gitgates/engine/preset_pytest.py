"""Find failures in what pytest prints. Cold and pure."""

from __future__ import annotations

import re

from gitgates.engine.normalise import steady
from gitgates.engine.preset_found import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SUMMARY = re.compile(r"^=* ?short test summary info ?=*$", re.MULTILINE)
_LINE = re.compile(
    r"^(?:(?:FAILED|ERROR|SUBFAIL\S*) (?=\S)|FAIL Required|ERROR: Coverage)[^\n]+", re.MULTILINE
)
# Where the summary was switched off: the headings of the sections, or else the lines of -v.
_HEADING = re.compile(r"^_+ ((?!_ )[^\n]*[^_\s]) _+$", re.MULTILINE)
_VERBOSE = re.compile(r"^(\S[^\n]*?) (FAILED|ERROR)(?: [^\n]*)?\[ *\d+%\]$", re.MULTILINE)
_CUT = "..."
_VARYING = re.compile("<(?:tmp|time|duration|address|hex|uuid|number)>")  # see normalise.py


def pytest(text: str) -> Iterator[Found]:
    """Yield the tests that failed, from the short summary where there is one."""
    *_, summary = _SUMMARY.split(text)
    lines = [match[0] for match in _LINE.finditer(summary)]
    if lines:
        yield from map(_summed_up, lines)
    elif headings := [match[1] for match in _HEADING.finditer(text)]:
        yield from (Found(title=title, identity=title) for title in headings)
    else:
        for match in _VERBOSE.finditer(text):
            name = f"{match[2]} {match[1].strip()}"
            yield Found(title=name, identity=name)


def _summed_up(line: str) -> Found:
    name, message = _parts(line)
    if message.endswith(_CUT):
        message = _surely(message)
    return Found(title=line, identity=name, message=message)


def _parts(line: str) -> tuple[str, str]:
    """Split `FAILED a.py::test_x[1 - 2] - why`, where brackets show what is the name."""
    at = line.find(" - ")
    while at >= 0:
        if "[" not in line[:at].partition("::")[2] or line[at - 1] == "]":
            return line[:at], line[at + 3 :]
        at = line.find(" - ", at + 1)
    return line, ""


def _surely(message: str) -> str:
    """Return the part of a message cut to the terminal's width that is the same in each run.

    Behind something of varying length (a temporary path), the cut is at another place each time.
    """
    sure = _VARYING.split(steady(message.removesuffix(_CUT)))[0]
    return sure.rpartition(" ")[0] if sure else ""
