"""Recognise shell commands that do not change the files of a project: they read, or they test.

Tests write caches and reports, which git ignores as a rule. One with an option to update
something counts as a command that writes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.shell.syntax import SimpleCommand

# Programs that test → the subcommands that do; (): any.
_TESTERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("pytest", "py.test", "unittest", "mypy", "pyright", "jest", "rspec"), ()),
    **dict.fromkeys(("phpunit", "ctest", "flake8", "pylint", "eslint", "shellcheck"), ()),
    "ruff": ("check",),
    "cargo": ("test", "check", "clippy", "nextest"),
    "go": ("test", "vet"),
    **dict.fromkeys(("dotnet", "swift", "mix", "yarn", "bun"), ("test",)),
    **dict.fromkeys(("npm", "pnpm"), ("test", "t")),
    **dict.fromkeys(("mvn", "gradle", "gradlew"), ("test", "check", "verify")),
    "make": ("test", "tests", "check"),
    "deno": ("test", "check", "lint"),
    "vitest": ("run",),
    "tsc": ("--noEmit",),
}
# What may start one of those.
_STARTERS = (("uv", "run"), ("poetry", "run"), ("npx",), ("bundle", "exec"))
_WITH_SCRIPTS = ("npm", "pnpm", "yarn", "bun")
_UPDATING = (
    *("--fix", "--write", "--update", "--snapshot-update", "--inline-snapshot", "--unsafe-fixes"),
    *("--add-noqa", "--accept", "--output", "--junit", "--init", "-o", "-u", "-w", "-exec"),
    *("--sarif", "--code-quality"),
    "-fix",
)
# First words of most commands that read; others count as writing, and are not parsed.
_READING = (
    *("awk", "cat", "cd", "diff", "du", "echo", "egrep", "find", "for", "git", "gitgates", "grep"),
    *("head", "jq", "ls", "nl", "printf", "ps", "pwd", "rg", "sed", "sort", "stat", "tail", "test"),
    *("timeout", "tree", "wc", "which", "while", "xargs", "time", "sleep", "env", "bash"),
)
_LONGEST_S = 0.5


def leaves_files(command: str) -> bool:
    """Return whether a shell command is known to change no file of a project."""
    first = command.split(maxsplit=1)[:1]
    if not first or (first[0].isalnum() and not _may_be_known(first[0])):
        return False
    from gitgates.session.reading import reads  # the first word decides for most commands
    from gitgates.session.shell_commands import LONGEST
    from gitgates.shell.syntax import read_command_line

    if len(command) > LONGEST:
        return False
    line = read_command_line(command, longest_s=_LONGEST_S)
    harmless = (reads(simple_command) or _tests(simple_command) for simple_command in line.commands)
    return not line.trouble and bool(line.commands) and all(harmless)


def _may_be_known(program: str) -> bool:
    programs = (starter[0] for starter in _STARTERS)
    return program in {*_READING, *_TESTERS, *programs} or program.startswith("python")


def _tests(command: SimpleCommand) -> bool:
    is_updating = any("UPDATE" in name or "SNAPSHOT" in name for name in command.env)
    return not command.writes and not is_updating and is_test(command.words)


def is_test(words: Sequence[str]) -> bool:
    """Return whether a command is known to test, and to update nothing."""
    rest = _without_starter(list(words))
    if not rest or any(word.startswith(_UPDATING) for word in rest[1:]):
        return False
    program, behind = rest[0].rpartition("/")[2], rest[1:]
    if program in _WITH_SCRIPTS and behind[:1] == ["run"]:
        behind = behind[1:]
    subcommands = _TESTERS.get(program)
    if program == "make" and not {*_TESTERS["make"]}.issuperset(_targets(behind)):
        return False
    return subcommands is not None and (
        not subcommands or not {*subcommands}.isdisjoint(behind[:1])
    )


def _targets(words: Sequence[str]) -> list[str]:
    return [word for word in words if not (word.startswith("-") or "=" in word)]


def _without_starter(words: list[str]) -> list[str]:
    for starter in _STARTERS:
        if tuple(words[: len(starter)]) == starter:
            words = words[len(starter) :]
    is_module = words[1:2] == ["-m"] and words[0].rpartition("/")[2].startswith("python")
    return words[2:] if is_module else words
