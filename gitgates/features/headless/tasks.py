"""`gitgates headless --tasks FILE`: a queue of tasks, and one report for all. Cold.

The file has `[[tasks]]`, read as settings are. The report says how far each task is, and survives
a kill:

<shared state>/queues/<name>/lock         held by the process that works on the queue
<shared state>/queues/<name>/report.json  a row for each task, with a digest of its definition
<shared state>/queues/<name>/<id>.prompt  for the process that does the task
<shared state>/queues/<name>/<id>.log     what its run printed
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tomllib

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.load import refuse
from gitgates.config.read import Document, Settings, read_array
from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import ConfigError, Interrupted, LockError, StateError, UsageError
from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.record import Record
from gitgates.core.types import Command, Problem
from gitgates.features.headless.ground import is_of
from gitgates.features.headless.outcomes import OUTCOMES
from gitgates.features.headless.recovery import recover
from gitgates.features.headless.run_state import is_there, lock_killed
from gitgates.features.headless.turn import require_outermost
from gitgates.hosts.headless import CLIENTS
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.watchdog import Watchdog
from gitgates.report.artifacts import read_result
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, make_folder, read_state, remove_file, replace_file
from gitgates.verbs.output import table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from gitgates.git.repo import Repo

    Row: TypeAlias = dict[str, Any]

_EXAMPLE = 'Try [[tasks]] with id = "fix-login" and prompt = "…".'
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LIMIT_S = 14 * 24 * 3600.0  # each task has a time limit of its own
_ENDING_S = 30.0
_KEPT_BYTES = 64 << 10
_LOG_BYTES = 64 << 20
# The command's options that are defaults for all tasks, and those that a single task needs.
_FOR_ALL = ("agent", "agent_command", "max_retries", "max_cost", "budget_minutes")
_FOR_ONE = ("task", "resume", "branch", "message", "junit", "in_place", "include_uncommitted")
# Fields of a run's result that the report copies.
_FACTS = ("outcome", "commit", "failed_ref", "attempts", "seconds", "tokens", "cost_usd")
_SAID = "gitgates: "
_FINE = ("landed", "nothing to land")
_VERSION = 1  # of the report


class QueueTask(Record):
    """One task of a queue. None: the command's option applies, or the configuration."""

    id: str
    prompt: str
    branch: str
    message: str | None = None
    agent: str | None = None
    agent_args: tuple[str, ...] | None = None
    max_retries: int | None = None
    max_cost: float | None = None
    budget_minutes: float | None = None

    @property
    def digest(self) -> str:
        """A digest of the whole definition: if it changes, the task is a new one."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()

    def arguments(self, options: dict[str, Any], run: str) -> list[str]:
        """Return the options of the command that does the task; `options`: those for all tasks."""
        chosen = {name: options[name] for name in _FOR_ALL if options[name] is not None}
        if self.agent:
            chosen.pop("agent_command", None)
        chosen |= {n: value for n, value in self._asdict().items() if value is not None}
        if self.agent_args is not None:
            chosen["agent_args"] = json.dumps(self.agent_args)
        del chosen["id"], chosen["prompt"]
        words = {**chosen, "queued": run}.items()
        return [f"--{name.replace('_', '-')}={value}" for name, value in words]


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise v.BadValue(
            "1 to 64 letters, digits, `-`, `_` and `.`, starting with a letter or digit"
        )
    return value


TASK_KEYS: tuple[Key, ...] = (
    Key("id", v.ValueType(_id, {"type": "string"})).meaning("Its name in reports. Required."),
    Key("prompt", v.TEXT).meaning("What to do."),
    Key("prompt_file", v.TEXT).meaning("File with the prompt, relative to the task file."),
    Key("branch", v.TEXT).meaning("The branch to create. Default: `headless/ID`."),
    Key("message", v.TEXT).meaning("The commit message. Default: the prompt."),
    Key("agent", v.one_of(*CLIENTS)).meaning("The agent to use."),
    Key("agent_args", v.NAMES).meaning("Additional arguments for its client."),
    Key("max_retries", v.COUNT).meaning("How many times failures are sent back to the agent."),
    Key("max_cost", v.AMOUNT).meaning("Maximum cost in US dollars."),
    Key("budget_minutes", v.AMOUNT).meaning("Time limit for all turns of the agent."),
)
_TABLE = Table(
    name="tasks",
    keys=TASK_KEYS,
    meaning="",
    example='id = "fix-login" and prompt = "…".',
    id_of=lambda table: str(table.get("id", "")),
    needed=("id",),
)


def read_tasks(path: str) -> tuple[QueueTask, ...]:
    """Return the tasks in a file. Raises: ConfigError with every problem."""
    try:
        with open(path, encoding="utf-8") as file:
            document = Document(path, (), parse_toml(file.read()))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}", _EXAMPLE) from error
    settings, problems = Settings(document, {}, {}), list[Problem]()
    for name in document.table.keys() - {_TABLE.name}:
        hint = v.did_you_mean(name, (_TABLE.name,))
        problems.append(Problem(document.location(name), "unknown key", hint))
    read_array(settings, _TABLE, problems)
    tasks = settings.tables_of(_TABLE.name)
    if not (tasks or problems):
        problems.append(Problem(path, "has no [[tasks]]", _EXAMPLE))
    for name, fields in tasks.items():
        place = document.location(_TABLE.name, name)
        if file_name := fields.pop("prompt_file", ""):
            try:
                prompt_file = os.path.join(os.path.dirname(path), file_name)
                with open(prompt_file, encoding="utf-8-sig") as file:
                    fields["prompt"] = file.read().strip()
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(f"{place}.prompt_file", f"{file_name}: {error}"))
        if not fields.get("prompt", "").strip():
            problems.append(Problem(place, "has no `prompt`"))
        fields.setdefault("branch", f"headless/{name}")
    refuse(tuple(problems), "")
    return tuple(QueueTask(**fields) for fields in tasks.values())


def do_all(options: dict[str, Any], fmt: str) -> tuple[dict[str, Any], int]:
    """Do all tasks of a queue; return the report, and the exit status."""
    if wrong := [name for name in _FOR_ONE if options[name]]:
        option = "TASK" if wrong[0] == "task" else f"--{wrong[0].replace('_', '-')}"
        raise UsageError(f"{option} and --tasks are mutually exclusive", "Set it in the file.")
    repo = current_repo()
    require_outermost(repo)
    console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
    queue = _Queue(repo, console, options)
    try:
        signal = queue.work()
        document = queue.save()
    finally:
        os.close(queue.lock)
        console.phase("")
    is_passed = document["passed"] == document["of"]
    if options["land"]:
        is_passed &= all(row["landing"] in _FINE for row in document["tasks"])
    status = errors.OK if is_passed else errors.BLOCKED
    return document, Interrupted.exit_status if signal else status


class _Queue:
    """The rows of the report, and the processes that do the tasks, `jobs` at a time."""

    def __init__(self, repo: Repo, console: Console, options: dict[str, Any]) -> None:
        self.repo, self.console, self.options = repo, console, options
        tasks, path_abs = read_tasks(options["tasks"]), os.path.realpath(options["tasks"])
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(path_abs).partition(".")[0])[:40]
        name = f"{stem}-{hashlib.sha256(os.fsencode(path_abs)).hexdigest()[:12]}"
        self.folder_abs = f"{repo.shared_state_abs}/queues/{name}"
        make_folder(self.folder_abs)
        self.lock = lock_file(f"{self.folder_abs}/lock")
        if self.lock < 0:
            raise LockError("another process is running these tasks", "Wait for it, or stop it.")
        saved = self._saved()
        self.rows: dict[QueueTask, Row] = {}
        for task in tasks:
            row = saved.get(task.id, {})
            # A task whose definition has changed starts again.
            self.rows[task] = row if row.get("task") == task.digest else self._new_row(task)

    def _new_row(self, task: QueueTask) -> Row:
        row: Row = {"id": task.id, "task": task.digest, "status": "waiting"}
        row |= {"outcome": "not begun", "branch": task.branch, "commit": "", "failed_ref": ""}
        row |= {
            "landing": "",
            "run": "",
            "attempts": 0,
            "seconds": 0.0,
            "tokens": None,
            "cost_usd": None,
        }
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
        replace_file(f"{self.folder_abs}/report.json", json.dumps(document, indent=2).encode())
        return document

    def work(self) -> int:
        """Do what is due, until all is done or a signal comes; return the signal, or 0."""
        self._settle()
        due = (
            "waiting",
            "interrupted",
            "error",
            "ejected",
            *(["failed"] * self.options["retry_failed"]),
        )
        waiting = [task for task, row in self.rows.items() if row["status"] in due]
        finished = len(self.rows) - len(waiting)
        self.console.message(f"{counted(len(self.rows), 'task')}, {finished} of them already done")
        for row in self.rows.values():
            row["landing"] = row.get("landing", "").removeprefix("error")  # tried again
        landing = [task for task in self.rows if self._may_land(task)]
        running: dict[int, QueueTask] = {}
        watch = Watchdog()  # ends them if we are killed
        try:
            with SignalPipe() as signals, Group(signals, self.console.tick) as group:
                while True:
                    while len(running) < (self.options["jobs"] or 1) and (landing or waiting):
                        if group.handle_signals():
                            break
                        begin = self._land if landing else self._begin
                        task = (landing or waiting).pop(0)
                        running[begin(task, group, watch)] = task
                    if (child := group.wait()) is None:
                        return group.handle_signals()
                    watch.remove(child.pid)
                    output = b"" if child.ending().ended_by_us else child.capture.captured()[0]
                    task = running.pop(child.pid)
                    is_landing = self.rows[task]["status"] == "passed"
                    (self._landed if is_landing else self._end)(task, output)
                    landing += [task] if self._may_land(task) else []
                    waiting += [task] if self.rows[task]["status"] == "ejected" else []
        finally:
            watch.close()

    def _settle(self) -> None:
        """Clean up after tasks whose queue was killed.

        Raises: LockError if processes of an earlier attempt cannot be ended.
        """
        rows = [row for row in self.rows.values() if row["status"] == "interrupted"]
        for row in rows:  # watchdogs end what it started
            if (lock := lock_killed(self.repo, row["run"], _ENDING_S)) >= 0:
                os.close(lock)
        for line in recover(self.repo, in_place=False):
            self.console.message(line)
        for row in rows:
            if is_there(self.repo, row["run"]):
                what = f"{row['id']}: processes of an earlier attempt are still running"
                raise LockError(what, "Stop them, and try again.")
            self._conclude(row)

    def _begin(self, task: QueueTask, group: Group, watch: Watchdog) -> int:
        """Start the process of a task; return its id."""
        run, before, row = os.path.basename(runs.new_run("")), self.rows[task], self._new_row(task)
        doing, resumed = task, before.get("ejected", "")
        if resumed:  # the feedback on its branch is the next prompt
            branch = f"{task.branch}-again"
            doing = task._replace(prompt=before["feedback"], branch=branch, agent=None)
            row |= {"branch": branch, "ejected": resumed, "feedback": before["feedback"]}
        row |= {"status": "interrupted", "outcome": "will be repeated next time", "run": run}
        self.rows[task] = row
        self.save()
        prompt_abs = f"{self.folder_abs}/{task.id}.prompt"
        replace_file(prompt_abs, doing.prompt.encode())
        remove_file(row["log"])  # of an earlier attempt, which may be longer
        words = doing.arguments(self.options, run) + ([f"--resume={resumed}"] if resumed else [])
        argv = (sys.executable, "-m", "gitgates", "headless", "-", *words)
        command = Command(argv, self.repo.root_abs, dict(self.repo.env), prompt_abs)
        self.console.message(f"{task.id}: started on branch {row['branch']}")
        capture = Capture(_KEPT_BYTES, row["log"], _LOG_BYTES)
        return _start(group, command, capture, watch)

    def _may_land(self, task: QueueTask) -> bool:
        row = self.rows[task]
        is_done = row["status"] == "passed" and row["commit"] and not row.get("landing")
        return bool(self.options["land"] and is_done)

    def _land(self, task: QueueTask, group: Group, watch: Watchdog) -> int:
        """Start to land the branch of a task that has passed; return the process id."""
        words = ("land", "--format=json", self.rows[task]["branch"])
        command = Command(
            (sys.executable, "-m", "gitgates", *words), self.repo.root_abs, dict(self.repo.env)
        )
        self.console.message(f"{task.id}: landing")
        return _start(group, command, Capture(_LOG_BYTES), watch)

    def _landed(self, task: QueueTask, output: bytes) -> None:
        """Record whether a branch landed; an ejected one goes back to its agent, once."""
        row = self.rows[task]
        try:  # messages may come before the document
            entry = parse_json(output[output.index(b"{\n") :])["entries"][0]
        except (ValueError, KeyError, IndexError):
            lines = output.decode("utf-8", "replace").strip().splitlines() or ["interrupted"]
            row |= {"landing": "error", "outcome": f"did not land: {visible_line(lines[-1])}"}
        else:
            row |= {"landing": entry["state"], "outcome": entry["state"]}
            if entry["state"] == "landed":
                row["outcome"] = f"landed on {entry['target']} as {entry['commit'][:12]}"
            elif entry["state"] == "ejected":
                is_last = row.get("ejected") or self.options["agent_command"]
                status = "failed" if is_last else "ejected"
                row |= {"status": status, "outcome": f"was ejected: {entry['why']}"}
                row |= {} if is_last else {"ejected": row["run"], "feedback": entry["feedback"]}
        self.save()
        self.console.message(f"{task.id}: {row['outcome']}")

    def _end(self, task: QueueTask, output: bytes) -> None:
        """Record how a task ended; `output` is empty if it was interrupted."""
        row = self.rows[task]
        self._conclude(row)
        lines = output.decode("utf-8", "replace").splitlines()
        if lines and row["status"] == "interrupted":
            messages = [line for line in lines if line.startswith(_SAID)] or lines
            outcome = visible_line(messages[-1].removeprefix(_SAID))
            row |= {"status": "error", "outcome": outcome}
        self.save()
        self.console.message(f"{task.id}: {row['status']}: {row['outcome']}")

    def _conclude(self, row: Row) -> None:
        """Record a task's result, from its run's result or the commit on its branch."""
        result = read_result(f"{self.repo.state_abs}/runs/{row['run']}") or {}
        facts = result.get("headless", {})
        if facts and facts["outcome"] != OUTCOMES["interrupted"][1]:
            row |= {name: facts[name] for name in ("status", *_FACTS) if name in facts}
            return
        git = self.repo.git
        tip = git.resolve(f"refs/heads/{row['branch']}")
        if tip and is_of(git, tip, row["run"]):
            outcome = "all gates passed; then the run was killed"
            row |= {"status": "passed", "outcome": outcome, "commit": tip}


def _start(group: Group, command: Command, capture: Capture, watch: Watchdog) -> int:
    child = group.start(command, _LIMIT_S, capture)
    if isinstance(child, str):
        raise StateError(f"{command.argv[-1]}: {child}")
    watch.add(child.pid)
    return child.pid


def as_text(document: dict[str, Any]) -> str:
    """Return the report for people."""
    rows, cost = document["tasks"], document["cost_usd"]
    lines: list[tuple[str, ...]] = [("task", "status", "commit", "branch", "time", "outcome")]
    restorable = []
    for row in rows:
        time = f"{row['seconds']:.1f} s" if row["seconds"] else ""
        columns = (row["id"], row["status"], row["commit"][:12], row["branch"], time)
        lines.append((*columns, visible_line(row["outcome"])))
        if row["failed_ref"] and row["status"] == "failed":
            restorable.append(f"{row['id']}: its work: gitgates runs restore {row['run']}")
    paid = f", ${cost:.2f}" if cost else ""
    passed = f"{document['passed']} of {counted(len(rows), 'task')} passed{paid}"
    report = f"report: {document['folder']}/report.json"
    return "\n".join([table(lines), f"gitgates headless: {passed}", *restorable, report])
