"""`gitgates check` and `gitgates schema`: is the configuration valid, and what may it contain."""

from __future__ import annotations

import json
import os
import shlex

import click

from gitgates.cli import agent_hooks
from gitgates.config.jsonschema import get_schema
from gitgates.config.load import describe, inspect
from gitgates.core import environ, errors
from gitgates.core.clean import counted
from gitgates.core.types import Config, Problem
from gitgates.git.repo import current_folder, find_repo
from gitgates.hosts import AGENTS, agent_host
from gitgates.setup.install.agent_needs import limits
from gitgates.verbs.directory import members_of
from gitgates.verbs.idle import NO_GATES, files_text, find_unmatched, has_gates
from gitgates.verbs.output import format_option, print_json
from gitgates.verbs.repository import config_root, ignore_local_settings, no_configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Programs that check nothing by themselves, so that only the end of their pipe counts.
_LISTING_PROGRAMS = (
    *("cat", "cut", "echo", "fd", "find", "git", "grep", "head", "ls", "printf", "rg", "sed"),
    *("sort", "tr", "true", "uniq", "yes"),
)
_COMMAND_ENDS = (";", "&", "&&", "||", ";;", "(", ")")
_BEFORE_A_COMMAND = ("!", "{", "if", "then", "else", "while", "until", "do", "time", "exec", "env")


@click.command("check")
@format_option
def command(fmt: str) -> int:
    """Check the configuration and report every problem at once.

    Warns about gates that match no tracked file, gates that run before a gate that changes files,
    pipes that hide a failure, and what gates cannot do in the agents whose hooks are installed.

    Exit status 0: the configuration is valid. 78: it has errors, or is missing.
    """
    cwd_abs = current_folder()
    root_abs = config_root(cwd_abs)
    above = os.path.relpath(root_abs, cwd_abs)
    try:
        config, problems = inspect(root_abs)
    except errors.ConfigError as error:
        if fmt == "text":
            raise
        config, problems = None, (Problem("", error.message, error.hint),)
    if config is None and not problems:
        raise no_configuration(root_abs)
    if fmt == "json":
        problem_rows = [
            {"where": p.location, "message": p.message, "hint": p.hint} for p in problems
        ]
        warnings = _warnings(config, root_abs) if config else []
        document = {
            "version": 1,
            "ok": not problems,
            "problems": problem_rows,
            "warnings": warnings,
        }
        print_json(document)
    elif problems:
        click.echo(describe(list(problems)), err=True)
        folder = "" if above == "." else f" in {above}"
        click.echo(f"gitgates: {counted(len(problems), 'problem')}{folder}", err=True)
    elif config:
        paths = (os.path.normpath(f"{above}/{file}") for file in config.sources)
        files = files_text(config._replace(sources=tuple(paths)))
        gates, hooks = counted(len(config.gates), "gate"), counted(len(config.hooks), "hook")
        warnings = _warnings(config, root_abs)
        more = f", {counted(len(warnings), 'warning')}" if warnings else ""
        click.echo(f"{files}: {gates}, {hooks}, no problems{more}")
        for member in members_of(config):
            names = [gate.name for gate in config.gates if gate.name.startswith(f"{member}:")]
            click.echo(f"  {member}: {', '.join(names) or 'no gates'}")
        for what in warnings:
            click.echo(f"gitgates: {what}", err=True)
    return errors.ConfigError.exit_status if problems else errors.OK


def _warnings(config: Config, root_abs: str) -> list[str]:
    try:
        repo = find_repo(root_abs, environ.read())
        ignore_local_settings(repo)
        unmatched = list(find_unmatched(config, repo))
    except errors.GitError:
        unmatched = []  # a configuration can be checked without git
    idle = [] if has_gates(config) else [NO_GATES]
    remarks = (*unmatched, *find_pipes(config))
    matching = [f"gate `{name}`: {what}" for name, what in remarks]
    return [*idle, *matching, *_late_fixers(config), *_limits(config, root_abs)]


def _late_fixers(config: Config) -> Iterator[str]:
    """Yield a remark on each gate that runs before a gate that may change what it checked."""
    writes = {gate.name for gate in config.gates if gate.program.writes}
    for hook in config.hooks:
        names = [name for name in hook.gates if name in writes]
        last = hook.gates.index(names[-1]) if names else 0
        if early := [name for name in hook.gates[:last] if name not in writes]:
            yield (
                f"{hook.name}: gate `{early[0]}` runs again if `{names[-1]}` changes files; "
                f"better: [{', '.join([*names, *(n for n in hook.gates if n not in writes)])}]"
            )


def _limits(config: Config, root_abs: str) -> list[str]:
    """Return what gates cannot do in the agents whose settings here have our hooks."""
    limitations = []
    for agent in AGENTS:
        settings_files = agent_host(agent).settings_files(root_abs, environ.read())
        if any(
            agent_hooks.read_settings(agent, path_abs).our_hooks
            for path_abs in settings_files.values()
        ):
            limitations += limits(config, agent)
    return limitations


def find_pipes(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the name of each gate of which a failure is lost in a pipe, and the remark on it."""
    for gate in config.gates:
        command = gate.program.command if isinstance(gate.program.command, str) else ""
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
        if token in _COMMAND_ENDS:
            checks = [
                name for name in names[:-1] if os.path.basename(name) not in _LISTING_PROGRAMS
            ]
            if checks:
                yield checks[0], names[-1]
            names, is_first = [], True
        elif token in ("|", "|&"):
            is_first = True
        elif is_first and "=" not in token and token not in _BEFORE_A_COMMAND:
            names.append(token)
            is_first = False


@click.command("schema")
def schema() -> int:
    """Print the JSON Schema (draft-07) of [tool.gitgates] and of gitgates.toml.

    validate-pyproject finds it automatically; editors need it as a file.
    """
    click.echo(json.dumps(get_schema(), indent=2, ensure_ascii=False))
    return errors.OK
