"""`gitgates runs`: what came of the runs that are kept, and what they say of each gate."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from typing import Any

import click

from gitgates import errors
from gitgates.clean import counted, plain_line
from gitgates.cli.output import dump, format_option, print_json, table
from gitgates.cli.repository import current_repo
from gitgates.config.load import load
from gitgates.git.repo import Repo
from gitgates.headless.commit import FAILED_REFS
from gitgates.report import artifacts
from gitgates.store import runs
from gitgates.store.files import read_state
from gitgates.store.log import read_ledger
from gitgates.types import Config

_DECIDING = ("BLOCK", "STOP")
_IDLE = ("skipped", "not-run")

# field → the head of its column, how a value is written, and what it counts.
# The help of `gitgates runs stats` has these.
COLUMNS = {
    "runs": ("runs", "{}", "how often the gate ran; skipped is not run"),
    "total_seconds": ("total", "{:.1f} s", "the time of all of these together"),
    "median_seconds": ("median", "{:.1f} s", "the time in the middle: half of them took less"),
    "changed": ("changed", "{}", "outcomes changed: how often its own BLOCK or STOP decided"),
    "overrides": (
        "overridden",
        "{}",
        """how often a person skipped it (SKIP, GITGATES_SKIP) since the oldest kept run began, or
        an agent said that it cannot fix it""",
    ),
    "fed_back_bytes": (
        "fed back",
        "{} B",
        """its share of the bytes that agents were given: those of an attempt are shared out among
        the gates that decided, by the length of their outputs""",
    ),
    "fix_rate": (
        "fixed",
        "{:.0%}",
        """of the cycles of an agent in which it did not pass at some attempt: those in which it
        passed at a later one""",
    ),
    "attempts_to_pass": (
        "attempts",
        "{:.1f}",
        """of the cycles of an agent in which it passed: how often it had run with its first pass,
        on average""",
    ),
    "flaps": (
        "flaps",
        "{}",
        """snapshots on which it passed once and did not another time, under the same hook; each is
        listed below""",
    ),
}
_VERSION = 1
_SHOWN = 20
_NAMED = 5  # runs, in an error
_FAILED_SHOWN = 3
_HELP_WIDTH = 72


class _Tally:
    """The counters of one gate."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.changed = 0
        self.overrides = 0
        self.fed_back = 0.0
        self.cycles: list[list[bool]] = []  # of agents: whether it passed, attempt by attempt
        self.on_tree: dict[tuple[str, str], set[bool]] = {}  # hook and tree → whether it passed


def gate_stats(documents: Iterable[dict[str, Any]], skipped: Iterable[str]) -> list[dict[str, Any]]:
    """Return the statistics of each gate, the longest total time first.

    Fields are those of COLUMNS and the name; None if there was nothing to count.

    `skipped`: a gate's name for each time that a person left it out.
    """
    tallies: dict[str, _Tally] = {}
    for document in documents:
        _add_run(document["quality_gates"], tallies)
    for name in skipped:
        tallies.setdefault(name, _Tally()).overrides += 1
    found = [_gate(name, tally) for name, tally in tallies.items()]
    return sorted(found, key=lambda gate: (-gate["total_seconds"], gate["name"]))


def _add_run(cycle: dict[str, Any], tallies: dict[str, _Tally]) -> None:
    passes: dict[str, list[bool]] = {}
    for attempt in cycle["attempts"]:
        for result in attempt["results"]:
            tally = tallies.setdefault(result["name"], _Tally())
            if result["status"] in _IDLE:
                continue
            tally.seconds.append(result["duration_seconds"])
            tally.changed += _decided(result)
            passes.setdefault(result["name"], []).append(result["passed"])
            if tree := attempt.get("tree"):
                tally.on_tree.setdefault((attempt["hook"], tree), set()).add(result["passed"])
        _share_out(attempt, tallies)
        for name, _reason in attempt.get("cannot_fix", []):
            tallies.setdefault(name, _Tally()).overrides += 1
    if cycle["max_retries"]:
        for name, passed in passes.items():
            tallies[name].cycles.append(passed)


def _decided(result: dict[str, Any]) -> bool:
    return result["verdict"] in ("block", "stop") and result["action"] in _DECIDING


def _share_out(attempt: dict[str, Any], tallies: dict[str, _Tally]) -> None:
    deciding = [result for result in attempt["results"] if _decided(result)]
    weights = [len(result["output"]) for result in deciding]
    if not any(weights):
        weights = [1 for _ in deciding]
    for result, weight in zip(deciding, weights, strict=True):
        tallies[result["name"]].fed_back += attempt["fed_back_bytes"] * weight / sum(weights)


