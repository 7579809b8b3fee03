"""`gitgates check`, and `gitgates schema`: is the configuration right, and what may it hold."""

from __future__ import annotations

import json

import click

from gitgates import errors
from gitgates.cli.repository import config_root
from gitgates.config.jsonschema import get_schema
from gitgates.config.load import describe, inspect
from gitgates.git.repo import current_folder


@click.command("check")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
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
        found = [{"where": "", "message": error.message, "hint": error.hint}]
        click.echo(json.dumps({"version": 1, "ok": False, "problems": found}, indent=2))
        return error.exit_status
    if config is None:
        raise errors.ConfigError(
            f"{root_abs}: no [tool.gitgates] in pyproject.toml, and no gitgates.toml",
            "Start with: gitgates init",
        )
    if fmt == "json":
        found = [{"where": p.where, "message": p.message, "hint": p.hint} for p in problems]
        document = {"version": 1, "ok": not problems, "problems": found}
        click.echo(json.dumps(document, indent=2))
    elif problems:
        click.echo(describe(list(problems)), err=True)
        click.echo(f"gitgates: {len(problems)} problem{'s' if len(problems) > 1 else ''}", err=True)
    else:
        files = " and ".join(config.sources)
        click.echo(
            f"{files}: {_count(config.gates, 'gate')}, {_count(config.hooks, 'hook')}, no problems"
        )
    return errors.ConfigError.exit_status if problems else errors.OK


def _count(items: tuple[object, ...], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


@click.command("schema")
def schema() -> int:
    """Print the JSON Schema (draft-07) of [tool.gitgates] and of gitgates.toml.

    validate-pyproject finds it by itself; give it to an editor as a file.
    """
    click.echo(json.dumps(get_schema(), indent=2, ensure_ascii=False))
    return errors.OK
