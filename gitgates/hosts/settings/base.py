"""The settings of coding agents, independent of the agent: hooks, and which are gitgates'. Pure.

A hook is ours by its whole command: `gitgates agent-hook NAME`, with the bare name or with an
absolute path. One that merely mentions us is somebody else's.

A pattern with `!` in front leaves a tool out, and means all others; what is named beside it is not
left out.
"""

from __future__ import annotations

import os
import re
import shlex

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCOPES = ("project", "local", "user")  # whose settings
_PROGRAM, _VERB = "gitgates", "agent-hook"
_BUT = "!"
_IF_INSTALLED = "if command -v {} >/dev/null 2>&1; then {}; fi"
# Not by `if`: fish, in which a client may run it, has another syntax for that.
_OR_ELSE = "command -v {} >/dev/null 2>&1 && exec {} || {}"
_SAY, _SAID = "echo '{}'", "echo '[^']*'"
_GUARDED = re.compile(
    r"if command -v (.+) >/dev/null 2>&1; then (?:exec (.+)|(.+?) \|\| :)"
    rf"(?:; else {_SAID})?; fi"
    rf"|command -v (.+) >/dev/null 2>&1 && exec (.+?) \|\| (?::|{_SAID})"
)
_VERSION = re.compile(r"(?<=clone of gitgates )[^\"' ]+")


class Entry(Record):
    """One gitgates hook as it should be in the settings."""

    event: str  # in the words of the configuration
    timeout_s: int
    matcher: str | None = None  # in the agent's words; None: all


class InstalledHook(Record):
    """One hook in settings."""

    event: str
    command: str  # with its arguments
    timeout_s: float
    matcher: str | None = None
    is_ours: bool = False
    loose: str = ""  # what it says that keeps it from blocking, and how


class HookSettings(Record):
    """What a file of settings says."""

    hooks: tuple[InstalledHook, ...] = ()
    off: bool | None = None  # whether it switches all hooks off; None: not said
    troubles: Mapping[str, str] = {}  # what else keeps hooks from running → what fixes it
    env: Mapping[str, str] = {}  # added to the environment of hooks
    plugins: Mapping[str, bool] = {}  # name → whether it is enabled

    @property
    def our_hooks(self) -> tuple[InstalledHook, ...]:
        """The hooks that start gitgates."""
        return tuple(hook for hook in self.hooks if hook.is_ours)


def bare(agent: str) -> str:
    """Return the command of gitgates hooks, with the bare name of the program."""
    return f"{_PROGRAM} {_VERB} {agent}"


def guarded(command: str, *, always: bool = False, otherwise: str = "") -> str:
    """Return a gitgates command that does nothing if its program is missing, or what is said.

    `always`: nor if it is killed, or cannot be started.
    """
    call = f"{command} || :" if always else f"exec {command}"
    return _IF_INSTALLED.format(_program_of(command), call + (otherwise and f"; else {otherwise}"))


def committed(command: str, otherwise: str = "") -> str:
    """Return a gitgates command for those who may not have its program, and what is done then."""
    return _OR_ELSE.format(_program_of(command), command, otherwise or ":")


def saying(answer: str) -> str:
    """Return the command that prints an answer, which has no quotation mark nor backslash."""
    return _SAY.format(answer)


def _program_of(command: str) -> str:
    return command.removesuffix(command[command.index(f" {_VERB} ") :])


def unguarded(command: str) -> str:
    """Return a command without the guard around it."""
    match = _GUARDED.fullmatch(command)
    program, inner = filter(None, match.groups()) if match else ("", "")
    return inner if match and inner.startswith(f"{program} ") else command


def of_any_version(command: str) -> str:
    """Return a command of a hook without the version that it says how to install."""
    return _VERSION.sub("", command)


def is_our_command(command: object, agent: str) -> bool:
    """Return whether the command of a hook is gitgates'."""
    try:
        words = shlex.split(unguarded(command)) if isinstance(command, str) else []
        program, *arguments = words or [""]
    except ValueError:  # a quotation that does not end, or nothing
        return False
    is_program = os.path.isabs(program) and os.path.basename(program) == _PROGRAM
    return arguments == [_VERB, agent] and (is_program or program == _PROGRAM)


# Patterns


def split(patterns: tuple[str, ...]) -> list[str]:
    """Return the parts of patterns (names, `A|B`, globs, `!A`), each once."""
    parts = [part.strip() for pattern in patterns for part in pattern.split("|")]
    return list(dict.fromkeys(part for part in parts if part))


def left_out(parts: list[str]) -> list[str]:
    """Return what is left out in the end: not what is named as well."""
    included = [part for part in parts if not part.startswith(_BUT)]
    excluded = [part.removeprefix(_BUT) for part in parts if part.startswith(_BUT)]
    return [name for name in excluded if not any(_fits(part, name) for part in included)]


def expression(part: str) -> str:
    """Return a glob as a regular expression."""
    return "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in part)


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(expression(part), name) is not None
