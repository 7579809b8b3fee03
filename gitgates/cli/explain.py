"""`gitgates explain`: tell what a hook would run, on which paths, and why."""

from __future__ import annotations

from typing import Any

import click

from gitgates import environ
from gitgates.cli.completion import complete_hooks, unknown_hook
from gitgates.cli.output import format_option, print_json, stdout
from gitgates.cli.paths import PathCommand, PathSelection, path_options, select_paths
from gitgates.cli.repository import configuration, current_repo
from gitgates.engine.plan import find_hook, make_plan
from gitgates.errors import OK, UsageError
from gitgates.hosts.git import decode_by_hand
from gitgates.lifecycle import HOOK_POINTS, kind_of
from gitgates.policies.needs import asked_besides
from gitgates.report.documents import VERSION
from gitgates.report.explain import plan_document, plan_text
from gitgates.types import Config, Hook


@click.command("explain", cls=PathCommand)
@click.argument("hook", required=False, shell_complete=complete_hooks)
@click.option(
    "--for-agent",
    is_flag=True,
    help="Print the rules as a coding agent is told them at the start of a session.",
)
@path_options
@format_option
def command(hook: str | None, fmt: str, *, for_agent: bool, **options: Any) -> int:  # noqa: ANN401 - click's
    """Tell what HOOK would run now: every gate, why or why not, on which paths.

    Nothing is run. The paths are those of `gitgates run`: what has changed against HEAD, staged,
    unstaged and untracked, unless an option says otherwise.
    """
    if for_agent and hook:
        raise UsageError("--for-agent is about all hooks", "Leave out the name of the hook.")
    if hook and hook not in HOOK_POINTS:
        raise unknown_hook(hook)
    repo = current_repo()
    config = configuration(repo)
    if for_agent:
        _print_rules(config)
        return OK
    if hook is None:
        raise UsageError("Missing argument 'HOOK'.", f"Hooks with gates: {_with_gates(config)}.")
    found = find_hook(config, hook)
    besides = asked_besides(config, kind_of(hook))
    if besides:
        found = found or Hook(name=hook)
    elif found is None or not found.gates:
        if fmt == "json":
            print_json({"version": VERSION, "hook": hook, "configured_as": None, "gates": []})
        else:
            named = _with_gates(config)
            click.echo(f"{hook}: has no gates, so that nothing runs. Hooks with gates: {named}.")
        return OK  # a hook without gates is a choice, not a mistake
    paths, gone = select_paths(PathSelection(**options), repo)
    event = decode_by_hand(hook, paths, gone, (repo.root_abs, repo.git_dir_abs))
    if besides:
        event = event._replace(note=f"asked besides the gates: {', '.join(besides)}")
    plan = make_plan(config, found, event, environ.skipped_gates(environ.read()))
    if fmt == "json":
        print_json(plan_document(plan))
    else:
        terminal = stdout()
        text = plan_text(plan, colour=terminal.colour)
        terminal.write(text.encode("utf-8", "surrogateescape"))
    return OK


def _print_rules(config: Config) -> None:
    from gitgates.policies.rules import rules_text  # seldom needed

    if text := rules_text(config):
        click.echo(text)
    else:
        click.echo("No hook has gates, so that agents are told nothing.", err=True)


def _with_gates(config: Config) -> str:
    return ", ".join(hook.name for hook in config.hooks if hook.gates) or "none"
