"""`gitgates baseline`: accept gates' current failures, and remove those that are fixed."""

from __future__ import annotations

import click

from gitgates.config import BASELINE_FILE
from gitgates.config.values import did_you_mean
from gitgates.core.clean import counted
from gitgates.core.errors import OK, UsageError
from gitgates.core.types import Config, Gate, GateResult, Hook
from gitgates.engine.findings.baseline import (
    failures_in,
    parse_accepted,
    read_accepted,
    render_accepted,
)
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import make_plan
from gitgates.engine.plan.walk import describe
from gitgates.engine.run.run import run_plan
from gitgates.git.paths import tracked_paths
from gitgates.git.repo import Repo
from gitgates.hosts.git import decode_by_hand
from gitgates.store.files import read_regular, replace_unchanged
from gitgates.verbs.approval import require_person
from gitgates.verbs.completion import complete_gates
from gitgates.verbs.group import VerbGroup
from gitgates.verbs.output import format_option, print_json
from gitgates.verbs.repository import configuration, current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.engine.findings.baseline import Accepted

_NOT_DONE = 1
_WRITE = "baseline write"
_MOST_LISTED = 20
_gates = click.argument("gates", nargs=-1, shell_complete=complete_gates)


@click.group("baseline", cls=VerbGroup)
def command() -> None:
    """Accept the gates' current failures, so that only new ones count.

    They are in .gitgates-baseline.json, one per line; commit that file. A failure is identified by
    gate, file, rule and message, not by its line. GATES default to all with `baseline`.
    """


class _Progress(Listener):
    """A listener that says which gates run."""

    def started(self, gate: str) -> None:
        self.message(f"{gate}: runs on all files")

    def message(self, text: str) -> None:
        click.echo(f"gitgates: {text}", err=True)


@command.command("write")
@_gates
@click.option("--grow", is_flag=True, help="Also accept failures that are not yet in the file.")
@click.option("--token", default="", help=f"Token from a person: gitgates approve {_WRITE}.")
def write(gates: tuple[str, ...], *, grow: bool, token: str) -> int:
    """Run GATES on all tracked files, and write their failures into the file.

    If the file does not exist, it is created. After that it only shrinks: without --grow, new
    failures are refused. Adding failures needs a terminal, or a token.

    Exit status 0: written, or nothing to change. 1: refused, or a gate's failures are unknown;
    nothing was written.
    """
    repo = current_repo()
    names = _names(configuration(repo), gates)
    before = read_accepted(repo.root_abs)
    if before is None:
        before = _committed(repo)
    accepted = before or {}
    now = _run(repo, configuration(repo), names)
    if now is None:
        return _NOT_DONE
    added = [
        (name, title)
        for name in names
        for mark, title in now[name].items()
        if mark not in accepted.get(name, {})
    ]
    if added and before is not None and not grow:
        _list(added)
        click.echo(
            f"gitgates: {counted(len(added), 'failure')} not in {BASELINE_FILE}, which may only "
            "shrink; nothing was written\n  Fix them, or accept them: gitgates baseline write "
            "--grow",
            err=True,
        )
        return _NOT_DONE
    if added:
        require_person(repo, _WRITE, token)
    titles = {
        name: {mark: accepted.get(name, {}).get(mark, now[name][mark]) for mark in now[name]}
        for name in names
    }
    return _replace(repo, accepted, {**accepted, **titles})


@command.command("prune")
@_gates
@click.option("--check", is_flag=True, help="Only check: exit status 1 if there are any.")
def prune(gates: tuple[str, ...], *, check: bool) -> int:
    """Run GATES on all tracked files, and remove failures that no longer exist from the file.

    Failures of gates that are no longer configured are removed, too. An agent may also run this.

    Exit status 0: removed, or nothing to remove. 1: --check found some, or a gate's failures are
    unknown; nothing was written.
    """
    repo = current_repo()
    config = configuration(repo)
    accepted = _read(repo)
    defined = {gate.name for gate in config.gates}
    names = [name for name in gates or accepted if name in accepted and name in defined]
    now = _run(repo, config, names) if names else {}
    if now is None:
        return _NOT_DONE
    remaining = {
        name: {
            mark: title for mark, title in titles.items() if name not in now or mark in now[name]
        }
        for name, titles in accepted.items()
        if name in defined or gates
    }
    fixed = [
        (name, title)
        for name, titles in accepted.items()
        for mark, title in titles.items()
        if mark not in remaining.get(name, {})
    ]
    if check and fixed:
        _list(fixed)
        click.echo(
            f"gitgates: {counted(len(fixed), 'accepted failure')} no longer there; to remove "
            f"what is fixed from {BASELINE_FILE}: gitgates baseline prune",
            err=True,
        )
        return _NOT_DONE
    return _replace(repo, accepted, remaining)


