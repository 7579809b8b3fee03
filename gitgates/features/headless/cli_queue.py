"""`gitgates headless --tasks FILE`: a queue of tasks, and one report for all."""

from __future__ import annotations

import json
import os
import sys
from collections import deque

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import OK, ConfigError, Interrupted, LockError, UsageError
from gitgates.core.types import Command
from gitgates.features.headless.leftovers import settle_all
from gitgates.features.headless.queue import Progress
from gitgates.features.headless.run_state import is_there, lock_killed
from gitgates.features.headless.tasks import read_tasks
from gitgates.features.headless.turn import require_outermost
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, remove_file, replace_file
from gitgates.verbs.output import print_json, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.features.headless.tasks import QueueTask
    from gitgates.git.repo import Repo
    from gitgates.proc.processes import Child

_LIMIT_S = 14 * 24 * 3600.0  # each task has a time limit of its own
_ENDING_S = 30.0
_KEPT_BYTES = 64 << 10
_LOG_BYTES = 64 << 20
# Of the command, for tasks that say nothing else.
_FOR_ALL = ("agent", "agent_command", "max_retries", "max_cost", "budget_minutes", "turn_minutes")
_OF_A_TASK = ("agent", "message", "max_retries", "max_cost", "budget_minutes")
_FOR_ONE = (
    *("from_file", "resume", "branch", "message", "junit", "on_failure", "in_place"),
    "include_uncommitted",
)
_SAID = "gitgates: "
_VERSION = 1  # of the report


