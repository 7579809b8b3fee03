"""`gitgates headless --tasks FILE`: a queue of tasks, and one report for all.

The report says how far each task has come, and survives any kill:

<shared state>/queues/<name>/lock         held by the process that works on the queue
<shared state>/queues/<name>/report.json  a row for each task, with a digest of its definition
<shared state>/queues/<name>/<id>.prompt  for the process that does the task
<shared state>/queues/<name>/<id>.log     what its run has printed
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import OK, Interrupted, LockError, StateError, UsageError
from gitgates.core.limits import parse_json
from gitgates.core.types import Command
from gitgates.features.headless.commit import is_of
from gitgates.features.headless.outcomes import OUTCOMES
from gitgates.features.headless.recovery import recover
from gitgates.features.headless.run_state import is_there, lock_killed
from gitgates.features.headless.tasks import read_tasks
from gitgates.features.headless.turn import require_outermost
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.report.artifacts import read_result
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, make_folder, read_state, remove_file, replace_file
from gitgates.verbs.output import print_json, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from gitgates.features.headless.tasks import QueueTask
    from gitgates.git.repo import Repo

    Row: TypeAlias = dict[str, Any]

_LIMIT_S = 14 * 24 * 3600.0  # each task has a time limit of its own
_ENDING_S = 30.0
_KEPT_BYTES = 64 << 10
_LOG_BYTES = 64 << 20
# Of the command, for tasks that say nothing else.
_FOR_ALL = ("agent", "agent_command", "max_retries", "max_cost", "budget_minutes")
_OF_A_TASK = ("agent", "message", "max_retries", "max_cost", "budget_minutes")
_FOR_ONE = ("task", "resume", "branch", "message", "junit", "in_place", "include_uncommitted")
# Of the result of a run.
_FACTS = (
    *("status", "outcome", "commit", "failed_ref", "attempts", "seconds", "tokens"),
    "cost_usd",
)
_SAID = "gitgates: "
_SLUG = re.compile(r"[^A-Za-z0-9_-]+")
_VERSION = 1  # of the report


def start(*, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Do all tasks of a queue."""
    if wrong := [name for name in _FOR_ONE if options[name]]:
        option = "TASK" if wrong[0] == "task" else f"--{wrong[0].replace('_', '-')}"
        raise UsageError(f"{option} and --tasks are mutually exclusive", "Set it in the file.")
    repo = current_repo()
    require_outermost(repo)
    console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
    queue = _Queue(repo, console, options)
    try:
        queue.work()
        return _tell(queue, fmt)
    finally:
        os.close(queue.lock)


