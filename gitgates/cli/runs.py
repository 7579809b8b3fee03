"""`gitgates runs`: past runs, and statistics of each gate."""

from __future__ import annotations

import os
import sys
import textwrap
from shlex import quote
from typing import Any

import click

from gitgates.config.load import load
from gitgates.core import errors
from gitgates.core.clean import counted, plain_line
from gitgates.core.types import Config
from gitgates.features.headless.ground import FAILED_REFS
from gitgates.git.repo import Repo
from gitgates.report import artifacts
from gitgates.report.result import attempts_made, failed_gates
from gitgates.report.statistics import (
    COLUMNS,
    gate_stats,
    headless_stats,
    mark_fixed,
    outcome_word,
    sparkline,
    trends,
)
from gitgates.store import runs
from gitgates.store.files import make_folder, read_state, replace_file
from gitgates.store.log import read_ledger
from gitgates.store.owners import require_access
from gitgates.store.proofs import read_all
from gitgates.verbs.output import dump, format_option, print_json, table
from gitgates.verbs.repository import current_repo

_VERSION = 1
_SHOWN = 20
_NAMED = 5  # runs, in an error
_FAILED_SHOWN = 3
_COMMITS = 100  # of HEAD, whose gates the page shows
_UNPROVEN = ("bypassed the gates", "nothing was checked", "skipped")  # states of `verify`
_HELP_WIDTH = 72


def _help_of_stats() -> str:
    """Return the help of `runs stats`: what each column counts."""
    columns = "\n".join(
        textwrap.fill(
            f"{head:<11} {' '.join(meaning.split())}", _HELP_WIDTH, subsequent_indent=" " * 12
        )
        for head, _form, meaning in COLUMNS.values()
    )
    first = "Show statistics of gates, headless runs and metrics over the kept runs."
    more = (
        "For headless runs, attempts and time are medians, and tokens the mean of the runs that "
        "report them. Metrics are drawn between their minimum and maximum, the newest last."
    )
    return f"{first}\n\n\b\n{columns}\n\n`-`: no data.\n\n{more}"


@click.group("runs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Show past runs (without a command: list them).

    `gitgates run` and agent hooks always store results; git hooks and pre-commit hooks only if a
    gate did not pass. The keys `artifacts_dir` and `keep_runs` set where results are copied, and
    how many runs are kept.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_command, fmt="text", limit=_SHOWN)
    return errors.OK


@command.command("list")
@format_option
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_SHOWN,
    show_default=True,
    help="Show at most N runs.",
)
def list_command(fmt: str, limit: int) -> int:
    """List runs, the newest first.

    The result is the last attempt's verdict, with the gates that did not pass. `fixed`: all of them
    have since passed in the same working tree. `logs only`: all gates passed in a git hook, or the
    run was killed after a gate had printed something.
    """
    repo = current_repo()
    documents = _documents(repo, limit)[::-1]
    mark_fixed(
        filter(None, (document for _, document in documents)), read_all(repo.shared_state_abs)
    )
    rows = [_row_fields(run_id, document) for run_id, document in documents]
    if fmt == "json":
        print_json({"version": _VERSION, "runs": rows})
    elif not documents:
        click.echo("no runs found")
    else:
        head = ("run", "host", "hook", "attempts", "time", "result")
        click.echo(table([head, *map(_row, rows)], right=(3, 4)), nl=False)
    return errors.OK


@command.command("show")
@click.argument("run_id", metavar="ID")
@format_option
def show(run_id: str, fmt: str) -> int:
    """Show one run: ID is its name, a prefix of it, or `latest` (the newest with results).

    Prints its summary: as text on a terminal, elsewhere as Markdown (summary.md). With --format
    json, prints its result.json.
    """
    repo = current_repo()
    run = _find(repo, run_id)
    newer = [name for name in runs.run_ids(repo.state_abs) if name > run]
    if run_id == "latest" and newer:
        without = counted(len(newer), "newer run")
        text = f"{run} is the newest run with results; for {without} without: gitgates runs"
        click.echo(f"gitgates: {text}", err=True)
    run_abs = f"{repo.state_abs}/runs/{run}"
    try:
        name = artifacts.RESULT if fmt == "json" else artifacts.SUMMARY
        data = read_state(f"{run_abs}/{name}")
    except OSError as error:
        raise errors.StateError(
            f"the results in {run_abs} cannot be read: {error.strerror}", "Inspect its files."
        ) from error
    if data is None:
        raise errors.UsageError(
            f"{os.path.basename(run_abs)} has no results",
            f"All gates passed, or it was killed. Logs: {run_abs}/logs",
        )
    if fmt == "text" and sys.stdout.isatty():
        data = artifacts.plain_summary(data.decode("utf-8", "replace")).encode()
    dump(data)
    return errors.OK