def start(*, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Do all tasks of a queue."""
    wrong = ["TASK"] if options["task"] else []
    wrong += ["--no-commit"] if not options["commit"] else []
    wrong += [f"--{name.replace('_', '-')}" for name in _FOR_ONE if options[name]]
    if wrong:
        what = f"{wrong[0]} and --tasks are mutually exclusive"
        raise UsageError(what, "Set it in the file.")
    repo = current_repo()
    require_outermost(repo)
    tasks = read_tasks(options["tasks"])
    refused = [
        f"{options['tasks']}: the task `{task.id}`: branch: not a valid branch name: {task.branch}"
        for task in tasks
        if repo.git.ask("check-ref-format", "--branch", task.branch).exit_status
    ]
    if refused:
        raise ConfigError("\n".join(refused))
    progress = Progress(repo, options["tasks"])
    if (lock := lock_file(f"{progress.folder_abs}/lock")) < 0:
        raise LockError("another process is running these tasks", "Wait for it, or stop it.")
    try:
        console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
        pool = _Pool(repo, progress, console, options)
        pool.work_on(tasks)
        return _report(tasks, pool, fmt)
    finally:
        os.close(lock)


class _Pool:
    """The processes that do the tasks, `jobs` at a time."""

    def __init__(
        self, repo: Repo, progress: Progress, console: Console, options: dict[str, Any]
    ) -> None:
        self.repo, self.progress, self.console = repo, progress, console
        self.options = options
        self.interrupted_by = 0
        self.trouble: dict[str, str] = {}  # id → why its process has left no result

    def row(self, task: QueueTask) -> dict[str, Any]:
        """Return the row of a task in the report."""
        row = self.progress.row(task)
        if task.id in self.trouble:
            row |= {"status": "error", "outcome": self.trouble[task.id]}
        return row

    def settle(self) -> None:
        """Tidy up after runs that were killed."""
        for line in settle_all(self.repo):
            self.console.message(line)

    def is_due(self, task: QueueTask) -> bool:
        """Return whether a task is to be done.

        Raises: LockError where processes of an earlier attempt cannot be ended.
        """
        row = self.progress.row(task)
        if row["status"] == "interrupted" and is_there(self.repo, row["run"]):
            # Its queue was killed, and the watchdogs end what that has started.
            if (lock := lock_killed(self.repo, row["run"], _ENDING_S)) >= 0:
                os.close(lock)
                self.settle()
            if is_there(self.repo, row["run"]):
                what = f"{task.id}: processes of an earlier attempt are still running"
                raise LockError(what, "Stop them, and try again.")
            row = self.progress.row(task)
        due = ("waiting", "interrupted", *(["failed"] if self.options["retry_failed"] else []))
        return row["status"] in due

    def work_on(self, tasks: tuple[QueueTask, ...]) -> None:
        """Do what is due; end when all is done, or a signal has come."""
        self.settle()
        waiting = deque(task for task in tasks if self.is_due(task))
        finished = len(tasks) - len(waiting)
        self.console.message(f"{counted(len(tasks), 'task')}, {finished} of them already done")
        running: dict[int, QueueTask] = {}
        watch = Watchdog()  # ends them where we are killed
        try:
            with SignalPipe() as signals, Group(signals, self.console.tick) as group:
                while True:
                    most = self.options["jobs"] or 1
                    while waiting and len(running) < most and not group.handle_signals():
                        self._begin(waiting.popleft(), group, watch, running)
                    child = group.wait()
                    if child is None and not (waiting and not group.handle_signals()):
                        break
                    if child is not None:
                        watch.remove(child.pid)
                        self._ended(running.pop(child.pid), child)
                self.interrupted_by = group.handle_signals()
        finally:
            watch.close()

    def _begin(
        self, task: QueueTask, group: Group, watch: Watchdog, running: dict[int, QueueTask]
    ) -> None:
        run, log_abs = os.path.basename(runs.new_run("")), self.row(task)["log"]
        options = {name: self.options[name] for name in _FOR_ALL}
        options |= {n: value for n in _OF_A_TASK if (value := getattr(task, n)) is not None}
        if task.agent:
            options["agent_command"] = None
        if task.agent_args is not None:
            options["agent_args"] = json.dumps(task.agent_args)
        options |= {"branch": task.branch, "from_file": self.progress.begin(task, run)}
        pairs = ((name.replace("_", "-"), value) for name, value in options.items())
        words = [f"--{name}={value}" for name, value in pairs if value is not None]
        remove_file(log_abs)  # of an earlier attempt, which may be longer
        argv = (sys.executable, "-m", "gitgates", "headless", f"--queued={run}", *words)
        command = Command(argv, self.repo.root_abs, dict(self.repo.env))
        child = group.start(command, _LIMIT_S, Capture(_KEPT_BYTES, log_abs, _LOG_BYTES))
        if isinstance(child, str):
            self.trouble[task.id] = child
            self.console.message(f"{task.id}: {child}")
            return
        watch.add(child.pid)
        running[child.pid] = task
        self.console.message(f"{task.id}: started on branch {task.branch}")

    def _ended(self, task: QueueTask, child: Child) -> None:
        ending = child.ending()
        if self.row(task)["status"] == "interrupted" and not ending.ended_by_us:
            output = child.capture.captured()[0].decode("utf-8", "replace").splitlines()
            said = [line.removeprefix(_SAID) for line in output if line.startswith(_SAID)]
            how = f"exit status {ending.exit_status}"
            if ending.signal is not None:
                how, said = f"killed by signal {ending.signal}", []
            self.trouble[task.id] = visible_line(said[-1]) if said else how
        row = self.row(task)
        self.console.message(f"{task.id}: {row['status']}: {row['outcome']}")


def _report(tasks: tuple[QueueTask, ...], pool: _Pool, fmt: str) -> int:
    rows = [pool.row(task) for task in tasks]
    passed = sum(row["status"] == "passed" for row in rows)
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    cost = round(sum(costs), 6) if costs else None
    status = OK if passed == len(rows) else errors.BLOCKED
    if pool.interrupted_by:
        status = Interrupted.exit_status
    folder_abs = pool.progress.folder_abs
    document = {"version": _VERSION, "passed": passed, "of": len(rows), "cost_usd": cost}
    document |= {"folder": folder_abs, "tasks": rows}
    replace_file(f"{folder_abs}/report.json", json.dumps(document, indent=2).encode())
    if fmt == "json":
        print_json(document)
        return status
    pool.console.phase("")
    lines = [_line(row) for row in rows]
    click.echo(table([("task", "status", "commit", "branch", "time", "outcome"), *lines]))
    paid = f", ${cost:.2f}" if cost else ""
    click.echo(f"gitgates headless: {passed} of {counted(len(rows), 'task')} passed{paid}")
    for row in rows:
        if row["failed_ref"] and row["status"] == "failed":
            click.echo(f"{row['id']}: its work: gitgates runs restore {row['run']}")
    click.echo(f"report: {folder_abs}/report.json")
    return status


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    time_ = f"{row['seconds']:.1f} s" if row["seconds"] else ""
    columns = (row["id"], row["status"], row["commit"][:12], row["branch"], time_)
    return (*columns, visible_line(row["outcome"]))
