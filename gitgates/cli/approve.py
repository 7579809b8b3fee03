"""`gitgates approve`: a person's token for a command that an agent may not run by itself."""

from __future__ import annotations

import os

import click

from gitgates.approval import ACTIONS, LASTS_S, is_person_at_terminal, new_token
from gitgates.cli.repository import current_repo
from gitgates.config.values import did_you_mean
from gitgates.errors import OK, UsageError


@click.command("approve")
@click.argument("action", nargs=-1, required=True, metavar="COMMAND...")
def command(action: tuple[str, ...]) -> int:
    """Print a token that lets an agent, or a script, run a person's command once.

    COMMAND is `review skip`, `intent approve-scope`, `trace prune`, `advice edit`, `advice close`
    or `advice remove`, which take it as --token. It is for this repository, for ten minutes and for
    one use, and is printed to a terminal only.
    """
    named = " ".join(action).removeprefix("gitgates ")
    if named not in ACTIONS:
        hint = did_you_mean(named, tuple(ACTIONS)) or f"Known are: {', '.join(ACTIONS)}."
        raise UsageError(f"no command that takes a person's approval: {named!r}", hint)
    repo = current_repo()
    if not (is_person_at_terminal(repo.env) and os.isatty(1)):
        raise UsageError(
            "a token is printed to a person's terminal only",
            "Run this in a terminal outside of the agent, with its output not redirected.",
        )
    click.echo(new_token(repo, named))
    click.echo(
        f"gitgates: lets `gitgates {named} --token TOKEN` {ACTIONS[named]}: once, within "
        f"{LASTS_S / 60:.0f} minutes",
        err=True,
    )
    return OK
