"""`gitgates recover`: put back what a killed run had hidden; find texts that were kept aside."""

from __future__ import annotations

import os

import click

from gitgates import environ, errors
from gitgates.cli.output import dump
from gitgates.git.repo import Repo, current_folder, find_repo
from gitgates.store.files import open_regular
from gitgates.store.rescue import Rescue
from gitgates.worktree.isolate import recover


@click.command("recover")
@click.option("--list", "wish", flag_value="list", help="List what is hidden or kept; no change.")
@click.option("--apply", "wish", flag_value="apply", default=True, help="Put back what is hidden.")
@click.option("--show", "path", metavar="PATH", help="Print the text that is hidden or kept.")
def command(wish: str, path: str | None) -> int:
    """Put back the unstaged work that a killed run had hidden.

    Every gitgates command does this by itself before anything else; this one also lists and shows.
    Texts that could not be merged are kept for 30 days.
    """
    repo = find_repo(current_folder(), environ.read())
    if path:
        return _show(repo, path)
    if wish == "list":
        return _list(repo)
    lines = recover(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    for line in ("nothing to recover",) if lines is None else lines:
        click.echo(line)
    return errors.OK


def _list(repo: Repo) -> int:
    found = [(path, "hidden", where) for path, where in _hidden(repo)]
    found += [(path, "kept", f"{stamp} {where}") for path, stamp, where in _kept(repo)]
    for path, what, where in found:
        click.echo(f"{path}  {what}  {where}")
    if not found:
        click.echo("nothing is hidden or kept")
    return errors.OK


def _show(repo: Repo, path: str) -> int:
    places = [where for name, where in _hidden(repo) if name == path]
    places += [where for name, _stamp, where in reversed(_kept(repo)) if name == path]
    if not places:
        raise errors.UsageError(f"nothing of `{path}` is hidden or kept", "See: recover --list")
    try:
        with open(places[0], "rb", opener=open_regular) as file:
            dump(file.read())
    except OSError as error:
        text = f"{places[0]}: cannot be shown: {error.strerror}"
        raise errors.UsageError(text, "Look at it there.") from error
    return errors.OK


def _hidden(repo: Repo) -> list[tuple[str, str]]:
    """Return path and place of each text in the rescue folder."""
    rescue = Rescue(f"{repo.state_abs}/rescue")
    if not rescue.is_in_use():
        return []
    saved = [(entry.path, rescue.at("saved", entry.saved)) for entry in rescue.read().entries]
    return [(path, where) for path, where in saved if os.path.isfile(where)]


def _kept(repo: Repo) -> list[tuple[str, str, str]]:
    """Return path, time and place of each text kept aside, oldest first."""
    kept_abs = f"{repo.state_abs}/kept"
    found = []
    for folder, _folders, names in os.walk(kept_abs):
        for name in names:
            where = os.path.join(folder, name)
            stamp, _, path = os.path.relpath(where, kept_abs).partition("/")
            found.append((path, stamp, where))
    return sorted(found, key=lambda item: item[1])
