"""Patterns and commands written as for other tools, which can never match or run here. Pure."""

from __future__ import annotations

import re
import shlex

_BRACES = re.compile(r"(?<!\\)\{([^{}/]*,[^{}/]*)\}")
# Parts of regular expressions that gitignore(5) has no use for. `\$` stays possible.
_REGEX = re.compile(r"^\^|(?<!\\)\$$|\\[A-Za-z0-9]|\([^()]*\|[^()]*\)|\.[*+].*\\\.|\\\..*\.[*+]")
_NO_REGEX = "Patterns are not regular expressions, and use / between folders"
_ENDING = re.compile(r"\^?(?:\.\*)?\\\.\(?(?:\?:)?(\w+(?:\|\w+)*)\)?\$")
_OUTSIDE = re.compile(r"~/|/(?:home|Users)/[^/*]+/|[A-Za-z]:[\\/]")
# lefthook, hk; also in quotes.
_NAMES = "all_files|changed_files|files|push_files|staged_files"
_PLACEHOLDER = re.compile(rf"""(?<!\S)["']?(\{{\{{?\s*(?:{_NAMES})\s*\}}\}}?)["']?(?!\S)""")
_NAMING = re.compile(r"(?<!\S)-I ?\{")  # an option of xargs: then the braces are the user's own
_JOINS = ("&&", "||")
_SEARCHING = ("ack", "ag", "git", "grep", "rg")  # their arguments may look like that


def meant_pattern(pattern: str) -> str:
    """Return what to write instead of a pattern that can match no path; empty if it is fine."""
    body = pattern.removeprefix("!")
    if braces := _BRACES.search(body):
        head, tail = pattern[: len(pattern) - len(body) + braces.start()], body[braces.end() :]
        meant = [f"{head}{part.strip()}{tail}" for part in braces[1].split(",")]
        return f"Write one pattern for each, as .gitignore has no braces: {_quoted(meant)}."
    if ending := _ENDING.fullmatch(body):
        meant = [f"*.{part}" for part in ending[1].split("|")]
        return f"{_NO_REGEX}. Try {_quoted(meant)}."
    if _OUTSIDE.match(body):
        return 'Write it relative to the root of the repository, such as "src/x.py".'
    return f"{_NO_REGEX}." if _REGEX.search(body) else ""


def meant_command(command: str | list[str]) -> str:
    """Return what to write instead of a command that cannot work; empty if it is fine."""
    words = [command] if isinstance(command, str) else command
    for word in words:
        placeholder = _PLACEHOLDER.search(word)
        if placeholder and not any(map(_NAMING.search, (word, " ".join(words)))):
            return f"Remove {placeholder[1]}, and add pass_files = true."
    if isinstance(command, str):
        return ""
    program = words[0].split()
    if len(program) > 1 and ("/" not in program[0] or program[1].startswith("-")):
        meant = [*program, *words[1:]]
        return f"Try [{_quoted(meant)}], or {_quoted([' '.join(meant)])}."
    is_joined = any(word in _JOINS for word in words[1:-1])
    if is_joined and words[0].rpartition("/")[2] not in _SEARCHING:
        line = " ".join(word if word in _JOINS else shlex.quote(word) for word in words)
        return f"An array is not run by a shell. Try {_quoted([line])}."
    return ""


def _quoted(texts: list[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)
