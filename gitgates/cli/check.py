"""`gitgates check`, and `gitgates schema`: is the configuration right, and what may it hold."""

from __future__ import annotations

import json

import click

from gitgates import environ, errors
from gitgates.clean import counted
from gitgates.cli import agent_hooks
from gitgates.cli.output import format_option, print_json
from gitgates.cli.repository import config_root, no_configuration
from gitgates.config.jsonschema import get_schema
from gitgates.config.load import describe, inspect
from gitgates.git.repo import current_folder
from gitgates.hosts import AGENTS, agent_host
from gitgates.install.agents import limits
from gitgates.types import Config, Problem


@click.command("check")
@format_option
def command(fmt: str) -> int:
    """Check the configuration and report every problem at once.

    Exit status 0: it is right. 78: it has problems, or there is none.
    """
    root_abs = config_root(current_folder())
    try:
        config, problems = inspect(root_abs)
    except errors.ConfigError as error:
        if fmt == "text":
            raise
        config, problems = None, (Problem("", error.message, error.hint),)
    if config is None and not problems:
        raise no_configuration(root_abs)
    if fmt == "json":
        found = [{"where": p.where, "message": p.message, "hint": p.hint} for p in problems]
        warnings = _limits(config, root_abs) if config else []
        document = {"version": 1, "ok": not problems, "problems": found, "warnings": warnings}
        print_json(document)
    elif problems:
        click.echo(describe(list(problems)), err=True)
        click.echo(f"gitgates: {counted(len(problems), 'problem')}", err=True)
    elif config:
        files = " and ".join(config.sources)
        gates, hooks = counted(len(config.gates), "gate"), counted(len(config.hooks), "hook")
        click.echo(f"{files}: {gates}, {hooks}, no problems")
        for what in _limits(config, root_abs):
            click.echo(f"gitgates: {what}", err=True)
    return errors.ConfigError.exit_status if problems else errors.OK


def _limits(config: Config, root_abs: str) -> list[str]:
    """Return what gates cannot do in the agents whose settings here have our hooks."""
    found = []
    for agent in AGENTS:
        own = agent_host(agent).settings_files(root_abs, environ.read())
        if any(agent_hooks.read_settings(agent, path_abs).ours for path_abs in own.values()):
            found += limits(config, agent)
    return found


@click.command("schema")
def schema() -> int:
    """Print the JSON Schema (draft-07) of [tool.gitgates] and of gitgates.toml.

    validate-pyproject finds it by itself; give it to an editor as a file.
    """
    click.echo(json.dumps(get_schema(), indent=2, ensure_ascii=False))
    return errors.OK
