"""What a prompt asks of the strict form, and what the reviewer may do in it. Pure.

The reviewer is held read-only by what it asks for, not by what that does: a program that it may run
could still write. docs/explanation/review.md says what this can and cannot prevent.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent_types import ToolKind


ON = "on"
OFF = "off"
_STOP = ":stop"
# What output may be passed on to, and what shows where one is. None has an option that writes.
_FILTERS = ("head", "tail", "wc", "cat", "grep", "cut", "nl", "cd", "ls", "pwd", "echo")
# What a blocked agent is told to run, and what shows a change.
_SHOWING = (
    *(f"gitgates review {verb}" for verb in ("done", "skip", "post", "status", "diff", "request")),
    *("gitgates cannot-fix", "git diff", "git log", "git show", "git status"),
)
_PROGRAMS = {"git", "gitgates", *_FILTERS}
# Options of git itself that change nothing about what is read.
_QUIET = ("--no-pager", "-P")
_JOINTS = ";|&\n"
# Compiled by `re` when they are first needed: each shell command of an agent loads this module.
# What the shell takes as it is: in quotes, or behind a backslash.
_QUOTED = r"'[^']*'|\"(?:[^\"\\$`]|\\.)*\"|\\[^\n]"
# Lines that are joined; at the beginning of a word, a comment, and output that is thrown away.
_LEFT_OUT = (
    rf"(?P<quoted>{_QUOTED})|\\\n(?![#2&>])"
    r"|(?<![^\s;|&])(?<!\\\s)(?:#[^\n]*|(?:(?:2|&)?> ?/dev/null|2>&1)(?=[\s;|]|$))"
)
# What has a meaning to the shell that is not followed here: of a pattern, where it is an option.
_NOT_PLAIN = (
    r"[`$<>()\0'\"\\]|(?<!&)&(?!&)|&&&|\{(?![\w-]*\w[\w-]*\})|(?<![^\s;|&])\x01*-[^\s;|&]*[*?[]"
)
# Options that write a file, or start a program.
_WRITING = {"git": ("--output", "--ext-diff", "--textconv"), "gitgates": ("--output",)}
_SHORTEST = len("--ou")  # git takes the beginning of an option for the whole
_TEXT = "--text"  # an option of its own, which writes nothing


def asked_for(prompt: str, prefix: str) -> str:
    """Return what a prompt asks of the strict form: `on`, `off`, or nothing.

    The prefix counts only at the start, in any case, and followed by white space or the end.
    """
    words = prompt.split(maxsplit=2)[:2]
    if not (words and prefix):
        return ""
    if "".join(words).casefold() == (prefix + _STOP).casefold():
        return OFF  # with a blank in between, it is meant all the same
    asked = {prefix.casefold(): ON, (prefix + _STOP).casefold(): OFF}
    return asked.get(words[0].casefold(), "")


def is_near(prompt: str, prefix: str) -> bool:
    """Return whether a prompt looks as if it asked, and does not: `#review, …`, `#review: …`."""
    words = prompt.split(maxsplit=1)
    if not (words and prefix) or asked_for(prompt, prefix):
        return False
    rest = words[0].casefold().removeprefix(prefix.casefold())
    return rest != words[0].casefold() and not rest[0].isalnum() and rest[0] not in "-_/"


def refuse_tool(kind: ToolKind, tool: str, command: str, allowed: tuple[str, ...]) -> str:
    """Return why the reviewer may not use a tool; empty if it may."""
    if kind == "reads":
        return ""
    if kind != "shell":
        return f"The reviewer only reads: it may not use {tool or 'this tool'}."
    commands = split_commands(command)
    if commands is None:
        return (
            "The reviewer may run only plain commands: no substitutions, no variables, no files "
            "written, nothing in the background. Put text with such signs into single quotes."
        )
    return next((why for words in commands if (why := _refuse_command(words, allowed))), "")


def only_shows(command: str) -> bool:
    """Return whether a line for the shell changes no file."""
    first = command.split(maxsplit=1)[:1]
    # Most commands are told by their first word; a comment may stand before it, or a quote.
    if not first or (first[0].isalnum() and first[0] not in _PROGRAMS):
        return False
    return not refuse_tool("shell", "", command, _SHOWING)


def _refuse_command(words: list[str], allowed: tuple[str, ...]) -> str:
    if words[0] in _FILTERS:
        return ""
    words = _without_quiet(words)
    if not any(words[: len(one)] == one for one in map(str.split, allowed)):
        listed = ", ".join(f"`{one}`" for one in allowed) or "none"
        rest = ", ".join(_FILTERS)
        named = " ".join(words[:2])
        return f"The reviewer may not run `{named}`. It may run: {listed}; and {rest}."
    writing = _WRITING.get(words[0], ())
    if any(_is_one_of(word, writing) for word in words[1:]) or _exports(words):
        return f"The reviewer may not have {words[0]} write a file, or start a program."
    return ""


def _without_quiet(words: list[str]) -> list[str]:
    """Return a command of git without what only says where, and how, it shows something."""
    while words[0] == "git" and words[1:2]:
        if words[1] in _QUIET:
            words = [words[0], *words[2:]]
        elif words[1] == "-C" and len(words) > len(("git", "-C", ".")):
            words = [words[0], *words[3:]]
        else:
            break
    return words


def _is_one_of(word: str, options: tuple[str, ...]) -> bool:
    name = word.partition("=")[0]
    return len(name) >= _SHORTEST and name != _TEXT and any(o.startswith(name) for o in options)


def _exports(words: list[str]) -> bool:
    """Return whether the message log is to be written to a file."""
    is_export = words[:3] == ["gitgates", "journal", "export"]
    return is_export and any(word.startswith("-o") for word in words[3:])


def split_commands(text: str) -> list[list[str]] | None:
    """Return the words of each command in a line for the shell; None if it is not plain.

    Commands may be joined by `&&`, `||`, `;`, `|` and line ends, and their output thrown away.
    """
    import shlex  # most commands are told by their first word

    text = re.sub(_LEFT_OUT, lambda found: found["quoted"] or "", text, flags=re.DOTALL)
    if re.search(_NOT_PLAIN, re.sub(_QUOTED, _stand_in, text, flags=re.DOTALL)):
        return None
    signs = shlex.shlex(text, posix=True, punctuation_chars=_JOINTS)
    signs.whitespace, signs.whitespace_split, signs.commenters = " \t\r\v\f", True, ""
    commands: list[list[str]] = [[]]
    for word in signs:
        if word and not word.strip(_JOINTS):
            commands.append([])
        else:
            commands[-1].append(word)
    return [words for words in commands if words]


def _stand_in(found: re.Match[str]) -> str:
    """Return what a quoted text looks like to the shell: a beginning of an option, or any text.

    What would be taken for a joint afterwards, and lines that are joined in quotes, are not plain.
    """
    quoted = found.group()
    inside = quoted[1:] if quoted[0] == "\\" else quoted[1:-1]
    if (inside and not inside.strip(_JOINTS)) or (quoted[0] == '"' and "\\\n" in quoted):
        return "$"
    return "-" if inside.startswith("-") else "x" if inside else "\x01"