@command.command("show")
@_gates
@format_option
def show(gates: tuple[str, ...], fmt: str) -> int:
    """Show the accepted failures of GATES; without GATES, all in the file."""
    accepted = _read(current_repo())
    by_gate = {name: accepted.get(name, {}) for name in gates or accepted}
    if fmt == "json":
        print_json({"version": 1, "gates": by_gate})
        return OK
    for name, titles in by_gate.items():
        click.echo(f"{name}: {counted(len(titles), 'accepted failure')}")
        for title in titles.values():
            click.echo(f"  {title}")
    if not by_gate:
        click.echo("no accepted failures")
    return OK


def _names(config: Config, asked: tuple[str, ...]) -> list[str]:
    """Return the gates to run. Raises: UsageError if one has no baseline."""
    with_baseline = [gate.name for gate in config.gates if gate.measures.baseline]
    if not with_baseline:
        raise UsageError("no gate has a baseline", 'In its table, write: baseline = "file"')
    defined = tuple(gate.name for gate in config.gates)
    for name in asked:
        if name not in defined:
            hint = did_you_mean(name, defined) or f"Defined: {', '.join(defined)}."
            raise UsageError(f"no gate `{name}`", hint)
        if name not in with_baseline:
            hint = 'In its table, write: baseline = "file"'
            raise UsageError(f"gate `{name}` has no baseline", hint)
    return list(asked or with_baseline)


def _read(repo: Repo) -> Accepted:
    """Return the accepted failures. Raises: UsageError if there is no file."""
    accepted = read_accepted(repo.root_abs)
    if accepted is None:
        raise UsageError(f"there is no {BASELINE_FILE}", "To create it: gitgates baseline write")
    return accepted


def _committed(repo: Repo) -> Accepted | None:
    """Return those in HEAD: removing the file and writing it again would also grow it."""
    blob = repo.git.ask("cat-file", "blob", f"HEAD:{BASELINE_FILE}")
    return None if blob.exit_status else parse_accepted(blob.stdout)


def _run(repo: Repo, config: Config, names: list[str]) -> Accepted | None:
    """Run gates on all tracked files; return their failures, or None if some are unknown.

    A gate has no failure if none of its files exist any more.
    """
    hook = Hook(name="manual", gates=tuple(names), strategy="collect")
    paths = tracked_paths(repo.git)
    event = decode_by_hand("manual", paths, (), (repo.root_abs, repo.git_dir_abs))
    config = config._replace(gates=tuple(map(_plain, config.gates)))
    plan = make_plan(config, hook, event, {})
    decision = run_plan(plan, config, repo, _Progress())
    gates = {gate.name: gate for gate in config.gates}
    failures: Accepted = {}
    troubles = {}
    for result in (visit.result for visit in decision.visits):
        if result.status == "skipped":
            failures[result.gate] = {}
            continue
        titles = _failures(gates[result.gate], result, repo)
        if isinstance(titles, str):
            troubles[result.gate] = titles
        else:
            failures[result.gate] = titles
    for name, why in troubles.items():
        click.echo(f"gitgates: {name}: nothing was written: {why}", err=True)
    return None if troubles else failures


def _plain(gate: Gate) -> Gate:
    """Return a gate that starts no other, and is compared with nothing."""
    alone = gate.changed(on_pass="CONTINUE", on_fail="CONTINUE", observe=False)  # noqa: S106 - an action
    alone = alone.changed(retry=None, quarantine_until="")
    return alone.changed(baseline=False, metrics=(), ratchet=False)


def _failures(gate: Gate, result: GateResult, repo: Repo) -> dict[str, str] | str:
    if result.status == "passed":
        return {}
    if result.status != "failed":
        return f"it {describe(result)}"
    failures = failures_in(gate, result, repo.root_abs, repo.env)
    if isinstance(failures, str):
        return failures
    return {failure.fingerprint: failure.title for failure in failures}


def _list(rows: list[tuple[str, str]]) -> None:
    for name, title in rows[:_MOST_LISTED]:
        click.echo(f"  {name}: {title}")
    if len(rows) > _MOST_LISTED:
        click.echo(f"  … and {len(rows) - _MOST_LISTED} more")


def _replace(repo: Repo, before: Accepted, after: Accepted) -> int:
    """Write the file, and print what has changed."""
    try:
        content = read_regular(f"{repo.root_abs}/{BASELINE_FILE}")
    except FileNotFoundError:
        content = None
    rendered = render_accepted(after)
    if rendered != content:
        replace_unchanged(repo.root_abs, BASELINE_FILE, content, rendered)
    count = sum(map(len, after.values()))
    old, new = ({(name, mark) for name in some for mark in some[name]} for some in (before, after))
    more = [f"{len(new - old)} added"] if new - old else []
    more += [f"{len(old - new)} removed"] if old - new else []
    changes = ", ".join(more) or "no change"
    click.echo(f"{BASELINE_FILE}: {counted(count, 'accepted failure')} ({changes})")
    return OK
