"""A queue of tasks, each a headless run of its own; what was finished survives any kill.

    <shared state>/queues/<name>/lock          held by the process that works on the queue
    <shared state>/queues/<name>/<id>.task     the options of its run, for the process that does it
    <shared state>/queues/<name>/<id>.progress how far it has come: see `Progress`
    <shared state>/queues/<name>/<id>.log      what its run has printed

A task is finished when its run has a result, or its branch the commit of that run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from gitgates.core.errors import StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.headless.leftovers import is_of
from gitgates.features.headless.limits import cost_usd
from gitgates.features.headless.outcomes import OUTCOMES
from gitgates.report.artifacts import read_result
from gitgates.report.result import attempts_made
from gitgates.store.files import make_folder, read_state, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.features.headless.tasks import QueueTask
    from gitgates.git.repo import Repo

_SLUG = re.compile(r"[^A-Za-z0-9_-]+")
_VERSION = 2
_INTERRUPTED = OUTCOMES["interrupted"][1]


class Progress(Record):
    """How far a task has come. `state`: waiting, started, interrupted, or finished."""

    task: str  # its digest
    state: str = "waiting"
    run_abs: str = ""  # the folder of its run
    branch: str = ""
    status: str = ""  # passed or failed, of a finished one
    outcome: str = ""  # in words
    commit: str = ""
    failed_ref: str = ""
    attempts: int = 0
    seconds: float = 0.0
    tokens: int | None = None
    cost_usd: float | None = None

    @property
    def run(self) -> str:
        """The name of its run."""
        return os.path.basename(self.run_abs)


class TaskFiles(Record):
    """Where a task's files are."""

    folder_abs: str  # of the queue
    id: str

    @property
    def log_abs(self) -> str:
        """What its run has printed."""
        return f"{self.folder_abs}/{self.id}.log"

    def hand_on(self, options: dict[str, Any]) -> str:
        """Write down the options of a run, for the process that does it; return that file."""
        path_abs = f"{self.folder_abs}/{self.id}.task"
        _write(path_abs, options)
        return path_abs

    def progress(self, task: QueueTask) -> Progress:
        """Return how far a task has come, as it is defined now.

        Raises: StateError where that cannot be read: it is not begun again then.
        """
        path_abs = f"{self.folder_abs}/{self.id}.progress"
        new = Progress(task=task.digest, branch=task.branch)
        hint = f"To start this task again: rm {path_abs}"
        try:
            if (content := read_state(path_abs)) is None:
                return new
            fields = parse_json(content)
            version, progress = fields.pop("v"), Progress(**fields)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(f"{path_abs}: cannot be read: {error}", hint) from error
        if version != _VERSION:
            raise StateError(f"{path_abs}: was written by another version of gitgates", hint)
        return progress if progress.task == task.digest else new

    def save(self, progress: Progress) -> Progress:
        """Write down how far the task has come, and return that."""
        _write(f"{self.folder_abs}/{self.id}.progress", {"v": _VERSION, **progress._asdict()})
        return progress


def queue_folder(repo: Repo, file: str) -> str:
    """Return the folder of a queue, made if need be: one for each file of tasks.

    Raises: StateError.
    """
    path_abs = os.path.realpath(file)
    stem = _SLUG.sub("-", os.path.basename(path_abs).partition(".")[0])[:40]
    name = f"{stem}-{hashlib.sha256(os.fsencode(path_abs)).hexdigest()[:12]}"
    folder_abs = f"{repo.shared_state_abs}/queues/{name}"
    try:
        make_folder(folder_abs)
    except OSError as error:
        raise StateError(f"{folder_abs}: cannot be created: {error.strerror}") from error
    return folder_abs


def _write(path_abs: str, fields: dict[str, Any]) -> None:
    try:
        replace_file(path_abs, json.dumps(fields).encode())
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error


def concluded(progress: Progress, repo: Repo) -> Progress:
    """Return the progress of a task whose run has ended somehow: what its result says."""
    document = read_result(progress.run_abs) or {}
    facts = document.get("headless") or {}
    if not facts.get("status"):
        tip = repo.git.resolve(f"refs/heads/{progress.branch}")
        if not tip or not is_of(repo.git, tip, progress.run):
            return progress
        outcome = "all gates passed; then it was killed"
        return progress._replace(state="finished", status="passed", commit=tip, outcome=outcome)
    turns = facts.get("turns", [])
    tokens = [turn["tokens"] for turn in turns if "tokens" in turn]
    outcome = facts.get("outcome", "")
    return progress._replace(
        state="interrupted" if outcome == _INTERRUPTED else "finished",
        status=facts["status"],
        outcome=outcome,
        commit=facts.get("commit", ""),
        failed_ref=facts.get("failed_ref", ""),
        attempts=len(attempts_made(document)),
        seconds=round(sum(turn["seconds"] for turn in turns), 1),
        tokens=sum(tokens) if tokens else None,
        cost_usd=cost_usd(turns),
    )