def _gate(name: str, tally: _Tally) -> dict[str, Any]:
    seconds, runs = sorted(tally.seconds), len(tally.seconds)
    failed = [passed for passed in tally.cycles if False in passed]
    fixed = [passed for passed in failed if True in passed[passed.index(False) :]]
    waits = [passed.index(True) + 1 for passed in tally.cycles if True in passed]
    return {
        "name": name,
        "runs": runs,
        "total_seconds": round(sum(seconds), 3),
        "median_seconds": round((seconds[(runs - 1) // 2] + seconds[runs // 2]) / 2, 3)
        if runs
        else None,
        "changed": tally.changed,
        "overrides": tally.overrides,
        "fed_back_bytes": round(tally.fed_back),
        "fix_rate": round(len(fixed) / len(failed), 3) if failed else None,
        "attempts_to_pass": round(sum(waits) / len(waits), 2) if waits else None,
        "flaps": sorted({tree for (_, tree), ends in tally.on_tree.items() if len(ends) > 1}),
    }


def _help_of_stats() -> str:
    """Return the help of `runs stats`: what each column counts."""
    columns = "\n".join(
        textwrap.fill(
            f"{head:<11} {' '.join(meaning.split())}", _HELP_WIDTH, subsequent_indent=" " * 12
        )
        for head, _form, meaning in COLUMNS.values()
    )
    first = "Tell what the kept runs say of each gate."
    return f"{first}\n\n\b\n{columns}\n\n`-`: there was nothing to count."


@click.group("runs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Show what came of the runs that are kept (without a command: list them).

    `gitgates run` and hooks of agents leave results each time, hooks of git and of the pre-commit
    framework when a gate did not pass. Where they lie, and how many are kept, the keys
    `artifacts_dir` and `keep_runs` tell.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_command, fmt="text", limit=_SHOWN)
    return errors.OK


@command.command("list")
@format_option
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=_SHOWN, show_default=True)
def list_command(fmt: str, limit: int) -> int:
    """List runs, the newest first.

    What came of it is the verdict of the last attempt; gates are those that did not pass then.
    `logs only`: all gates passed in a hook of git, or the run was killed after one
    had printed something.
    """
    found = _documents(current_repo())[::-1][:limit]
    listed = [_listed(run_id, document) for run_id, document in found]
    if fmt == "json":
        print_json({"version": _VERSION, "runs": listed})
    elif not found:
        click.echo("no run is kept here")
    else:
        head = ("run", "host", "hook", "attempts", "time", "what came of it")
        click.echo(table([head, *map(_row, listed)], right=(3, 4)), nl=False)
    return errors.OK


@command.command("show")
@click.argument("run_id", metavar="ID")
@format_option
def show(run_id: str, fmt: str) -> int:
    """Show one run: ID is its name, the beginning of it, or `latest`.

    As text, that is its summary.md; as JSON, its result.json.
    """
    repo = current_repo()
    run_abs = f"{repo.state_abs}/runs/{_find(repo, run_id)}"
    try:
        name = artifacts.RESULT if fmt == "json" else artifacts.SUMMARY
        data = read_state(f"{run_abs}/{name}")
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


@command.command("restore")
@click.argument("run_id", metavar="ID")
@click.option("--branch", metavar="NAME", help="Default: headless-ID.")
def restore(run_id: str, branch: str | None) -> int:
    """Make a branch of the work of a failed headless run.

    ID is the run, the beginning of its name, or `latest`. Nothing is checked out.
    """
    git = current_repo().git
    refs = git.lines("for-each-ref", "--format=%(refname)", "--sort=refname", FAILED_REFS)
    runs_kept = [ref.rpartition("/")[2] for ref in refs]
    found = [run for run in runs_kept if run.startswith(run_id)] or (
        runs_kept[-1:] if run_id == "latest" else []
    )
    if len(found) != 1:
        named = ", ".join(runs_kept[-_NAMED:]) or "there is none"
        raise errors.UsageError(f"no failed run `{run_id}` is kept", f"Kept are: {named}.")
    name = branch or f"headless-{found[0]}"
    git.out("branch", "--no-track", name, f"{FAILED_REFS}/{found[0]}")
    click.echo(f"made the branch {name}; to go there: git switch {name}")
    return errors.OK


@command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Default: `keep_runs`.")
def prune(keep: int | None) -> int:
    """Remove all runs but the newest.

    Runs that are being written stay, and for a day those that an agent may add an attempt to.
    """
    repo = current_repo()
    if keep is None:
        config = load(repo.root_abs, f"{repo.state_abs}/config.marshal") or Config()
        keep = config.keep_runs
    gone, left = runs.prune(repo.state_abs, keep), len(runs.run_ids(repo.state_abs))
    click.echo(f"removed {counted(gone, 'run')}, {left} left")
    return errors.OK


@command.command("stats", help=_help_of_stats())
@format_option
def stats(fmt: str) -> int:
    """Tell what the kept runs say of each gate."""
    repo = current_repo()
    known = [document for _, document in _documents(repo) if document]
    found = gate_stats(known, _skipped(repo, known))
    if fmt == "json":
        print_json({"version": _VERSION, "runs": len(known), "gates": found})
    else:
        click.echo(_stats_text(found, len(known)), nl=False)
    return errors.OK


def _documents(repo: Repo) -> list[tuple[str, dict[str, Any] | None]]:
    """Return id and result of each run, oldest first; None for an unreadable result."""
    return [
        (run_id, artifacts.read_result(f"{repo.state_abs}/runs/{run_id}"))
        for run_id in runs.run_ids(repo.state_abs)
    ]


def _find(repo: Repo, said: str) -> str:
    """Return the run with an id, a prefix of it, or `latest`.

    Raises: UsageError if there is none, or more than one.
    """
    known = runs.run_ids(repo.state_abs)
    if not known:
        raise errors.UsageError("no run is kept here", "Make one with: gitgates run")
    if said == "latest":
        runs_abs = f"{repo.state_abs}/runs"
        has_result = (
            run_id
            for run_id in known[::-1]
            if os.path.exists(f"{runs_abs}/{run_id}/{artifacts.RESULT}")
        )
        return next(has_result, known[-1])
    matching = [run_id for run_id in known if run_id.startswith(said)]
    if said in matching:
        return said
    if len(matching) > 1:
        raise errors.UsageError(
            f"`{said}` is the beginning of {len(matching)} runs", f"Newest: {_newest(matching)}."
        )
    if not matching:
        raise errors.UsageError(f"no run `{said}`", f"Newest: {_newest(known)}.")
    return matching[0]


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


def _listed(run_id: str, document: dict[str, Any] | None) -> dict[str, Any]:
    """Return the row of a run."""
    if document is None:
        return {"execution_id": run_id, "outcome": None}
    cycle = document["quality_gates"]
    last = cycle["attempts"][-1]
    return {
        "execution_id": run_id,
        "outcome": document["outcome"],
        "host": document["host"],
        "hook": last["hook"],
        "timestamp": cycle["attempts"][0]["timestamp"],
        "attempts": len(cycle["attempts"]),
        "total_duration_seconds": cycle["total_duration_seconds"],
        "failed": [
            result["name"]
            for result in last["results"]
            if not result["passed"] and result["status"] != "skipped"
        ],
    }


def _stats_text(found: list[dict[str, Any]], number: int) -> str:
    """Format the statistics of gates."""
    if not found:
        return "no run with results is kept here\n"
    all_bytes = sum(gate["fed_back_bytes"] for gate in found)
    rows = [("gate", *(head for head, _form, _meaning in COLUMNS.values()))]
    for gate in found:
        cells = {field: _cell(gate[field], form) for field, (_, form, _) in COLUMNS.items()}
        if all_bytes:
            cells["fed_back_bytes"] += f" ({gate['fed_back_bytes'] / all_bytes:.0%})"
        rows.append((plain_line(gate["name"]), *cells.values()))
    flaps = [
        f"flaps: {plain_line(gate['name'])} on {plain_line(tree)}\n"
        for gate in found
        for tree in gate["flaps"]
    ]
    closing = f"of {counted(number, 'run')} with results\n"
    return table(rows, right=tuple(range(1, len(rows[0])))) + "".join(flaps) + closing


def _cell(value: Any, form: str) -> str:  # noqa: ANN401 - as the field has it
    if value is None:
        return "-"
    return form.format(len(value) if isinstance(value, list) else value)


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    if run["outcome"] is None:
        return (plain_line(run["execution_id"]), "", "", "", "", "logs only")
    failed = run["failed"][:_FAILED_SHOWN]
    names = ", ".join(plain_line(name) for name in failed) + (
        ", …" if len(run["failed"]) > len(failed) else ""
    )
    return (
        run["execution_id"],
        plain_line(run["host"]),
        plain_line(run["hook"]),
        str(run["attempts"]),
        f"{run['total_duration_seconds']:.1f} s",
        f"{run['outcome']}: {names}" if names else run["outcome"],
    )
