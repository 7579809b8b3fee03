"""`gitgates headless --tasks FILE`: a queue of tasks, and one report for all."""

from __future__ import annotations

import json
import os
import sys
from collections import deque

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import OK, ConfigError, Interrupted, LockError, StateError, UsageError
from gitgates.core.limits import parse_json
from gitgates.core.types import Command
from gitgates.features.headless import queue
from gitgates.features.headless.ground import Location
from gitgates.features.headless.leftovers import settle_all
from gitgates.features.headless.recovery import lines_of
from gitgates.features.headless.run_state import is_there
from gitgates.features.headless.tasks import read_tasks
from gitgates.features.headless.turn import require_outermost
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, read_state, remove_file, replace_file
from gitgates.verbs.output import print_json, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.features.headless.queue import Progress, TaskFiles
    from gitgates.features.headless.tasks import QueueTask
    from gitgates.git.repo import Repo
    from gitgates.proc.processes import Child

_LIMIT_S = 14 * 24 * 3600.0  # each task has a time limit of its own
_KEPT_BYTES = 64 << 10
_LOG_BYTES = 64 << 20
# Of the command, for tasks that say nothing else.
_FOR_ALL = ("agent", "agent_command", "max_retries", "max_cost", "budget_minutes", "turn_minutes")
_OF_A_TASK = ("agent", "agent_args", "message", "max_retries", "max_cost", "budget_minutes")
_SAID = "gitgates: "
_VERSION = 1  # of the report
_FOR_ONE = {
    "task": "TASK",
    "from_file": "--from-file",
    "resume": "--resume",
    "branch": "--branch",
    "message": "--message",
    "junit": "--junit",
    "on_failure": "--on-failure",
    "in_place": "--in-place",
    "uncommitted": "--include-uncommitted",
}


