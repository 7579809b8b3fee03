"""Find gates whose failure a pipe hides: `sh` returns the exit status of its last command."""

from __future__ import annotations

import os
import shlex

from gitgates.core.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What a pipe begins with where only its end checks anything.
_LISTS = (
    *("cat", "cut", "echo", "fd", "find", "git", "grep", "head", "ls", "printf", "rg", "sed"),
    *("sort", "tr", "true", "uniq", "yes"),
)
_ENDS = (";", "&", "&&", "||", ";;", "(", ")")
_BEFORE = ("!", "{", "if", "then", "else", "while", "until", "do", "time", "exec", "env")


def find_pipes(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the name of each gate of which a failure is lost in a pipe, and the remark on it."""
    for gate in config.gates:
        command = gate.command if isinstance(gate.command, str) else ""
        for lost, last in _pipes(command) if "pipefail" not in command else ():
            status = f"the exit status is that of `{last}`, the last command of the pipe"
            hint = "Write to a file first, or use: bash -o pipefail -c '…'"
            yield gate.name, f"a failure of `{lost}` is lost: {status}. {hint}"


def _pipes(command: str) -> Iterator[tuple[str, str]]:
    """Yield a command that may check something, and the last one, of each pipe in a text."""
    try:
        words = shlex.shlex(command, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        tokens = [*words, ";"]
    except ValueError:
        return  # it is not closed: the shell says so
    names: list[str] = []
    is_first = True
    for token in tokens:
        if token in _ENDS:
            checks = [name for name in names[:-1] if os.path.basename(name) not in _LISTS]
            if checks:
                yield checks[0], names[-1]
            names, is_first = [], True
        elif token in ("|", "|&"):
            is_first = True
        elif is_first and "=" not in token and token not in _BEFORE:
            names.append(token)
            is_first = False
