"""`gitgates land`: queue branches, wait for their turn, and land what passes."""

from __future__ import annotations

import os
import time

import click

from gitgates.config.load import load, table_of
from gitgates.core import environ, errors
from gitgates.core.clean import plain_line
from gitgates.core.errors import GitgatesError, Interrupted, UsageError
from gitgates.core.limits import parse_json
from gitgates.core.types import Config
from gitgates.engine.plan.listener import Listener
from gitgates.features.land.candidate import build, check_policies, describe_conflict
from gitgates.features.land.landed import as_fields, as_row
from gitgates.features.land.lander import Lander, LandSettings, settings_at, slots_of
from gitgates.features.land.queue import EJECTED, LANDED, NOTHING, Landing, Queue
from gitgates.features.land.trial import LandTrial, preview, run
from gitgates.git.forward import ForwardBranch
from gitgates.git.merging import ConflictError
from gitgates.git.repo import find_repo
from gitgates.proc.call import start_unattended
from gitgates.proc.resources import Wait
from gitgates.report.text import Console, open_terminal
from gitgates.store.turn import WorkTurn
from gitgates.verbs.output import format_option, print_json, stdout, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.git.repo import Repo

_VERSION = 1
_POLL_S = 0.1
_SHORT = 7
_MOST_LISTED = 20