def start(do: Callable[..., int], *, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Do all tasks of a queue, or with `do`, in a process that the queue has started, one."""
    repo = current_repo()
    if options["queued"]:
        return _do_one(do, repo, options)
    for name, option in _FOR_ONE.items():
        if options[name]:
            raise UsageError(f"{option} and --tasks are mutually exclusive", "Set it in the file.")
    if not options["commits"]:
        raise UsageError("--no-commit and --tasks are mutually exclusive")
    require_outermost(repo)
    tasks = read_tasks(options["tasks"])
    _require_names(tasks, options["tasks"], repo)
    folder_abs = queue.queue_folder(repo, options["tasks"])
    if (lock := lock_file(f"{folder_abs}/lock")) < 0:
        raise LockError("another process is running these tasks", "Wait for it, or stop it.")
    try:
        console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
        pool = _Pool(repo, folder_abs, console, options)
        pool.work_on(tasks)
        return _report(tasks, pool, fmt)
    finally:
        os.close(lock)


def _require_names(tasks: tuple[QueueTask, ...], file: str, repo: Repo) -> None:
    """Raise ConfigError if git refuses the name of a branch, or two of them beside each other."""
    wrong = [
        f"{file}: the task `{task.id}`: branch: not a valid branch name: {task.branch}"
        for task in tasks
        if repo.git.ask("check-ref-format", "--branch", task.branch).exit_status
    ]
    wrong += [
        f"{file}: the task `{task.id}`: branch: {task.branch} conflicts with {other.branch}, "
        f"the branch of `{other.id}`"
        for task in tasks
        for other in tasks
        if task.branch.startswith(f"{other.branch}/")
    ]
    if wrong:
        raise ConfigError("\n".join(wrong))


class _Pool:
    """The processes that do the tasks, `jobs` at a time."""

    def __init__(
        self, repo: Repo, folder_abs: str, console: Console, options: dict[str, Any]
    ) -> None:
        self.repo, self.folder_abs, self.console = repo, folder_abs, console
        self.jobs: int = options["jobs"] or 1
        self.retries: bool = options["retry_failed"]
        self.options = {name: options[name] for name in _FOR_ALL}
        self.interrupted_by = 0
        self.trouble: dict[str, str] = {}  # id → why its process has left no result

    def place(self, task: QueueTask) -> TaskFiles:
        """Return where a task's files are."""
        return queue.TaskFiles(self.folder_abs, task.id)

    def progress(self, task: QueueTask) -> Progress:
        """Return how far a task has come; of a run that has ended meanwhile, its end."""
        now = self.place(task).progress(task)
        if now.state != "started":
            return now
        return self.place(task).save(queue.concluded(now, self.repo))

    def is_due(self, task: QueueTask) -> bool:
        """Return whether a task is to be done.

        Raises: LockError where processes of an earlier attempt cannot be ended.
        """
        now = self.progress(task)
        if now.state == "started" and is_there(self.repo, now.run):
            hint = "Stop them, and try again."
            raise LockError(f"{task.id}: processes of an earlier attempt are still running", hint)
        return now.state != "finished" or (self.retries and now.status != "passed")

    def work_on(self, tasks: tuple[QueueTask, ...]) -> None:
        """Do what is due; end when all is done, or a signal has come."""
        for line in (line for settled in settle_all(self.repo) for line in lines_of(settled)):
            self.console.message(line)
        waiting = deque(task for task in tasks if self.is_due(task))
        finished = len(tasks) - len(waiting)
        self.console.message(f"{counted(len(tasks), 'task')}, {finished} of them already done")
        running: dict[int, QueueTask] = {}
        watch = Watchdog()  # ends them where we are killed
        try:
            with SignalPipe() as signals, Group(signals, self.console.tick) as group:
                while True:
                    while waiting and len(running) < self.jobs and not group.handle_signals():
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
        place, run_abs = self.place(task), runs.new_run(self.repo.state_abs)
        task_options = {
            name: value for name in _OF_A_TASK if (value := getattr(task, name)) is not None
        }
        more = {"agent_command": None} if task.agent else {}
        fixed = {"task": task.prompt, "branch": task.branch, "run_abs": run_abs}
        file_abs = place.hand_on({**self.options, **task_options, **more, **fixed})
        started = queue.Progress(task=task.digest, branch=task.branch, state="started")
        place.save(started._replace(run_abs=run_abs))
        remove_file(place.log_abs)  # of an earlier attempt, which may be longer
        argv = (sys.executable, "-m", "gitgates", "headless", "--queued", file_abs)
        capture = Capture(_KEPT_BYTES, place.log_abs, _LOG_BYTES)
        command = Command(argv, self.repo.root_abs, dict(self.repo.env))
        child = group.start(command, _LIMIT_S, capture)
        if isinstance(child, str):
            self.trouble[task.id] = child
            self.console.message(f"{task.id}: {child}")
            return
        watch.add(child.pid)
        running[child.pid] = task
        self.console.message(f"{task.id}: started on branch {task.branch}")

    def _ended(self, task: QueueTask, child: Child) -> None:
        ending = child.ending()
        if self.progress(task).state == "started" and not ending.ended_by_us:
            output = child.capture.captured()[0].decode("utf-8", "replace").splitlines()
            said = [line.removeprefix(_SAID) for line in output if line.startswith(_SAID)]
            how = f"exit status {ending.exit_status}"
            if ending.signal is not None:
                how, said = f"killed by signal {ending.signal}", []
            self.trouble[task.id] = visible_line(said[-1]) if said else how
        row = self.row(task)
        self.console.message(f"{task.id}: {row['status']}: {row['outcome']}")

    def row(self, task: QueueTask) -> dict[str, Any]:
        """Return the row of a task in the report."""
        now = self.progress(task)
        status, outcome = now.status, now.outcome
        if now.state == "waiting":
            status, outcome = "waiting", "not begun"
        elif now.state != "finished":
            status, outcome = "interrupted", "it will be repeated next time"
        if task.id in self.trouble:
            status, outcome = "error", self.trouble[task.id]
        return {
            "id": task.id,
            "status": status,
            "outcome": outcome,
            "branch": now.branch,
            "commit": now.commit,
            "failed_ref": now.failed_ref,
            "run": now.run,
            "attempts": now.attempts,
            "seconds": now.seconds,
            "tokens": now.tokens,
            "cost_usd": now.cost_usd,
            "log": self.place(task).log_abs,
        }


def _do_one(do: Callable[..., int], repo: Repo, options: dict[str, Any]) -> int:
    """Do one task, as the queue has handed it on."""
    try:
        task_options = parse_json(read_state(options["queued"]) or b"")
        task, branch, run_abs = (task_options.pop(name) for name in ("task", "branch", "run_abs"))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise StateError(f"{options['queued']}: is not a task: {error}") from error
    del options["task"]
    location = Location(branch=branch)
    return do(
        task, repo, location=location, run_abs=run_abs, fmt="text", **{**options, **task_options}
    )


def _report(tasks: tuple[QueueTask, ...], pool: _Pool, fmt: str) -> int:
    rows = [pool.row(task) for task in tasks]
    passed = sum(row["status"] == "passed" for row in rows)
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    cost = round(sum(costs), 6) if costs else None
    status = OK if passed == len(rows) else errors.BLOCKED
    if pool.interrupted_by:
        status = Interrupted.exit_status
    document = {"version": _VERSION, "passed": passed, "of": len(rows), "cost_usd": cost}
    document |= {"folder": pool.folder_abs, "tasks": rows}
    replace_file(f"{pool.folder_abs}/report.json", json.dumps(document, indent=2).encode())
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
    click.echo(f"report: {pool.folder_abs}/report.json")
    return status


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    time_ = f"{row['seconds']:.1f} s" if row["seconds"] else ""
    columns = (row["id"], row["status"], row["commit"][:12], row["branch"], time_)
    return (*columns, visible_line(row["outcome"]))
