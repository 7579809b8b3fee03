"""`gitgates list`: the hooks and their gates."""

from __future__ import annotations

import click

from gitgates.core.clean import visible_line
from gitgates.core.errors import OK
from gitgates.verbs.output import table
from gitgates.verbs.repository import configuration, current_repo


@click.command("list")
def command() -> int:
    """List the configured hooks, each with its gates, and the gates that no hook runs.

    To see which of them would run now, and why: gitgates explain HOOK
    """
    config = configuration(current_repo())
    rows = [(hook.name, ", ".join(hook.gates)) for hook in config.hooks if hook.gates]
    listed = {name for hook in config.hooks for name in hook.gates}
    if idle := [gate.name for gate in config.gates if gate.name not in listed]:
        rows.append(("in no hook", ", ".join(idle)))
    text = table([(visible_line(hook), visible_line(gates)) for hook, gates in rows])
    click.echo(text or "no gates\n", nl=False)
    return OK
