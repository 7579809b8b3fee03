"""The commands of a line that run here, aliases of git replaced."""

from __future__ import annotations

import os

from gitgates.shell.known import known_output
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.git.repo import Repo
    from gitgates.shell.syntax import SimpleCommand

_MOST_COMMANDS = 500
_MOST_ALIAS = 100  # letters of a name


def commands_of(
    text: str, repo: Repo, cwd_abs: str, env: Mapping[str, str]
) -> tuple[SimpleCommand, ...]:
    """Return the commands of a line that run in this file system; of a long one, its beginning."""
    line = read_command_line(
        text,
        {**env, "PWD": cwd_abs},
        lambda words, cwd: known_output(repo, os.path.join(cwd_abs, cwd), words),
        is_folder=lambda path: os.path.isdir(os.path.join(cwd_abs, path)),
    )
    return tuple(
        plain
        for command in line.commands[:_MOST_COMMANDS]
        if not command.elsewhere
        for plain in _without_alias(_without_nul(command), repo)
    )


def _without_nul(command: SimpleCommand) -> SimpleCommand:
    """Return a command without NUL characters, which a shell drops."""
    return command._replace(
        words=tuple(word.replace("\0", "") for word in command.words),
        cwd=command.cwd.replace("\0", ""),
        fallback=command.fallback.replace("\0", ""),
    )


def _without_alias(command: SimpleCommand, repo: Repo) -> Iterator[SimpleCommand]:
    """Yield a command; if it is an alias of git, the commands that it stands for."""
    words = command.words
    call = git_call(list(words[1:])) if words and os.path.basename(words[0]) == "git" else None
    is_name = call and call.verb.replace("-", "").isalnum() and len(call.verb) < _MOST_ALIAS
    text = ""
    if call and is_name:
        completed = repo.git.ask("config", "--get", f"alias.{call.verb}")
        text = os.fsdecode(completed.stdout).strip()
    if not (call and text):
        yield command
        return
    shell = text[1:] if text.startswith("!") else f"git {text}"
    inner = read_command_line(shell).commands
    for at, one in enumerate(inner):
        more = call.rest if at == len(inner) - 1 else ()
        folder = os.path.join(command.cwd, call.folder)
        yield one._replace(words=(*one.words, *more), cwd=folder, fallback=command.fallback)