@command.command("restore")
@click.argument("run_id", metavar="ID")
@click.option("--branch", metavar="NAME", help="Default: headless-ID.")
def restore(run_id: str, branch: str | None) -> int:
    """Create a branch from the work of a failed headless run.

    ID is the name of the run, a prefix of it, or `latest`. Nothing is checked out.
    """
    git = current_repo().git
    refs = git.lines("for-each-ref", "--format=%(refname)", "--sort=refname", FAILED_REFS)
    runs_kept = [ref.rpartition("/")[2] for ref in refs]
    if not (run := runs.meant_by(run_id, runs_kept)):
        newest = ", ".join(runs_kept[-_NAMED:]) or "none"
        raise errors.UsageError(f"no kept work of a failed run `{run_id}`", f"Kept runs: {newest}.")
    name = branch or f"headless-{run}"
    git.out("branch", "--no-track", name, f"{FAILED_REFS}/{run}")
    click.echo(f"created branch {name}; to switch to it: git switch {quote(name)}")
    return errors.OK


@command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Default: `keep_runs`.")
def prune(keep: int | None) -> int:
    """Remove all runs but the newest.

    Also keeps runs in progress and, for a day, runs to which an agent may add an attempt.
    """
    repo = current_repo()
    if keep is None:
        config = load(repo.root_abs, repo.config_cache_abs) or Config()
        keep = config.keep_runs
    removed = runs.prune(repo.state_abs, keep, most=sys.maxsize)
    remaining = len(runs.run_ids(repo.state_abs))
    click.echo(f"removed {counted(removed, 'run')}, {remaining} left")
    return errors.OK


@command.command("stats", help=_help_of_stats())
@format_option
def stats(fmt: str) -> int:
    """Show statistics of gates, headless runs and metrics over the kept runs."""
    repo = current_repo()
    documents = [document for _, document in _documents(repo) if document]
    proofs = [*read_all(repo.shared_state_abs)]
    skipped = [gate for entry in _skips(repo, documents) for gate in entry["gates"]]
    gates = gate_stats(documents, skipped, proofs)
    headless, metrics = headless_stats(documents), trends(proofs)
    if fmt == "json":
        more = {"gates": gates, "headless": headless, "metrics": metrics}
        print_json({"version": _VERSION, "runs": len(documents), **more})
    else:
        text = (
            _stats_text(gates, len(documents)) + _headless_text(headless) + _metrics_text(metrics)
        )
        click.echo(text, nl=False)
    return errors.OK


@command.command("page")
@click.option(
    "--output",
    metavar="FILE",
    default="",
    help="Where to write it; - for standard output. Default: runs.html in gitgates' state folder.",
)
def page(output: str) -> int:
    """Write one HTML page about the kept runs.

    It shows gates by time and by value, trends, flaky gates, agents' sessions, commits that
    bypassed their gates, and runs. It loads nothing else, so you can send the file as it is.
    """
    from gitgates.features.evidence.cli import commit_fields, why_of  # only the page needs these
    from gitgates.features.evidence.verification import verify
    from gitgates.report.runs_page import KeptRuns, runs_page

    repo = current_repo()
    documents = [document for _, document in _documents(repo) if document]
    mark_fixed(documents, read_all(repo.shared_state_abs))
    revisions = (f"--max-count={_COMMITS}", "HEAD") if repo.head else ()
    commits = verify(repo, revisions, lambda _text: None, writes=False)
    rows = [commit_fields(commit, commit.missing()) for commit in commits]
    content = KeptRuns(
        root_abs=repo.root_abs,
        documents=documents,
        proofs=[*read_all(repo.shared_state_abs)],
        skips=_skips(repo, documents),
        commits=[{**row, "why": why_of(row)} for row in rows if row["state"] in _UNPROVEN],
        verified=len(rows),
    )
    html = runs_page(content).encode("utf-8", "replace")
    path = output or f"{repo.state_abs}/runs.html"
    if path == "-":
        dump(html)
        return errors.OK
    try:
        if output:
            with open(output, "wb") as file:
                file.write(html)
        else:
            make_folder(repo.state_abs)
            replace_file(path, html)
    except OSError as error:
        raise errors.UsageError(f"{path}: cannot be written: {error.strerror}") from error
    click.echo(f"written: {path}")
    return errors.OK


def _documents(repo: Repo, newest: int = 0) -> list[tuple[str, dict[str, Any] | None]]:
    """Return the id and result of each run, oldest first; None if there is no readable result.

    `newest`: how many, 0: all. Runs that belong to another user are reported.
    """
    run_ids = runs.run_ids(repo.state_abs)[-newest:]
    for run_id in run_ids:
        try:
            require_access(f"{repo.state_abs}/runs/{run_id}")
        except errors.StateError as error:
            click.echo(f"gitgates: {error}", err=True)
            break  # one command fixes them all
    return [
        (run_id, artifacts.read_result(f"{repo.state_abs}/runs/{run_id}")) for run_id in run_ids
    ]


