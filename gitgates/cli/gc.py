"""`gitgates gc`: clear away what has grown old in our state folder."""

from __future__ import annotations

import click

from gitgates import errors
from gitgates.cli.repository import current_repo
from gitgates.config.load import load
from gitgates.types import Config
from gitgates.worktree.gc import collect

_WORDS = {
    "journals": ("journal of a session", "journals of sessions"),
    "runs": ("run", "runs"),
    "checkouts": ("private checkout", "private checkouts"),
    "kept": ("folder of texts kept aside", "folders of texts kept aside"),
    "objects": ("object of snapshots", "objects of snapshots"),
}


# \b: click leaves the lines that follow as they are.
_HELP = """Clear away what has grown old in the state folder of this worktree.

\b
journals of sessions  without a word for 30 days
runs                  beyond the newest `keep_runs` (default: 50)
private checkouts     not used for 14 days, or beyond 4
texts kept aside      after 30 days, with their refs (gitgates recover --list)
objects of snapshots  in no snapshot for 30 days, of all worktrees

What somebody uses stays, and so does a journal younger than a day and a run that an agent may still
add an attempt to. Hooks of agents do the same by themselves, once a day.
"""


@click.command("gc", help=_HELP)
def command() -> int:
    """Clear away what has grown old in the state folder of this worktree."""
    repo = current_repo()
    config = load(repo.root_abs, f"{repo.state_abs}/config.marshal") or Config()
    gone = collect(repo, config)
    removed = [f"{number} {_WORDS[what][number != 1]}" for what, number in gone.items() if number]
    click.echo(f"removed {', '.join(removed)}" if removed else "nothing to remove")
    return errors.OK
