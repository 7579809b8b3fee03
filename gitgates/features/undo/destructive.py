"""Commands with effects elsewhere, or beyond return: rows of `destructive.toml`."""

from __future__ import annotations

import functools
import itertools
import os
import re
from fnmatch import fnmatchcase

from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.git.repo import Git
    from gitgates.shell.syntax import SimpleCommand

_MOST_GLOBALS = 2  # operands before the words of a row: values of options such as `-n NAMESPACE`
_USUAL = ("main", "master", "trunk")  # names of default branches, if git knows of none


@functools.cache
def data() -> dict[str, Any]:
    """Return what `destructive.toml` holds."""
    import tomllib  # most commands threaten nothing

    with open(os.path.join(os.path.dirname(__file__), "destructive.toml"), "rb") as file:
        return tomllib.load(file)


def destroyed(command: SimpleCommand, git: Git) -> str:
    """Return what a command destroys beyond return, or changes elsewhere; empty if nothing."""
    words = command.words
    program = os.path.basename(words[0]) if words else ""
    rows = (row for row in data()["command"] if _has_program(row, program))
    return next((row["what"] for row in rows if _matches(row, command, git)), "")


def _has_program(row: Mapping[str, Any], program: str) -> bool:
    return any(fnmatchcase(program, name) for name in row["programs"])


def _matches(row: Mapping[str, Any], command: SimpleCommand, git: Git) -> bool:
    words = command.words[1:]
    if row.get("default_branch"):
        return _forces_default(command, git)
    if any(word in row.get("without", ()) for word in words):
        return False
    plain = [word for word in words if not word.startswith("-")]
    starts = [plain[at:] for at in range(_MOST_GLOBALS + 1)]
    verbs = row.get("words", ())
    if verbs and not any(start[: len(verb)] == verb for verb in verbs for start in starts):
        return False
    if "options" in row and not _has_option(words, row["options"]):
        return False
    texts = (*words, "" if UNKNOWN in command.stdin else command.stdin)
    pattern = row.get("text", "")
    return not pattern or any(re.search(pattern, text, re.MULTILINE) for text in texts)


def _has_option(words: tuple[str, ...], options: list[str]) -> bool:
    pairs = (f"{word} {after}" for word, after in itertools.pairwise(words))
    return not {*words, *pairs}.isdisjoint(options)


def _forces_default(command: SimpleCommand, git: Git) -> bool:
    """Return whether a push replaces or deletes the remote's default branch."""
    call = git_call(list(command.words[1:]))
    options = read_options(call.rest, "o", ("--push-option", "--repo", "--receive-pack"))
    if call.verb != "push" or options.has("-n", "--dry-run"):
        return False
    is_forced, deletes = options.has("-f", "--force"), options.has("-d", "--delete")
    if options.has("--mirror") or (is_forced and options.has("--all", "--branches")):
        return True
    remote, *specs = options.plain or ("origin",)
    names = [] if specs else _current(git) if is_forced else []
    for spec in specs:
        source, colon, goal = spec.removeprefix("+").partition(":")
        if is_forced or deletes or spec.startswith("+") or (colon and not source):
            names += [goal or source] if source != "HEAD" or goal else _current(git)
    goals = {name.removeprefix("refs/heads/") for name in names}
    return not goals.isdisjoint(_default_branches(remote, git))


def _current(git: Git) -> list[str]:
    return [os.fsdecode(git.ask("symbolic-ref", "-q", "--short", "HEAD").stdout).strip()]


def _default_branches(remote: str, git: Git) -> tuple[str, ...]:
    ref = git.ask("symbolic-ref", "-q", "--short", f"refs/remotes/{remote}/HEAD").stdout
    name = os.fsdecode(ref).strip().removeprefix(f"{remote}/")
    return (name,) if name else _USUAL
