"""`gitgates redo`: undo the last undo."""

from __future__ import annotations

import click

from gitgates.features.undo import points
from gitgates.features.undo.cli import (
    Request,
    finish_undo,
    go_back,
    locked,
    options_of_undo,
)
from gitgates.features.undo.selection import last_undo
from gitgates.features.undo.settings import repository_settings
from gitgates.hosts import is_called_by_agent
from gitgates.session.approval import require_person
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
    """Undo the last undo: the files are as they were before it.

    What somebody has changed since is merged or kept, as with `gitgates undo`.
    """
    repo = current_repo()
    with locked(repo):
        settings = repository_settings(repo)
        if not dry_run and (is_called_by_agent(repo.env) or token):
            require_person(repo, "undo", token)
        finish_undo(repo, settings)
        points.record(repo, settings, points.latest_call(repo))
        wanted = last_undo(points.points_of(repo))
        request = Request(with_index=index, with_branch=branch, is_dry=dry_run, fmt=fmt)
        return go_back(repo, settings, wanted, request)
