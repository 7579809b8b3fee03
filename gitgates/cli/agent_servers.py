"""`install-hooks --agent --mcp`: register `gitgates mcp` with a coding agent, for a project."""

from __future__ import annotations

import importlib.util
import os

import click

from gitgates.cli.agent_hooks import replace
from gitgates.core.errors import UsageError
from gitgates.edit import user_file
from gitgates.git.repo import Repo
from gitgates.hosts import agent_host, agent_servers
from gitgates.hosts.settings.base import SCOPES

_WHAT = "the entries of the gitgates server"
_PROGRAM = "gitgates"  # by its bare name: a team shares the file


def require(agent: str, scope: str) -> None:
    """Check that the server can be registered, before anything is written.

    Raises: UsageError.
    """
    servers = agent_servers(agent)
    if servers is None:
        raise UsageError(f"{agent_host(agent).TITLE} has no file to register a server in")
    if scope != SCOPES[0]:
        raise UsageError(
            f"--mcp registers the server for the project, and cannot be used with --scope {scope}",
            f"Instead, run: {servers.OTHER_SCOPES.format(scope=scope)}",
        )


def register(repo: Repo, agent: str, *, print_only: bool) -> None:
    """Register the server and print the changes, or only print what would be written."""
    servers = agent_servers(agent)
    if servers is None:
        return
    if print_only:
        click.echo(f"\n{servers.FILE}:\n\n{servers.add(None, _PROGRAM, servers.FILE)}", nl=False)
        return
    path_abs = os.path.join(repo.root_abs, servers.FILE)
    user_file.require_inside(repo.root_abs, path_abs)
    before = user_file.read(path_abs)
    after = servers.add(before, _PROGRAM, servers.FILE)
    replace(repo, path_abs, before, after, what=_WHAT, how="added")
    if importlib.util.find_spec("mcp") is None:
        click.echo(
            "gitgates: `gitgates mcp` needs a package that is not installed\n"
            "  Install it: pip install 'gitgates[mcp]'"
        )


def remove(repo: Repo, agent: str) -> None:
    """Unregister the server, and print that it was removed."""
    servers = agent_servers(agent)
    if servers is None:
        return
    path_abs = os.path.join(repo.root_abs, servers.FILE)
    before = user_file.read(path_abs)
    after = None if before is None else servers.remove(before, servers.FILE)
    if after != before:
        user_file.require_inside(repo.root_abs, path_abs)
        replace(repo, path_abs, before, after, what=_WHAT, how="removed")
