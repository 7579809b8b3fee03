"""Whether a gate's tool has looked at everything, by its own output. Cold and pure.

A known failure may hide new ones: a tool that ends at the first error, or skips the rest of a file,
has not found them. So each tool must state that it has looked at everything, and how much it has
found; completeness.toml has each tool's signs.

A gate must run one tool only. In `ruff check && mypy`, mypy does not run if ruff fails; in
`ruff check; mypy`, the failures of mypy are not those that the preset of ruff knows.
"""

from __future__ import annotations

import os
import re
import shlex

from gitgates.core.clean import plain_line
from gitgates.core.record import Record
from gitgates.engine.findings.failures import short_lines
from gitgates.engine.findings.presets import either, patterns_of, read_toml, why_log_incomplete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gitgates.core.types import Gate
    from gitgates.engine.findings.presets import ParsedFailure

_SHOWN = 100
_DIGITS = 9  # of a number of failures
_OF_MAKE = re.compile(r"^\w*make(?:\[\d+\])?: \*\*\* \[[^\n]*\] Error (\d+)$", re.MULTILINE)
_STATUS_OF_MAKE = 2
# Nothing else prints the signs of these, so they also count for a gate with its own pattern.
_WELL_KNOWN = ("pytest", "go-test", "cargo", "mypy", "biome", "golangci-lint")
_OTHERS = "*"  # the table about tools without a preset, which is no regular expression either

_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_PIPES = ("|", "|&")
_ENDS = frozenset("();&|")
# Words before a command, which belong to the shell.
_BEFORE = " ! { } if then elif else fi while until do done time exec env nice "
# Commands that only prepare or display, and words that are no command.
_HARMLESS = (
    " . : [ [[ cat cd command cp echo exit export false grep head local ls mkdir mktemp mv popd "
    "printf pushd read return rm set shift shopt sleep source tail tee test touch trap true type "
    "ulimit umask unset wait which for case esac in "
)
_INSTALLS = ("ci", "i", "install", "sync")  # second words
# npm, pnpm, yarn and bun print what they start.
_ECHOED = re.compile(r"^(?:> \S[^\n]*\n>|yarn run [^\n]*\n\$|\A\$) (\S[^\n]*)", re.MULTILINE)
_FAILED_HOOK = re.compile(r"^[^\n]+\.{3}[^\n]*Failed$", re.MULTILINE)  # of the pre-commit framework


class Signs(Record):
    """How a tool tells that it has looked at everything: a table of completeness.toml."""

    statuses: tuple[int, ...] = ()
    stops: str = ""
    options: str = ""
    needs: tuple[str, ...] = ()
    hides: str = ""
    counts: str = ""
    example: str = ""
    lines: tuple[str, ...] | None = None
    ends: tuple[tuple[str, str], ...] = ()
    why: str = ""


def read_signs() -> dict[str, Signs]:
    """Return the signs of each preset, by its name."""
    return {name: Signs(**table) for name, table in read_toml("completeness.toml").items()}


def why_stopped(gate: Gate, text: str, signs: dict[str, Signs]) -> str:
    """Return why an output shows that not everything was checked; empty: it was."""
    tool_signs = signs.get(gate.measures.failures)
    of_any = "|".join(signs[name].stops for name in (*_WELL_KNOWN, _OTHERS))
    match = _search(tool_signs.stops if tool_signs else of_any, short_lines(text))
    if tool_signs and not match:
        match = _search(tool_signs.options, _asked(gate, text))
    return f"it has not looked at everything: `{_shown(match[0].strip('! '))}`" if match else ""


def why_incomplete(
    gate: Gate,
    signs: dict[str, Signs],
    text: str,
    *,
    failures: Sequence[ParsedFailure],
    exit_status: int,
) -> str:
    """Return why others may be behind the failures that were found; empty: none are.

    A gate with its own pattern is not judged: its author knows the tool.
    """
    tool_signs = signs.get(gate.measures.failures)
    if not tool_signs:
        return ""
    if gate.measures.failures == "sarif" and (why := why_log_incomplete(text)):
        return why
    text = short_lines(text)
    return (
        _why_not_ended(gate, tool_signs, text, exit_status)
        or _why_hidden(tool_signs, failures)
        or _why_not_counted(gate, signs, text, len(failures))
    )


