"""`gitgates approve`: a person's token for a command that an agent may not run by itself."""

from __future__ import annotations

import os

import click

from gitgates.config.values import did_you_mean
from gitgates.core.errors import OK, UsageError
from gitgates.core.policy import functions_of
from gitgates.drivers.rules import approve, policy_settings
from gitgates.verbs.approval import ACTIONS, LASTS_S, is_person_at_terminal, new_token
from gitgates.verbs.repository import configuration, current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_RULES = "rules"


@click.command("approve")
@click.argument("action", nargs=-1, required=True, metavar="COMMAND...")
def command(action: tuple[str, ...]) -> int:
    """Print a token that allows an agent or a script to run one command.

    COMMAND is `review skip`, `intent approve-scope`, `trace prune`, `advice edit`, `advice close`,
    `advice remove`, `baseline write` or `undo` (also for `redo`). Pass the token to it with
    --token. It works once, in this repository, within ten minutes, and is printed only to a
    terminal.

    `gitgates approve rules` prints no token: the intents and policy settings in the files apply
    from now on, even in sessions that started with others.
    """
    action_name = " ".join(action).removeprefix("gitgates ")
    if action_name not in (*ACTIONS, _RULES):
        hint = did_you_mean(action_name, (*ACTIONS, _RULES)) or f"Known: {', '.join(ACTIONS)}."
        raise UsageError(f"not a command that a person approves: {action_name!r}", hint)
    repo = current_repo()
    if not (is_person_at_terminal(repo.env) and os.isatty(1)):
        raise UsageError(
            f"{action_name} can only be approved by a person in a terminal"
            if action_name == _RULES
            else "a token is only printed to a terminal",
            "Run this in a terminal outside the agent, without redirecting its output.",
        )
    if action_name == _RULES:
        return _approve_rules(repo)
    click.echo(new_token(repo, action_name))
    click.echo(
        f"gitgates: allows `gitgates {action_name} --token TOKEN` to {ACTIONS[action_name]}: "
        f"once, within {LASTS_S / 60:.0f} minutes",
        err=True,
    )
    return OK


def _approve_rules(repo: Repo) -> int:
    config = configuration(repo)
    files = [also(repo, config) for also in functions_of(config, "approve")]
    approve(repo, policy_settings(config))
    what = " and ".join([*files, "the policy settings"])
    click.echo(f"gitgates: {what} now apply as they are, even in running sessions")
    return OK
