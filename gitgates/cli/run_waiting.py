"""`gitgates run HOOK --wait`: the gates of an agent's session, when it is its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import click

from gitgates.core import environ
from gitgates.core.errors import OK, UsageError
from gitgates.core.lifecycle import RETRY_HOOKS, kind_of
from gitgates.core.policy import functions_of
from gitgates.drivers.caller import identify
from gitgates.drivers.dry_call import call_by_hand
from gitgates.hosts import git as githook
from gitgates.report.documents import JsonDocument
from gitgates.report.text import Console, Terminal
from gitgates.verbs.repository import configuration, current_repo

Run: TypeAlias = Callable[[Console | JsonDocument, Terminal], int]


def own_run(names: tuple[str, ...], nonce: str, *, is_chosen: bool) -> Run | None:
    """Return what runs the gates of the session that calls us; None if none does.

    Raises: UsageError where gates or paths are chosen, or HOOK does not end an agent's work.
    """
    if is_chosen or len(names) != 1 or names[0] not in RETRY_HOOKS:
        hint = f"Use: gitgates run HOOK --wait, where HOOK is one of {', '.join(RETRY_HOOKS)}."
        raise UsageError("--wait runs all gates of a hook that ends an agent's work", hint)
    repo = current_repo()
    caller = identify(repo, environ.read(), nonce=nonce)
    if caller is None:
        return None  # a person's run waits, too
    config = configuration(repo)

    def run(listener: Console | JsonDocument, terminal: Terminal) -> int:
        call = call_by_hand(repo, config, kind_of(names[0]), caller)
        call.listener, call.say = listener, listener.message
        (run_gates,) = functions_of(config, "run_by_hand", call.kind)
        plan, decision = run_gates(call)
        if decision is None:
            click.echo("gitgates: nothing to run: the gates passed on this content, or are skipped")
            return OK
        terminal.write(listener.closing(decision, plan))
        return githook.encode(decision)

    return run
