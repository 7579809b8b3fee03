"""Hooks in the settings of any coding agent, and which of them are gitgates'. Pure.

A hook is ours if its command is `gitgates agent-hook NAME`, with the bare name of the program or
its absolute path. A command that only mentions gitgates is not.

A pattern that begins with `!` excludes a tool, and selects all others; a tool that another pattern
names is not excluded.
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
# Not with `if`: a client may run it in fish, which has another syntax.
_OR_ELSE = "command -v {} >/dev/null 2>&1 && exec {} || {}"
_SAY, _SAID = "echo '{}'", "echo '[^']*'"
_GUARDED = re.compile(
    r"if command -v (.+) >/dev/null 2>&1; then (?:exec (.+)|(.+?) \|\| :)"
    rf"(?:; else {_SAID})?; fi"
    rf"|command -v (.+) >/dev/null 2>&1 && exec (.+?) \|\| (?::|{_SAID})"
)
_VERSION = re.compile(r"(?<=clone of gitgates )[^\"' ]+")


class Entry(Record):
    """A gitgates hook to install."""

    event: str  # its name in the configuration
    timeout_s: int
    matcher: str | None = None  # with the agent's names; None: all


class InstalledHook(Record):
    """A hook in settings."""

    event: str
    command: str  # with its arguments
    timeout_s: float
    matcher: str | None = None
    is_ours: bool = False
    loose: str = ""  # the key that keeps it from blocking, and how


class HookSettings(Record):
    """The hooks and related keys in a settings file."""

    hooks: tuple[InstalledHook, ...] = ()
    off: bool | None = None  # whether it disables all hooks; None: unspecified
    troubles: Mapping[str, str] = {}  # what else keeps hooks from running → fix
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
    """Return a gitgates command that runs `otherwise`, or nothing, if its program is missing.

    `always`: it also succeeds if the program is killed or cannot be started.
    """
    call = f"{command} || :" if always else f"exec {command}"
    return _IF_INSTALLED.format(_program_of(command), call + (otherwise and f"; else {otherwise}"))


def committed(command: str, otherwise: str = "") -> str:
    """Return a gitgates command for shared settings; `otherwise` runs if its program is missing."""
    return _OR_ELSE.format(_program_of(command), command, otherwise or ":")


def saying(answer: str) -> str:
    """Return the command that prints an answer without quotation marks and backslashes."""
    return _SAY.format(answer)


def _program_of(command: str) -> str:
    return command.removesuffix(command[command.index(f" {_VERB} ") :])


def unguarded(command: str) -> str:
    """Return a command without the guard around it."""
    match = _GUARDED.fullmatch(command)
    program, inner = filter(None, match.groups()) if match else ("", "")
    return inner if match and inner.startswith(f"{program} ") else command


def of_any_version(command: str) -> str:
    """Return a hook's command without the version that its message names."""
    return _VERSION.sub("", command)


def is_our_command(command: object, agent: str) -> bool:
    """Return whether a hook's command is gitgates'."""
    try:
        words = shlex.split(unguarded(command)) if isinstance(command, str) else []
        program, *arguments = words or [""]
    except ValueError:  # an unclosed quotation, or an empty command
        return False
    is_program = os.path.isabs(program) and os.path.basename(program) == _PROGRAM
    return arguments == [_VERB, agent] and (is_program or program == _PROGRAM)


# Patterns


def split(patterns: tuple[str, ...]) -> list[str]:
    """Return the parts of patterns (names, `A|B`, globs, `!A`), each once."""
    parts = [part.strip() for pattern in patterns for part in pattern.split("|")]
    return list(dict.fromkeys(part for part in parts if part))


def left_out(parts: list[str]) -> list[str]:
    """Return the excluded names, except those that another pattern includes."""
    included = [part for part in parts if not part.startswith(_BUT)]
    excluded = [part.removeprefix(_BUT) for part in parts if part.startswith(_BUT)]
    return [name for name in excluded if not any(_fits(part, name) for part in included)]


def expression(part: str) -> str:
    """Return a glob as a regular expression."""
    return "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in part)


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(expression(part), name) is not None
