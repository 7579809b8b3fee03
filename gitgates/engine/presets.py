"""Find single failures in what well-known tools print. Cold and pure.

Written from real outputs, which lie in tests/outputs. A format that is not known here gives
nothing, and then the whole output is one failure.
"""

from __future__ import annotations

import re

from gitgates.engine.preset_cargo import cargo
from gitgates.engine.preset_found import Found
from gitgates.engine.preset_go import go_test
from gitgates.engine.preset_pytest import pytest

__all__ = ["PRESETS", "Found"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_RUFF = re.compile(
    # concise, pylint, and the older full format
    r"^(?P<path>[^\s:][^:\n]*):(?P<place>(?:cell \d+:)?\d+(?::\d+)*): "
    r"\[?(?P<rule>[A-Z]+\d+|[a-z]+(?:-[a-z]+)*|Error|SyntaxError)\b[:\]]*(?P<message>[^\n]*)"
    # github
    r"|^::(?:error|warning) title=[^,\n]*,file=(?P<path2>[^,\n]+),line=(?P<place2>\d+)[^:\n]*::"
    r"[^:\n]+:[\d:]+ (?P<rule2>[\w-]+):?(?P<message2>[^\n%]*)"
    # full
    r"|^(?P<rule3>[A-Z]+\d+|[a-z]+(?:-[a-z]+)*)\b:?(?P<message3> [^\n]*)\n"
    r" *--> (?P<path3>[^\n]+?):(?P<place3>(?:cell \d+:)?\d+:\d+)$"
    # format --check
    r"|^(?P<rule4>Would reformat): (?P<path4>[^\n]+)$",
    re.MULTILINE,
)
_RUFF_GROUP = re.compile(
    r"(?P<path>\S[^\n]*):|  +(?P<place>[\d:]+) (?P<rule>[\w-]+):? (?P<message>.+)"
)
_FIXABLE = re.compile(r"\[\*\] ?")
_MYPY = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<place>[\d:]*) error: (?P<message>[^\n]+"
    # with --pretty, long messages go on in the next lines, where nothing is indented
    r"(?:\n(?![^\n]+?:[\d:]* (?:error|note): |Found \d|\s)[^\n]+)*)",
    re.MULTILINE,
)
_TSC = re.compile(
    r"^(?:(?P<path>[^\s(:][^(\n]*)\((?P<place>\d+,\d+)\): |(?P<path2>[^\s:][^:\n]*):"
    r"(?P<place2>\d+:\d+) - |)error (?P<rule>TS\d+): (?P<message>[^\n]+)",
    re.MULTILINE,
)
_ESLINT = re.compile(  # unix, and compact
    r"^(?P<path>\S[^:\n]*):(?P<place>\d+:\d+): (?P<message>[^\n]+) "
    r"\[(?P<level>Error|Warning)(?:/(?P<rule>[^\]\n]+))?\]$"
    r"|^(?P<path2>\S[^:\n]*): (?P<place2>line \d+, col \d+), (?P<level2>Error|Warning) - "
    r"(?P<message2>[^\n]+)$",
    re.MULTILINE,
)
_STYLISH = re.compile(
    r"  +(?P<place>\d+:\d+)  +(?P<level>error|warning)  +(?P<message>\S.*?)(?:  +(?P<rule>\S+))?"
)


def _ruff(text: str) -> Iterator[Found]:
    one_line = tuple(_RUFF.finditer(text))
    for match in one_line:
        yield _broken(_groups(match))
    if not one_line:
        yield from _ruff_grouped(text)


def _ruff_grouped(text: str) -> Iterator[Found]:
    path = ""
    for line in text.split("\n"):
        match = _RUFF_GROUP.fullmatch(line)
        if match and match["path"]:
            path = match["path"]
        elif match and path:
            yield _broken({**match.groupdict(""), "path": path})


def _broken(said: dict[str, str]) -> Found:
    """Return a broken rule as a failure."""
    message = " ".join(_FIXABLE.sub("", said.get("message", "")).split())
    path, rule = said.get("path", ""), said.get("rule", "")
    place = said.get("place", "").removeprefix("line ").replace(", col ", ":").replace(",", ":")
    where = f"{path}:{place}: " if path and place else f"{path}: " if path else ""
    what = " ".join(part for part in (rule, message) if part)
    return Found(title=where + what, message=message, identity=f"{path}\n{rule}", place=place)


def _groups(match: re.Match[str]) -> dict[str, str]:
    """Return the named groups of the alternative that matched, under their plain names."""
    return {name.rstrip("234"): said for name, said in match.groupdict().items() if said}


def _mypy(text: str) -> Iterator[Found]:
    for match in _MYPY.finditer(text):
        said = _groups(match)
        yield _broken({**said, "place": said.get("place", "").rstrip(":")})


def _tsc(text: str) -> Iterator[Found]:
    for match in _TSC.finditer(text):
        yield _broken(_groups(match))


def _eslint(text: str) -> Iterator[Found]:
    """Return errors; only where there are none (--max-warnings), warnings."""
    said = [_groups(match) for match in _ESLINT.finditer(text)] or list(_stylish(text))
    errors = [one for one in said if one["level"].lower() == "error"]
    yield from map(_broken, errors or said)


def _stylish(text: str) -> Iterator[dict[str, str]]:
    path = ""
    for line in text.split("\n"):
        if match := _STYLISH.fullmatch(line):
            if path:
                yield {**match.groupdict(""), "path": path}
        elif line.strip():
            path = line.strip() if not line[0].isspace() else ""


PRESETS: dict[str, Callable[[str], Iterable[Found]]] = {
    "pytest": pytest,
    "ruff": _ruff,
    "mypy": _mypy,
    "go-test": go_test,
    "tsc": _tsc,
    "eslint": _eslint,
    "cargo": cargo,
}
