"""Whether a gate runs one tool only: what a known failure keeps from running is not looked at.

In `ruff check && mypy`, mypy does not run where ruff fails; in `ruff check; mypy`, the failures of
mypy are not those that the preset of ruff knows. Cold and pure.
"""

from __future__ import annotations

import os
import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.core.types import Gate

_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_PIPES = ("|", "|&")
_ENDS = frozenset("();&|")
# Words before a command, which belong to the shell.
_BEFORE = (
    *("!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"),
    *("time", "exec", "env", "nice"),
)
_NO_COMMANDS = ("for", "case", "esac", "in")
# What prepares, or shows, and checks nothing.
_HARMLESS = (
    *(
        ".",
        ":",
        "[",
        "[[",
        "cat",
        "cd",
        "command",
        "cp",
        "echo",
        "exit",
        "export",
        "false",
        "grep",
        "head",
    ),
    *("local", "ls", "mkdir", "mktemp", "mv", "popd", "printf", "pushd", "read", "return", "rm"),
    *("set", "shift", "shopt", "sleep", "source", "tail", "tee", "test", "touch", "trap", "true"),
    *("type", "ulimit", "umask", "unset", "wait", "which"),
)
_INSTALLS = ("ci", "i", "install", "sync")  # second words
# npm, pnpm, yarn and bun print what they start.
_ECHOED = re.compile(r"^(?:> \S[^\n]*\n>|yarn run [^\n]*\n\$|\A\$) (\S[^\n]*)", re.MULTILINE)
_FAILED_HOOK = re.compile(r"^[^\n]+\.{3}[^\n]*Failed$", re.MULTILINE)  # of the pre-commit framework


def why_several(gate: Gate, text: str) -> str:
    """Return why a gate has not run, or not shown, one tool only; empty: it has."""
    for command in (_shell_command(gate), *echoed(text)):
        tools = list(_tools(command))
        if len(tools) > 1:
            return f"its command runs more than one tool: `{tools[0]}`, `{tools[1]}`"
    hooks = len(_FAILED_HOOK.findall(text))
    return f"{hooks} hooks have failed" if hooks > 1 else ""


def echoed(text: str) -> list[str]:
    """Return the commands that a script has started, by its output."""
    return _ECHOED.findall(text)


def _shell_command(gate: Gate) -> str:
    if not isinstance(gate.command, tuple):
        return gate.command or ""
    program, *arguments = gate.command
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
        return  # it is not closed: the shell says so
    for part in parts:
        if part and (tool := _tool(part)):
            yield tool


def _tool(words: list[str]) -> str:
    """Return the program of a command; empty for one that checks nothing."""
    while words and (words[0] in _BEFORE or re.match(r"\w+=", words[0])):
        words = words[1:]
    if not words or words[0].startswith("#") or words[0] in (*_HARMLESS, *_NO_COMMANDS):
        return ""
    return "" if any(word in _INSTALLS for word in words[1:2]) else os.path.basename(words[0])
