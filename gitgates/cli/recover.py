"""`gitgates recover` and `gitgates gc`: list, restore and prune the state folder."""

from __future__ import annotations

import os
import shlex
import sys

import click

from gitgates.config.load import load
from gitgates.core import environ, errors
from gitgates.core.parts import feature_parts
from gitgates.core.types import Config
from gitgates.git.repo import Repo, current_folder, find_repo
from gitgates.store.files import open_regular
from gitgates.store.owners import require_access
from gitgates.store.rescue import Rescue
from gitgates.store.slots import kept_slots
from gitgates.verbs.output import dump
from gitgates.verbs.repository import current_repo
from gitgates.worktree.cache import cache_path
from gitgates.worktree.checkouts import FOLDER
from gitgates.worktree.gc import collect
from gitgates.worktree.isolate import recover
from gitgates.worktree.restored import Restored, bring_back, list_missing


@click.command("recover")
@click.option(
    "--list",
    "wish",
    flag_value="list",
    help="List stashed and kept files without changing anything.",
)
@click.option("--apply", "wish", flag_value="apply", default=True, help="Restore stashed files.")
@click.option(
    "--restore",
    "missing",
    metavar="PATH",
    help="Restore again a file that --list shows as restored.",
)
@click.option("--show", "path", metavar="PATH", help="Print the content of a stashed or kept file.")
def command(*, wish: str, missing: str | None, path: str | None) -> int:
    """Restore unstaged work that an interrupted run stashed, and finish an interrupted undo.

    Every gitgates command restores files first; this one also lists and shows them. Versions that
    could not be merged are kept for 30 days. A killed headless run's work is kept under a ref, and
    the rest is removed.

    Restored files are kept for a day, in case a concurrent git command that read the files while
    they were stashed overwrites them. --restore restores such a file again; if its path is taken,
    as PATH.recovered next to it.
    """
    repo = find_repo(current_folder(), environ.read())
    require_access(repo.state_abs)
    if path:
        return _show(repo, path)
    if wish == "list":
        return _list(repo)
    lines = recover(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    for line in lines or ():
        click.echo(line)
    finished = [line for part in feature_parts("recovery") for line in part.recover(repo)]
    for line in finished:
        click.echo(line)
    if missing:
        return _restore(repo, missing)
    doubtful = [file for file in list_missing(repo) if file.is_doubtful]
    was_missing = _bring_back(repo, doubtful)
    if not (was_missing or finished) and lines is None:
        click.echo("nothing to recover")
    return errors.OK


def _bring_back(repo: Repo, missing: list[Restored]) -> bool:
    """Bring back what git has replaced, name the rest; return whether there was anything."""
    for file in missing:
        if file.is_replaced:
            _bring_back_file(repo, file)
    # Nothing of a person's edits is overwritten.
    for path in dict.fromkeys(file.path for file in missing if not file.is_replaced):
        click.echo(f"{path} has changed since it was restored")
        click.echo(
            f"  to restore that content next to it: gitgates recover --restore {shlex.quote(path)}"
        )
    return bool(missing)


def _bring_back_file(repo: Repo, missing: Restored) -> None:
    place = bring_back(repo, missing)
    beside = "" if place == missing.path else f" in {place}, next to the existing file"
    click.echo(f"restored {missing.path}{beside}: as it was restored after {missing.when}")


def _restore(repo: Repo, path: str) -> int:
    """Bring back the last version of a path that was restored."""
    latest = next((file for file in list_missing(repo) if file.path == path), None)
    if latest is None:
        what = f"no missing file under `{path}` was restored in the last day"
        raise errors.UsageError(what, "See: gitgates recover --list")
    _bring_back_file(repo, latest)
    return errors.OK


def _list(repo: Repo) -> int:
    rows = [*_hidden_rows(repo), *_kept_rows(repo), *_restored_rows(repo)]
    for path, what, path_abs in rows:
        click.echo(f"{path}  {what}{path_abs}")
    pending = [line for part in feature_parts("recovery") for line in part.pending(repo)]
    for line in pending:
        click.echo(line)
    if not (rows or pending):
        click.echo("no stashed or kept files")
    return errors.OK


def _show(repo: Repo, name: str) -> int:
    """Print a file: the stashed one, otherwise the last kept one."""
    rows = [*_hidden_rows(repo), *reversed(_kept_rows(repo)), *_restored_rows(repo)]
    path_abs = next((file_abs for path, _what, file_abs in rows if path == name), None)
    if path_abs is None:
        raise errors.UsageError(f"no stashed or kept file under `{name}`", "See: recover --list")
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            dump(file.read())
    except OSError as error:
        text = f"{path_abs}: cannot be shown: {error.strerror}"
        raise errors.UsageError(text, "Open it there.") from error
    return errors.OK


def _hidden_rows(repo: Repo) -> list[tuple[str, str, str]]:
    """Return each stashed file: its path, its kind, where it is kept."""
    rescue = Rescue(f"{repo.state_abs}/rescue")
    if not rescue.is_in_use():
        return []
    saved = [(entry.path, rescue.at("saved", entry.saved)) for entry in rescue.read().entries]
    return [(path, "hidden  ", path_abs) for path, path_abs in saved if os.path.isfile(path_abs)]


def _kept_rows(repo: Repo) -> list[tuple[str, str, str]]:
    """Return each kept file, oldest first."""
    kept_abs = f"{repo.state_abs}/kept"
    rows = []
    for folder_abs, _folders, names in os.walk(kept_abs):
        for name in names:
            path_abs = os.path.join(folder_abs, name)
            stamp, _, path = os.path.relpath(path_abs, kept_abs).partition("/")
            rows.append((path, f"kept  {stamp} ", path_abs))
    return sorted(rows, key=lambda row: row[1])


def _restored_rows(repo: Repo) -> list[tuple[str, str, str]]:
    """Return each file that was restored and no longer exists, newest first."""
    return [(file.path, f"restored {file.when} ", file.second_abs) for file in list_missing(repo)]


_WORDS = {
    "journals": ("session journal", "session journals"),
    "runs": ("run", "runs"),
    "checkouts": ("private checkout", "private checkouts"),
    "orphans": ("cache of a repository that is gone", "caches of repositories that are gone"),
    "kept": ("folder of kept files", "folders of kept files"),
    "restored": ("folder of restored files", "folders of restored files"),
    "objects": ("stored object", "stored objects"),
}


# \b: click leaves the lines that follow as they are.
_HELP = """Remove this worktree's old state, and list the private checkouts that are kept.

\b
session journals      without an entry for 30 days
runs                  beyond the newest `keep_runs` (default: 50)
private checkouts     not used for 14 days, beyond 4, or beyond 20 GiB
caches                of repositories that are gone
kept files            after 30 days, with their refs (gitgates recover --list)
restored files        after a day: their second links
stored git objects    not used for 30 days, in all worktrees

State that is in use is kept, and so are journals younger than a day and runs to which an agent may
still add an attempt. Agent hooks also do this, once a day.
"""


@click.command("gc", help=_HELP)
def gc() -> int:
    """Remove this worktree's old state, and list the private checkouts that are kept."""
    repo = current_repo()
    config = load(repo.root_abs, repo.config_cache_abs) or Config()
    for line in (line for part in feature_parts("recovery") for line in part.recover(repo)):
        click.echo(line)
    numbers = collect(repo, config, most_runs=sys.maxsize)
    removed = [
        f"{number} {_WORDS[what][number != 1]}" for what, number in numbers.items() if number
    ]
    click.echo(f"removed {', '.join(removed)}" if removed else "nothing to remove")
    for slot in kept_slots(f"{cache_path(repo)}/{FOLDER}"):
        size, days = slot.size_bytes / (1 << 20), slot.age_s / 86_400
        click.echo(f"kept {slot.folder_abs}: {size:.0f} MiB, used {days:.0f} days ago")
    return errors.OK
