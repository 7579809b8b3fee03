"""`gitgates check`, and `gitgates schema`: is the configuration right, and what may it hold."""

from __future__ import annotations

import json
import os

import click

from gitgates.cli import agent_hooks
from gitgates.cli.pipes import find_pipes
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


@click.command("check")
@format_option
def command(fmt: str) -> int:
    """Check the configuration and report every problem at once.

    Warns about gates that match no tracked file, or run before one that changes files, about pipes
    that hide a failure, and about limits of gates in the agents whose hooks are installed.

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
    """Yield a remark on each gate that runs before one which may change what it has checked."""
    writes = {gate.name for gate in config.gates if gate.writes}
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


@click.command("schema")
def schema() -> int:
    """Print the JSON Schema (draft-07) of [tool.gitgates] and of gitgates.toml.

    validate-pyproject finds it automatically; editors need it as a file.
    """
    click.echo(json.dumps(get_schema(), indent=2, ensure_ascii=False))
    return errors.OK
