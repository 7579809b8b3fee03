"""`gitgates runs`: what came of the runs that are kept, and what they say of each gate."""

from __future__ import annotations

import json
import os

import click

from gitgates import environ, errors
from gitgates.cli import runs_tables as tables
from gitgates.cli.output import dump
from gitgates.config.load import load
from gitgates.config.values import did_you_mean
from gitgates.git.repo import Repo, current_folder, find_repo
from gitgates.report.artifact_fields import is_sound
from gitgates.report.artifact_stats import COLUMNS, gate_stats
from gitgates.store import run_files, runs
from gitgates.store.log import read_ledger
from gitgates.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 1
_SHOWN = 20
_NAMED = 5  # runs, in an error
_format = click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")


@click.group("runs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Show what came of the runs that are kept (without a command: list them).

    `gitgates run` and hooks of agents leave results each time, hooks of git and of the pre-commit
    framework when a gate did not pass. Where they lie, and how many are kept, the keys
    `artifacts_dir` and `keep_runs` tell.
    """
    if context.invoked_subcommand is None:
        return _list("text", _SHOWN)
    return errors.OK


@command.command("list")
@_format
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=_SHOWN, show_default=True)
def list_command(fmt: str, limit: int) -> int:
    """List runs, the newest first.

    What came of it is the verdict of the last attempt; gates are those that did not pass then.
    `logs only`: all gates passed in a hook of git, or the run was killed.
    """
    return _list(fmt, limit)


@command.command("show")
@click.argument("run_id", metavar="ID")
@_format
def show(run_id: str, fmt: str) -> int:
    """Show one run: ID is its name, the beginning of it, or `latest`.

    As text, that is its summary.md; as JSON, its result.json.
    """
    repo = _repo()
    run_abs = f"{repo.state_abs}/runs/{_find(repo, run_id)}"
    try:
        data = run_files.read_result(run_abs) if fmt == "json" else run_files.read_summary(run_abs)
    except OSError as error:
        raise errors.StateError(
            f"the results in {run_abs} cannot be read: {error.strerror}", "Look at its files."
        ) from error
    if data is None:
        raise errors.UsageError(
            f"{os.path.basename(run_abs)} has no results",
            f"All gates passed, or it was killed. Its logs are in {run_abs}/logs",
        )
    dump(data)
    return errors.OK


@command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Default: `keep_runs`.")
def prune(keep: int | None) -> int:
    """Remove all runs but the newest.

    Runs that are being written stay, and for a day those that an agent may add an attempt to.
    """
    repo = _repo()
    if keep is None:
        config = load(repo.root_abs, f"{repo.state_abs}/config.marshal") or Config()
        keep = config.keep_runs
    gone, left = runs.prune(repo.state_abs, keep), len(runs.run_ids(repo.state_abs))
    click.echo(f"removed {tables.count(gone, 'run')}, {left} left")
    return errors.OK


@command.command(
    "stats", help=tables.help_of_stats("Tell what the kept runs say of each gate.", COLUMNS)
)
@_format
def stats(fmt: str) -> int:
    """Tell what the kept runs say of each gate."""
    repo = _repo()
    known = [document for _, document in _documents(repo) if document]
    found = gate_stats(known, _skipped(repo, known))
    if fmt == "json":
        gates = [gate._asdict() for gate in found]
        _print_json({"version": _VERSION, "runs": len(known), "gates": gates})
    else:
        click.echo(tables.stats_text(found, len(known)), nl=False)
    return errors.OK


def _list(fmt: str, limit: int) -> int:
    found = _documents(_repo())
    found = found[::-1][:limit]
    if fmt == "json":
        listed = [tables.listed(run_id, document) for run_id, document in found]
        _print_json({"version": _VERSION, "runs": listed})
    else:
        click.echo(tables.list_text(found), nl=False)
    return errors.OK


def _repo() -> Repo:
    return find_repo(current_folder(), environ.read())


def _documents(repo: Repo) -> list[tuple[str, dict[str, Any] | None]]:
    """Return id and result of each run, oldest first; None where there is none to be understood."""
    found: list[tuple[str, dict[str, Any] | None]] = []
    for run_id in runs.run_ids(repo.state_abs):
        try:
            document = json.loads(run_files.read_result(f"{repo.state_abs}/runs/{run_id}") or b"")
        except (OSError, ValueError, RecursionError):
            document = None
        found.append((run_id, document if is_sound(document) else None))
    return found


def _find(repo: Repo, wish: str) -> str:
    """Return the run that a person means.

    Raises: UsageError where there is none, or more than one.
    """
    known = runs.run_ids(repo.state_abs)
    if not known:
        raise errors.UsageError("no run is kept here", "Make one with: gitgates run")
    if wish == "latest":
        results = (run_id for run_id in known[::-1] if _has_result(repo, run_id))
        return next(results, known[-1])
    matching = [run_id for run_id in known if run_id.startswith(wish)]
    if wish in matching:
        return wish
    if len(matching) > 1:
        raise errors.UsageError(
            f"`{wish}` is the beginning of {len(matching)} runs", f"Newest: {_newest(matching)}."
        )
    if not matching:
        nearest = did_you_mean(wish, tuple(known))
        hint = f"{nearest} Newest: {_newest(known)}.".strip()
        raise errors.UsageError(f"no run `{wish}`", hint)
    return matching[0]


def _has_result(repo: Repo, run_id: str) -> bool:
    return os.path.exists(f"{repo.state_abs}/runs/{run_id}/{run_files.RESULT}")


def _newest(run_ids: list[str]) -> str:
    return ", ".join(run_ids[: -_NAMED - 1 : -1])


def _skipped(repo: Repo, known: list[dict[str, Any]]) -> list[str]:
    """Return a gate's name for each time that it was skipped here since the oldest kept run."""
    if not known:
        return []
    since = min(document["quality_gates"]["attempts"][0]["timestamp"] for document in known)
    return [
        gate
        for entry in read_ledger(repo.shared_state_abs)
        if entry.get("what") == "skip" and str(entry.get("time", "")) >= since
        if entry.get("root") == repo.root_abs and isinstance(entry.get("gates"), list)
        for gate in entry["gates"]
        if isinstance(gate, str)
    ]


def _print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=2))
