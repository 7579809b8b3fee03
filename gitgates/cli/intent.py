"""`gitgates intent`: what agents may work on, and where."""

from __future__ import annotations

import click

from gitgates import errors
from gitgates.clean import counted, visible_line
from gitgates.cli.output import format_option, print_json, table
from gitgates.cli.repository import configuration, current_repo
from gitgates.config.values import did_you_mean
from gitgates.intents.context import context_text
from gitgates.intents.file import Intents, load
from gitgates.intents.scope import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.intents.intent import Intent
    from gitgates.types import Config, IntentSettings

_VERSION = 1


@click.group("intent")
def command() -> None:
    """Show what agents may work on, and where.

    A person writes the intents into a file, .orchestration/active_intents.yaml unless
    [tool.gitgates.intents] names another. An agent selects one of those that are IN_PROGRESS.
    """


def settings_of(config: Config) -> IntentSettings:
    """Return the settings of intents.

    Raises: ConfigError where the configuration has none.
    """
    if config.intents is None:
        hint = "Add the table [tool.gitgates.intents] to it."
        raise errors.ConfigError("intents are not configured here", hint)
    return config.intents


def open_intents() -> tuple[Repo, Intents]:
    """Return the repository of the current folder, and its intents.

    Raises: ConfigError, GitError; IntentsError where their file is wrong.
    """
    repo = current_repo()
    config = configuration(repo)
    settings_of(config)
    return repo, load(repo, config)


def find_intent(intents: Intents, name: str) -> Intent:
    """Return the intent with an id.

    Raises: UsageError if there is none.
    """
    if found := intents.get(name):
        return found
    known = tuple(intent.id for intent in intents.intents)
    hint = did_you_mean(name, known) or "See them all with: gitgates intent list"
    raise errors.UsageError(f"{intents.file}: no intent `{visible_line(name)}`", hint)


@command.command("list")
@click.option("--path", metavar="PATH", help="Only those that this path may belong to.")
@format_option
def list_intents(path: str | None, fmt: str) -> int:
    """List the intents, in the order of the file; with --path, the nearest first."""
    repo, intents = open_intents()
    shown = intents.intents
    if path is not None:
        shown = nearest(shown, repo.relative(path), len(shown), ignore_case=repo.ignores_case)
    if fmt == "json":
        listed = [one._asdict() for one in shown]
        print_json({"version": _VERSION, "file": intents.file, "intents": listed})
        return errors.OK
    rows: list[tuple[str, ...]] = [(one.id, one.status, one.priority, one.title) for one in shown]
    if rows:
        click.echo(table(rows), nl=False)
    else:
        click.echo(f"gitgates: {intents.file}: no such intents", err=True)
    return errors.OK


@command.command("show")
@click.argument("name", metavar="ID")
@format_option
def show(name: str, fmt: str) -> int:
    """Show all of one intent, as an agent that selects it is told."""
    _repo, intents = open_intents()
    intent = find_intent(intents, name)
    if fmt == "json":
        print_json({"version": _VERSION, "file": intents.file, "intents": [intent._asdict()]})
    else:
        click.echo(context_text(intent, (), 1 << 30), nl=False)
    return errors.OK


@command.command("validate")
@format_option
def validate(fmt: str) -> int:
    """Check the intents file, and report every problem at once.

    Exit status 0: it is right, or not there. 78: it has problems.
    """
    try:
        _repo, intents = open_intents()
    except errors.IntentsError as error:
        if fmt == "text":
            raise
        print_json({"version": _VERSION, "ok": False, "problems": error.message.splitlines()})
        return error.exit_status
    if fmt == "json":
        print_json({"version": _VERSION, "ok": True, "problems": []})
    else:
        active = len(intents.active)
        click.echo(
            f"{intents.file}: {counted(len(intents.intents), 'intent')}, {active} of them "
            "can be selected, no problems"
        )
    return errors.OK
