"""`gitgates redo`: undo the last undo."""

from __future__ import annotations

import click

from gitgates.features.undo.cli import Request, begun, go_back, last_undo, options_of_undo
from gitgates.features.undo.git_back import Wish
from gitgates.features.undo.moments import recorded
from gitgates.hosts import is_called_by_agent
from gitgates.verbs.approval import require_person
from gitgates.verbs.repository import current_repo


@click.command("redo")
@options_of_undo
def command(
    *,
    dry_run: bool,
    index: bool,
    branch: bool,
    token: str,
    caller: str,  # noqa: ARG001 - every call of an agent has it
    fmt: str,
) -> int:
    """Undo the last undo: restore the files to their state before it.

    Later changes by others are merged or kept, as with `gitgates undo`.
    """
    repo = current_repo()
    if not dry_run and (is_called_by_agent(repo.env) or token):
        require_person(repo, "undo", token)
    with begun(repo) as limits:
        request = Request(wish=Wish(index, branch), is_dry=dry_run, is_redo=True, fmt=fmt)
        return go_back(repo, limits, last_undo(recorded(repo)), request)
