"""`gitgates headless --tasks FILE`: a queue of tasks, and one report for all."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from functools import partial

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import OK, ConfigError, GitgatesError, Interrupted, LockError, UsageError
from gitgates.core.types import Command
from gitgates.features.headless import queue
from gitgates.features.headless.tasks import read_tasks
from gitgates.features.headless.turn import require_outermost
from gitgates.features.headless.worktree import Location, require_branch
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, remove_file, replace_file
from gitgates.verbs.output import print_json, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.features.headless.queue import TaskFiles
    from gitgates.features.headless.tasks import QueueTask
    from gitgates.git.repo import Repo
    from gitgates.proc.processes import Child

_LIMIT_S = 14 * 24 * 3600.0  # each task has a time limit of its own
_KEPT_BYTES = 64 << 10
_LOG_BYTES = 64 << 20
# Of the command, for tasks that say nothing else.
_FOR_ALL = ("agent", "agent_command", "max_retries", "max_cost", "budget_minutes", "turn_minutes")
_OF_A_TASK = ("agent", "agent_args", "message", "max_retries", "max_cost", "budget_minutes")
_VERSION = 1  # of the report
_FOR_ONE = {
    "task": "TASK",
    "from_file": "--from-file",
    "resume": "--resume",
    "branch": "--branch",
    "message": "--message",
    "junit": "--junit",
    "on_failure": "--on-failure",
    "force": "--force",
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
        self.options = _options(options)
        self.interrupted_by = 0
        self.trouble: dict[str, str] = {}  # id → why its process has left no result

    def place(self, task: QueueTask) -> TaskFiles:
        """Return where a task's files are."""
        return queue.TaskFiles(self.folder_abs, task.id)

    def is_due(self, task: QueueTask) -> bool:
        """Return whether a task is to be done, as far as can be seen from outside."""
        now = self.place(task).progress()
        if not queue.is_finished(now, task):
            return True
        return self.retries and now is not None and now.status != "passed"

    def work_on(self, tasks: tuple[QueueTask, ...]) -> None:
        """Do what is due; end when all is done, or a signal has come."""
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
        place = self.place(task)
        place.hand_on(task)
        remove_file(place.log_abs)  # of an earlier attempt, which may be longer
        words = ("-m", "gitgates", "headless", "--queued", f"{self.folder_abs}/{task.id}")
        argv = (sys.executable, *words, *self.options)
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
        now, ending = self.place(task).progress(), child.ending()
        if not queue.is_finished(now, task) and not ending.ended_by_us:
            output = child.capture.captured()[0].decode("utf-8", "replace").strip()
            how = f"exit status {ending.exit_status}"
            if ending.signal is not None:
                how = f"killed by signal {ending.signal}"
            self.trouble[task.id] = visible_line(output.rpartition("\n")[2]) or how
        row = self.row(task)
        self.console.message(f"{task.id}: {row['status']}: {row['outcome']}")

    def row(self, task: QueueTask) -> dict[str, Any]:
        """Return the row of a task in the report."""
        now = self.place(task).progress()
        if now is None or now.task != task.digest:
            now = queue.Progress(task=task.digest, state="waiting", branch=task.branch)
        status, outcome = now.status, now.outcome
        if now.state != "finished":
            status = "interrupted" if now.state == "started" else now.state
            outcome = outcome or {"waiting": "not begun"}.get(
                status, "it will be repeated next time"
            )
        if now.state != "finished" and task.id in self.trouble:
            status = "error"
            outcome = now.outcome if now.state == "error" else self.trouble[task.id]
        return {
            "id": task.id,
            "status": status,
            "outcome": outcome,
            "branch": now.branch or task.branch,
            "commit": now.commit,
            "failed_ref": now.failed_ref,
            "run": os.path.basename(now.run_abs),
            "attempts": now.attempts,
            "seconds": now.seconds,
            "tokens": now.tokens,
            "cost_usd": now.cost_usd,
            "log": self.place(task).log_abs,
        }


def _options(options: dict[str, Any]) -> tuple[str, ...]:
    values = ((f"--{name.replace('_', '-')}", options[name]) for name in _FOR_ALL)
    arguments = [f"{option}={value}" for option, value in values if value is not None]
    return (*arguments, *(["--retry-failed"] if options["retry_failed"] else []))


def _do_one(do: Callable[..., int], repo: Repo, options: dict[str, Any]) -> int:
    """Do one task, unless it is finished, and write down how far it has come."""
    folder_abs, _, name = options["queued"].rpartition("/")
    place = queue.TaskFiles(folder_abs, name)
    console = Console(open_terminal(1, environ.read()))
    lock = place.lock(console.tick)
    try:
        task, now = place.task(), place.progress()
        if now and now.state == "started":
            queue.end_left(now)
            queue.remove_locks(place, now, repo, console.message)
            now = queue.settle(place, now, repo, console.message)
        again = options["retry_failed"] and now is not None and now.status != "passed"
        if queue.is_finished(now, task) and not again:
            return OK
        del options["task"]
        return _attempt(place, repo, console, partial(do, **options))
    finally:
        os.close(lock)


def _attempt(place: TaskFiles, repo: Repo, console: Console, do: Callable[..., int]) -> int:
    task = place.task()
    settings: dict[str, Any] = {
        name: value for name in _OF_A_TASK if (value := getattr(task, name)) is not None
    }
    if task.agent:
        settings["agent_command"] = None
    now = queue.Progress(task=task.digest, state="error")
    try:
        require_branch(repo, task.branch)
        now = queue.begin(place, task, repo, runs.new_run(repo.state_abs))
        status = do(
            task.prompt,
            repo,
            location=Location(branch=task.branch, apart=True, folder_abs=now.folder_abs),
            run_abs=now.run_abs,
            fmt="text",
            **settings,
        )
    except Interrupted:
        raise  # what is there is settled by the next attempt
    except GitgatesError as error:
        if now.state == "started":
            now = queue.settle(place, now, repo, console.message)
        if now.state != "finished":
            place.save(now._replace(outcome=error.message))
        raise
    queue.settle(place, now, repo, console.message)
    return status


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
