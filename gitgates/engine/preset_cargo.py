"""Find failures in what cargo and rustc print. Cold and pure."""

from __future__ import annotations

import re

from gitgates.engine.preset_found import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPILE = re.compile(
    r"^error(?P<code>\[E\d+\])?: (?P<message>[^\n]+)\n +--> (?P<path>[^\n]+?):(?P<place>\d+:\d+)$"
    r"|^(?P<path2>[^\s:][^:\n]*):(?P<place2>\d+:\d+): "
    r"error(?P<code2>\[E\d+\])?: (?P<message2>[^\n]+)",
    re.MULTILINE,
)
_OTHER = re.compile(r"^error(?:\[E\d+\])?: (?P<message>[^\n]+)", re.MULTILINE)
_FORMAT = re.compile(r"^Diff in (?P<path>[^\n]+?)(?: at line \d+)?:(?:\d+:)?$", re.MULTILINE)
_TARGET = re.compile(r"^ +(?:Running|Doc-tests) (?P<target>[^\n(]+)", re.MULTILINE)
_LIST = re.compile(r"^failures:\n(?P<names>(?:    \S[^\n]*\n)+)", re.MULTILINE)
_SECTION = re.compile(r"^---- (?P<name>[^\n]+) stdout ----$", re.MULTILINE)
_PANIC = re.compile(
    r"^thread '[^\n]* panicked at [^\n]*\n"
    r"(?P<message>(?:(?!stack backtrace:|note: |\n)[^\n]+\n){1,4})",
    re.MULTILINE,
)
_SAID = re.compile(r"^(?:Error: |note: test did not panic)[^\n]*", re.MULTILINE)
_SECTION_CHARS = 4000  # of the output of one test, to find why it failed
_SUMS_UP = re.compile(r"could not compile|\d+ targets? failed|(?:doc)?test failed|aborting due to")


def cargo(text: str) -> Iterator[Found]:
    """Yield errors of the compiler, tests that failed, and files that are not formatted."""
    found = [*_compile_errors(text), *_tests(text)]
    found += [_unformatted(match) for match in _FORMAT.finditer(text)]
    yield from found or _other_errors(text)


def _compile_errors(text: str) -> Iterator[Found]:
    for match in _COMPILE.finditer(text):
        said = {name.rstrip("2"): value for name, value in match.groupdict().items() if value}
        code, path, message = said.get("code", ""), said["path"], said["message"]
        title = f"{path}:{said['place']}: error{code}: {message}"
        yield Found(title=title, message=message, identity=path + code, place=said["place"])


def _unformatted(match: re.Match[str]) -> Found:
    title = f"not formatted: {match['path']}"
    return Found(title=title, identity=title)


def _other_errors(text: str) -> Iterator[Found]:
    for match in _OTHER.finditer(text):
        if not _SUMS_UP.match(match["message"]):
            yield Found(title=match[0], message=match["message"])


def _tests(text: str) -> Iterator[Found]:
    """Yield the tests that each target lists as failed; why is said above the list."""
    begin = 0
    for listed in _LIST.finditer(text):
        above = text[begin : listed.start()]
        begin = listed.end()
        targets = _TARGET.findall(above)
        target = targets[-1].strip() if targets else ""
        why = _reasons(above)
        for line in listed["names"].splitlines():
            name = line.strip()
            said = why.get(name, "")
            title = f"{name}: {' '.join(said.split())}" if said else name
            yield Found(title=title, message=said, identity=f"{target}\n{name}")


def _reasons(text: str) -> dict[str, str]:
    reasons = {}
    for match in _SECTION.finditer(text):
        section = text[match.end() : match.end() + _SECTION_CHARS].partition("\n---- ")[0]
        panic, said = _PANIC.search(section), _SAID.search(section)
        reasons[match["name"]] = panic["message"] if panic else said[0] if said else ""
    return reasons