def _why_not_ended(gate: Gate, signs: Signs, text: str, exit_status: int) -> str:
    status = exit_status
    if status == _STATUS_OF_MAKE and (status_of_make := _OF_MAKE.search(text)):
        status = int(status_of_make[1][:_DIGITS])
    if signs.statuses and status not in signs.statuses:
        usual = " or ".join(map(str, signs.statuses))
        return f"it ended with exit status {status}, and with failures only, it is {usual}"
    request = _asked(gate, text)
    is_asked = all(_search(need, request) for need in signs.needs)
    is_ended = all(_search(end, text) for begin, end in signs.ends if _search(begin, text))
    return "" if is_asked and is_ended else signs.why


def _why_hidden(signs: Signs, failures: Sequence[ParsedFailure]) -> str:
    hides = re.compile(signs.hides, re.MULTILINE) if signs.hides else None
    for failure in failures:
        if hides and hides.search(f"{failure.identity}\n{failure.message}"):
            return f"others may be behind `{_shown(failure.title)}`"
    return ""


def _why_not_counted(gate: Gate, signs: dict[str, Signs], text: str, recognised: int) -> str:
    tool, wrappers = signs[gate.measures.failures], signs[_OTHERS].lines or ()
    numbers = list(_numbers(tool.counts, text)) if tool.counts else []
    if numbers:
        total = sum(numbers)
        differs = (
            f"it says that it has found {total}, and {recognised} are recognised in its output"
        )
        return "" if total == recognised else differs
    if tool.lines is None:
        return f"it does not say how many it has found, as in `{tool.example}`"
    recognisable = either([*patterns_of(gate.measures.failures), *tool.lines, *wrappers])
    rest = re.sub(recognisable, "", text, flags=re.MULTILINE).strip()
    line = _shown(rest.partition("\n")[0])
    return f"what this means is not known: `{line}`" if rest else ""


def _numbers(pattern: str, text: str) -> Iterator[int]:
    for match in re.finditer(pattern, text, re.MULTILINE):
        for group in match.groups():
            if group is not None:
                yield int(group[:_DIGITS]) if group.isdecimal() else 1


def _asked(gate: Gate, text: str) -> str:
    """Return what a gate runs, as far as is known: npm and others print what they start."""
    command: Any = gate.program.command or ""
    words = command if isinstance(command, str) else " ".join(command)
    return "\n".join(
        [*(f"{name}={value}" for name, value in gate.program.env), words, *_ECHOED.findall(text)]
    )


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.MULTILINE) if pattern else None


def _shown(text: str) -> str:
    return plain_line(text, _SHOWN)


# One tool, or several.


def why_several(gate: Gate, text: str) -> str:
    """Return why the output is not that of one tool alone; empty: it is."""
    for command in (_shell_command(gate), *_ECHOED.findall(text)):
        tools = list(_tools(command))
        if len(tools) > 1:
            return f"its command runs more than one tool: `{tools[0]}`, `{tools[1]}`"
    hooks = len(_FAILED_HOOK.findall(text))
    return f"{hooks} hooks have failed" if hooks > 1 else ""


def _shell_command(gate: Gate) -> str:
    if not isinstance(gate.program.command, tuple):
        return gate.program.command or ""
    program, *arguments = gate.program.command
    is_shell = os.path.basename(program) in _SHELLS and arguments[:1] == ["-c"]
    return "".join(arguments[1:2]) if is_shell else ""


def _tools(command: str) -> Iterator[str]:
    """Yield the name of each program that a shell starts, and that may check something."""
    words = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    parts: list[list[str]] = [[]]
    try:
        for word in words:
            if word not in _PIPES and _ENDS.issuperset(word):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:
        return  # an unclosed quote: the shell reports it
    for part in parts:
        if part and (tool := _tool(part)):
            yield tool


def _tool(words: list[str]) -> str:
    """Return the program of a command; empty for one that checks nothing."""
    while words and (f" {words[0]} " in _BEFORE or re.match(r"\w+=", words[0])):
        words = words[1:]
    if not words or words[0].startswith("#") or f" {words[0]} " in _HARMLESS:
        return ""
    return "" if any(word in _INSTALLS for word in words[1:2]) else os.path.basename(words[0])