def _find(repo: Repo, prefix: str) -> str:
    """Return the run with an id, a prefix of it, or `latest`.

    Raises: UsageError if there is none, or more than one.
    """
    run_ids = runs.run_ids(repo.state_abs)
    if not run_ids:
        raise errors.UsageError("no runs found", "To start one: gitgates run")
    if prefix == "latest":
        runs_abs = f"{repo.state_abs}/runs"
        has_result = (
            run_id
            for run_id in run_ids[::-1]
            if os.path.exists(f"{runs_abs}/{run_id}/{artifacts.RESULT}")
        )
        return next(has_result, run_ids[-1])
    if run := runs.meant_by(prefix, run_ids):
        return run
    matching = [run_id for run_id in run_ids if run_id.startswith(prefix)]
    if matching:
        raise errors.UsageError(
            f"`{prefix}` is an ambiguous prefix of {len(matching)} runs",
            f"Newest: {_newest(matching)}.",
        )
    raise errors.UsageError(f"no run `{prefix}`", f"Newest: {_newest(run_ids)}.")


def _newest(run_ids: list[str]) -> str:
    return ", ".join(run_ids[: -_NAMED - 1 : -1])


def _skips(repo: Repo, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ledger entries about gates skipped here since the oldest kept run."""
    if not documents:
        return []
    since = min(document["quality_gates"]["attempts"][0]["timestamp"] for document in documents)
    return [
        entry
        for entry in read_ledger(repo.shared_state_abs)
        if entry.get("what") == "skip" and str(entry.get("time", "")) >= since
        if entry.get("root") == repo.root_abs and isinstance(entry.get("gates"), list)
        if all(isinstance(gate, str) for gate in entry["gates"])
    ]


def _row_fields(run_id: str, document: dict[str, Any] | None) -> dict[str, Any]:
    """Return the row of a run."""
    if document is None:
        return {"execution_id": run_id, "outcome": None}
    cycle = document["quality_gates"]
    last = cycle["attempts"][-1]
    is_blocked = document["outcome"] == "blocked"
    return {
        "execution_id": run_id,
        "outcome": document["outcome"],
        "fixed": document.get("fixed", False),
        "host": document["host"],
        "hook": last["hook"],
        "timestamp": cycle["attempts"][0]["timestamp"],
        "attempts": len(attempts_made(document)),
        "total_duration_seconds": cycle["total_duration_seconds"],
        # If none of its gates has failed, a policy has blocked.
        "failed": failed_gates(document) or [last["asked"]] * is_blocked,
    }


def _stats_text(gates: list[dict[str, Any]], number: int) -> str:
    """Format the statistics of gates."""
    if not gates:
        return "no runs with results found\n"
    all_bytes = sum(gate["fed_back_bytes"] for gate in gates)
    rows = [("gate", *(head for head, _form, _meaning in COLUMNS.values()))]
    for gate in gates:
        cells = {field: _cell(gate[field], form) for field, (_, form, _) in COLUMNS.items()}
        if all_bytes:
            cells["fed_back_bytes"] += f" ({gate['fed_back_bytes'] / all_bytes:.0%})"
        rows.append((plain_line(gate["name"]), *cells.values()))
    flaps = [
        f"flaps: {plain_line(gate['name'])} on {plain_line(tree)}\n"
        for gate in gates
        for tree in gate["flaps"]
    ]
    closing = f"of {counted(number, 'run')} with results\n"
    return table(rows, right=tuple(range(1, len(rows[0])))) + "".join(flaps) + closing


def _headless_text(totals: dict[str, Any]) -> str:
    """Format the statistics of headless runs; empty if there are none."""
    if not totals["runs"]:
        return ""
    rate = f" ({totals['fix_rate']:.0%})" if totals["failed_at_first"] else ""
    rows: list[tuple[str, ...]] = [
        ("headless runs", str(totals["runs"])),
        ("passed", str(totals["passed"])),
        (
            "fixed by the agent",
            f"{totals['fixed']} of {totals['failed_at_first']} that failed at first{rate}",
        ),
        ("attempts to pass", _cell(totals["attempts_to_pass"], "{:g}")),
        ("time to pass", _cell(totals["seconds_to_pass"], "{:.1f} s")),
        ("tokens to pass", _cell(totals["tokens_to_pass"], "{:,}")),
    ]
    return "\n" + table(rows)


def _metrics_text(metrics: list[dict[str, Any]]) -> str:
    """Format numbers over time; empty if there are none."""
    if not metrics:
        return ""
    rows: list[tuple[str, ...]] = [
        ("gate", "metric", "number", "first", "least", "most", "last", "")
    ]
    for series in metrics:
        values = [value["value"] for value in series["values"]]
        numbers = (values[0], min(values), max(values), values[-1])
        names = (plain_line(series["gate"]), plain_line(series["metric"]), str(len(values)))
        rows.append((*names, *(f"{number:.12g}" for number in numbers), sparkline(values)))
    return "\n" + table(rows, right=(2, 3, 4, 5, 6))


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
        f"{outcome_word(run)}: {names}" if names else run["outcome"],
    )