class _Queue:
    """The rows of the report, and the processes that do the tasks, `jobs` at a time."""

    def __init__(self, repo: Repo, console: Console, options: dict[str, Any]) -> None:
        self.repo, self.console, self.options = repo, console, options
        self.interrupted_by = 0
        tasks, path_abs = read_tasks(options["tasks"]), os.path.realpath(options["tasks"])
        stem = _SLUG.sub("-", os.path.basename(path_abs).partition(".")[0])[:40]
        name = f"{stem}-{hashlib.sha256(os.fsencode(path_abs)).hexdigest()[:12]}"
        self.folder_abs = f"{repo.shared_state_abs}/queues/{name}"
        try:
            make_folder(self.folder_abs)
            self.lock = lock_file(f"{self.folder_abs}/lock")
        except OSError as error:
            what = f"{self.folder_abs}: cannot be written: {error.strerror}"
            raise StateError(what) from error
        if self.lock < 0:
            raise LockError("another process is running these tasks", "Wait for it, or stop it.")
        saved = self._saved()
        self.rows: dict[QueueTask, Row] = {}
        for task in tasks:
            row = saved.get(task.id, {})
            # A task that is defined anew is another one.
            self.rows[task] = row if row.get("task") == task.digest else self._new_row(task)

    def _new_row(self, task: QueueTask) -> Row:
        row: Row = {"id": task.id, "task": task.digest, "status": "waiting"}
        row |= {"outcome": "not begun", "branch": task.branch, "commit": "", "failed_ref": ""}
        row |= {"run": "", "attempts": 0, "seconds": 0.0, "tokens": None, "cost_usd": None}
        return {**row, "log": f"{self.folder_abs}/{task.id}.log"}

    def _saved(self) -> dict[str, Row]:
        """Return id → row of the report. Raises: StateError if it cannot be read."""
        path_abs = f"{self.folder_abs}/report.json"
        try:
            content = read_state(path_abs)
            rows = parse_json(content)["tasks"] if content is not None else []
            return {row["id"]: row for row in rows}
        except (OSError, ValueError, TypeError, KeyError) as error:
            hint = f"To start all tasks again: rm {path_abs}"
            raise StateError(f"{path_abs}: cannot be read: {error!r}", hint) from error

    def save(self) -> dict[str, Any]:
        """Write the report, and return it."""
        rows = list(self.rows.values())
        costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
        document = {
            "version": _VERSION,
            "passed": sum(row["status"] == "passed" for row in rows),
            "of": len(rows),
            "cost_usd": round(sum(costs), 6) if costs else None,
            "folder": self.folder_abs,
            "tasks": rows,
        }
        _write(f"{self.folder_abs}/report.json", json.dumps(document, indent=2))
        return document

    def work(self) -> None:
        """Do what is due; end when all is done, or a signal has come."""
        self._settle()
        due = ("waiting", "interrupted", "error", *(["failed"] * self.options["retry_failed"]))
        waiting = [task for task, row in self.rows.items() if row["status"] in due]
        finished = len(self.rows) - len(waiting)
        self.console.message(f"{counted(len(self.rows), 'task')}, {finished} of them already done")
        running: dict[int, QueueTask] = {}
        watch = Watchdog()  # ends them if we are killed
        try:
            with SignalPipe() as signals, Group(signals, self.console.tick) as group:
                while True:
                    while waiting and len(running) < (self.options["jobs"] or 1):
                        if group.handle_signals():
                            break
                        task = waiting.pop(0)
                        running[self._begin(task, group, watch)] = task
                    if (child := group.wait()) is None:
                        break
                    watch.remove(child.pid)
                    output = b"" if child.ending().ended_by_us else child.capture.captured()[0]
                    self._end(running.pop(child.pid), output)
                self.interrupted_by = group.handle_signals()
        finally:
            watch.close()

    def _settle(self) -> None:
        """Tidy up after tasks whose queue was killed.

        Raises: LockError if processes of an earlier attempt cannot be ended.
        """
        rows = [row for row in self.rows.values() if row["status"] == "interrupted"]
        for row in rows:  # watchdogs end what it has started
            if (lock := lock_killed(self.repo, row["run"], _ENDING_S)) >= 0:
                os.close(lock)
        for line in recover(self.repo, in_place=False):
            self.console.message(line)
        for row in rows:
            if is_there(self.repo, row["run"]):
                what = f"{row['id']}: processes of an earlier attempt are still running"
                raise LockError(what, "Stop them, and try again.")
            row.update(self._conclusion(row))

    def _begin(self, task: QueueTask, group: Group, watch: Watchdog) -> int:
        """Start the process of a task; return its number."""
        run, row = os.path.basename(runs.new_run("")), self._new_row(task)
        row |= {"status": "interrupted", "outcome": "it will be repeated next time", "run": run}
        self.rows[task] = row
        self.save()
        prompt_abs = f"{self.folder_abs}/{task.id}.prompt"
        _write(prompt_abs, task.prompt)
        options = {name: self.options[name] for name in _FOR_ALL}
        options |= {n: value for n in _OF_A_TASK if (value := getattr(task, n)) is not None}
        if task.agent:
            options["agent_command"] = None
        if task.agent_args is not None:
            options["agent_args"] = json.dumps(task.agent_args)
        options |= {"branch": task.branch, "queued": run}
        pairs = ((name.replace("_", "-"), value) for name, value in options.items())
        words = [f"--{name}={value}" for name, value in pairs if value is not None]
        remove_file(row["log"])  # of an earlier attempt, which may be longer
        argv = (sys.executable, "-m", "gitgates", "headless", "-", *words)
        command = Command(argv, self.repo.root_abs, dict(self.repo.env), prompt_abs)
        child = group.start(command, _LIMIT_S, Capture(_KEPT_BYTES, row["log"], _LOG_BYTES))
        if isinstance(child, str):
            raise StateError(f"{task.id}: {child}")
        watch.add(child.pid)
        self.console.message(f"{task.id}: started on branch {task.branch}")
        return child.pid

    def _end(self, task: QueueTask, output: bytes) -> None:
        """Write down how a task has ended; `output` is empty if it was interrupted."""
        row = self.rows[task]
        row.update(self._conclusion(row))
        lines = output.decode("utf-8", "replace").splitlines()
        if lines and row["status"] == "interrupted":
            messages = [line for line in lines if line.startswith(_SAID)] or lines
            outcome = visible_line(messages[-1].removeprefix(_SAID))
            row |= {"status": "error", "outcome": outcome}
        self.save()
        self.console.message(f"{task.id}: {row['status']}: {row['outcome']}")

    def _conclusion(self, row: Row) -> Row:
        """Return what the result of a run, or the commit on its branch, says of its task."""
        result = read_result(f"{self.repo.state_abs}/runs/{row['run']}") or {}
        facts = result.get("headless", {})
        if facts and facts["outcome"] != OUTCOMES["interrupted"][1]:
            return {name: facts[name] for name in _FACTS if name in facts}
        tip = self.repo.git.resolve(f"refs/heads/{row['branch']}")
        if not tip or not is_of(self.repo.git, tip, row["run"]):
            return {}
        outcome = "all gates passed; then it was killed"
        return {"status": "passed", "outcome": outcome, "commit": tip}


def _write(path_abs: str, text: str) -> None:
    try:
        replace_file(path_abs, text.encode())
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error


def _tell(queue: _Queue, fmt: str) -> int:
    """Print the report; return the exit status."""
    document = queue.save()
    passed, rows, cost = document["passed"], document["tasks"], document["cost_usd"]
    status = OK if passed == len(rows) else errors.BLOCKED
    if queue.interrupted_by:
        status = Interrupted.exit_status
    if fmt == "json":
        print_json(document)
        return status
    queue.console.phase("")
    click.echo(
        table([("task", "status", "commit", "branch", "time", "outcome"), *map(_line, rows)])
    )
    paid = f", ${cost:.2f}" if cost else ""
    click.echo(f"gitgates headless: {passed} of {counted(len(rows), 'task')} passed{paid}")
    for row in rows:
        if row["failed_ref"] and row["status"] == "failed":
            click.echo(f"{row['id']}: its work: gitgates runs restore {row['run']}")
    click.echo(f"report: {queue.folder_abs}/report.json")
    return status


def _line(row: Row) -> tuple[str, ...]:
    time_ = f"{row['seconds']:.1f} s" if row["seconds"] else ""
    columns = (row["id"], row["status"], row["commit"][:12], row["branch"], time_)
    return (*columns, visible_line(row["outcome"]))
