"""Which program a gate could not find, in the words of shells, and whether PATH is why. Cold."""

from __future__ import annotations

import re

from gitgates.core.clean import plain_line
from gitgates.engine.command import NOT_FOUND
from gitgates.git.repo import without_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import Gate, GateResult

# dash: `NAME: 1: PROGRAM: not found`; bash: `NAME: line 1: PROGRAM: command not found`; zsh;
# env(1), which the first line of a script starts.
_SAID = re.compile(
    rb"(?m)(?:(?:^|: )([^\s:]+): (?:command )?not found|command not found: (\S+)"
    rb"|env: \W*([\w./+-]+)\W*: No such file or directory)\s*$"
)
# All that a program has in PATH that a desktop starts, as macOS does: launchctl(1).
_BARE = frozenset(("/usr/bin", "/bin", "/usr/sbin", "/sbin"))


def with_program(result: GateResult, gate: Gate, env: Mapping[str, str]) -> GateResult:
    """Return the result of a gate whose command was not found, with the name of the program."""
    reason, path = result.reason, dict(gate.env).get("PATH") or without_git(env).get("PATH", "")
    programs = _SAID.findall(result.output) if reason == NOT_FOUND else []
    if programs:
        program = b"".join(programs[-1])  # of the groups, one has matched
        reason = f"{reason}: {plain_line(program.decode('utf-8', 'replace'))}"
    if path and _BARE.issuperset(path.split(":")):
        reason += f"; PATH is only {path}, as in a client that was not started from a terminal"
    return result._replace(reason=reason)