@click.command("land")
@click.argument("branches", metavar="[BRANCH]...", nargs=-1)
@click.option("--list", "lists", is_flag=True, help="List what waits, and what has ended.")
@click.option("--cancel", is_flag=True, help="Take branches that wait out of the queue.")
@click.option("--detach", is_flag=True, help="Queue, and land in the background.")
@click.option("--dry-run", is_flag=True, help="Say what conflicts, and which gates would run.")
@click.option("--trial", hidden=True, default="")  # of a `LandTrial`, for the queue
@format_option
def command(branches: tuple[str, ...], *, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Merge branches into the target, test exactly that, and land what passes.

    Default: the branch of this worktree. Branches wait in one queue for all worktrees of the
    repository, and those that wait are tested together. A branch that conflicts, or whose gates
    fail, is ejected, and the others go on. Nobody's files change but where the target is checked
    out, as by `git merge --ff-only`.

    Exit status 0: landed, or there was nothing to land. 1: ejected or cancelled.
    """
    repo = current_repo()
    if options["trial"]:
        return run(LandTrial(*parse_json(options["trial"])), repo, Console(stdout()))
    config = load(repo.root_abs, repo.config_cache_abs) or Config()
    settings = table_of(config, "land", LandSettings)
    target, queue = settings.target, Queue(repo, settings.batch * slots_of(config))
    if options["lists"]:
        return _list(queue, fmt)
    ForwardBranch(repo, target).tip()
    names = branches or _own_branch(repo, target)
    if options["cancel"]:
        cancelled = queue.cancel(names)
        if not cancelled:
            raise UsageError(f"`{' '.join(names)}` does not wait", "See: gitgates land --list")
        _tell(queue, cancelled, fmt)
        return errors.OK
    tips = {name: _tip(repo, name) for name in names}
    by = os.fsdecode(repo.git.out("var", "GIT_COMMITTER_IDENT")).rpartition(">")[0] + ">"
    if options["dry_run"]:
        entries = [Landing(0, name, tip, target, by, 0.0) for name, tip in tips.items()]
        return _dry_run(repo, entries, target, fmt)
    entries = [queue.add(name, tip, target=target, by=by) for name, tip in tips.items()]
    if not branches:
        _warn_of_changes(repo)
        # On the target itself: whatever others have left.
        entries = entries or [entry for entry in queue.entries() if entry.is_live]
    numbers = {entry.number for entry in entries}
    if options["detach"]:
        call = f"work_on({repo.root_abs!r}, {numbers!r})"
        start_unattended(f"from gitgates.features.land.cli import work_on; {call}", repo.env)
    else:
        wait(repo, queue, numbers, Console(open_terminal(2 if fmt == "json" else 1, repo.env)))
    return _tell(queue, [e for e in queue.entries() if e.number in numbers], fmt)


def work_on(root_abs: str, numbers: set[int]) -> None:
    """Land what was queued, in a process that nobody waits for."""
    repo = find_repo(root_abs, environ.read())
    wait(repo, Queue(repo), numbers, Console(open_terminal(1, repo.env), quiet=True))


def wait(repo: Repo, queue: Queue, numbers: set[int], console: Console) -> None:
    """Wait until entries have ended, and work on the queue if nobody else does.

    Raises: Interrupted; GitgatesError where the work cannot go on.
    """
    turn, place = WorkTurn(f"{queue.folder_abs}/lock"), 0

    def is_wanted(entries: list[Landing]) -> bool:
        return any(entry.is_live and entry.number in numbers for entry in entries)

    try:
        while is_wanted(entries := queue.entries()):
            live = [entry for entry in entries if entry.is_live]
            if turn.take():
                try:
                    Lander(repo, queue, turn, console, target=live[0].target).work(is_wanted)
                finally:
                    turn.release()
                continue
            if place != (place := 1 + sum(entry.number < min(numbers) for entry in live)):
                wait = Wait("another process that lands", place, queue.expected_s(place))
                console.phase(f"waiting for {wait.text}")
            console.tick()
            time.sleep(_POLL_S)
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; what was queued stays queued") from error
    finally:
        console.phase("")


def _own_branch(repo: Repo, target: str) -> tuple[str, ...]:
    """Return the branch of this worktree; nothing where that is the target."""
    completed = repo.git.ask("symbolic-ref", "--quiet", "--short", "HEAD")
    if branch := os.fsdecode(completed.stdout).rstrip("\n"):
        return () if branch == target else (branch,)
    raise UsageError("no branch is checked out here", "Name the branch to land.")


def _tip(repo: Repo, branch: str) -> str:
    if tip := repo.git.resolve(f"refs/heads/{branch}^{{commit}}"):
        return tip
    raise UsageError(f"no branch `{branch}`", "See: git branch --list")


def _warn_of_changes(repo: Repo) -> None:
    if repo.git.out_of_files("status", "--porcelain", "--untracked-files=no"):
        click.echo("gitgates: uncommitted changes of this worktree do not land", err=True)


def _dry_run(repo: Repo, entries: list[Landing], target: str, fmt: str) -> int:
    base = ForwardBranch(repo, target).tip()
    config, settings = settings_at(repo, base)
    rows: list[dict[str, Any]] = []
    for entry in entries:
        gates, state, text = dict[str, str](), NOTHING, ""
        try:
            commit = build(repo.as_stored, base, entry, settings.method)
            check_policies(repo.as_stored, config, base, commit, entry.tip)
            if commit != base:
                gates = preview(LandTrial(commit, base, target, settings.hook), repo, Listener())
                state = "would be tested"
        except ConflictError as error:
            state, text = EJECTED, describe_conflict(repo, base, entry, error)
        except GitgatesError as error:
            state, text = EJECTED, error.full_message
        rows.append({"branch": entry.branch, "state": state, "gates": gates, "feedback": text})
    if fmt == "json":
        print_json({"version": _VERSION, "target": target, "base": base, "entries": rows})
    for row in rows if fmt == "text" else ():
        lines: list[tuple[str, ...]] = [
            (f"  {plain_line(gate)}", what) for gate, what in row["gates"].items()
        ]
        click.echo(f"{row['feedback']}\n" if row["feedback"] else "", nl=False)
        click.echo(f"{plain_line(row['branch'])}: {row['state']}\n{table(lines) if lines else ''}")
    return errors.BLOCKED if any(row["state"] == EJECTED for row in rows) else errors.OK


def _list(queue: Queue, fmt: str) -> int:
    entries = queue.entries()
    if fmt == "json":
        return _tell(queue, entries, fmt) and errors.OK
    ended = [entry for entry in entries if not entry.is_live][-_MOST_LISTED:]
    lines = [as_row(entry) for entry in (*ended, *(e for e in entries if e.is_live))]
    click.echo(table(lines) if lines else "nothing has been queued\n", nl=False)
    return errors.OK


def _tell(queue: Queue, entries: list[Landing], fmt: str) -> int:
    """Print how entries have ended; return the exit status."""
    if fmt == "json":
        rows = [as_fields(entry, queue) for entry in entries]
        print_json({"version": _VERSION, "entries": rows})
    for entry in entries if fmt == "text" else ():
        if entry.state == EJECTED:
            click.echo(f"\n{queue.feedback(entry)}\n")
        place = f" on `{entry.target}` as {entry.commit[:_SHORT]}" if entry.state == LANDED else ""
        why = f": {plain_line(entry.why)}" if entry.why else ""
        click.echo(f"gitgates land: {plain_line(entry.branch)}: {entry.state}{place}{why}")
    if not entries and fmt == "text":
        click.echo(f"gitgates land: {NOTHING}")
    is_fine = all(entry.is_live or entry.state in (LANDED, NOTHING) for entry in entries)
    return errors.OK if is_fine else errors.BLOCKED
