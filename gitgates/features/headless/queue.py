"""How far the tasks of a queue have come: rows of its report, which survive any kill.

<shared state>/queues/<name>/lock           held by the process that works on the queue
<shared state>/queues/<name>/<id>.prompt    for the process that does the task
<shared state>/queues/<name>/<id>.progress  its row, and the digest of its definition
<shared state>/queues/<name>/<id>.log       what its run has printed
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from gitgates.core.errors import StateError
from gitgates.core.limits import parse_json
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
_VERSION = 3
_INTERRUPTED = OUTCOMES["interrupted"][1]


class Progress:
    """The rows of the report on a queue; each file of tasks is one. Raises: StateError."""

    def __init__(self, repo: Repo, file: str) -> None:
        self._repo = repo
        path_abs = os.path.realpath(file)
        stem = _SLUG.sub("-", os.path.basename(path_abs).partition(".")[0])[:40]
        name = f"{stem}-{hashlib.sha256(os.fsencode(path_abs)).hexdigest()[:12]}"
        self.folder_abs = f"{repo.shared_state_abs}/queues/{name}"
        try:
            make_folder(self.folder_abs)
        except OSError as error:
            what = f"{self.folder_abs}: cannot be created: {error.strerror}"
            raise StateError(what) from error

    def row(self, task: QueueTask) -> dict[str, Any]:
        """Return the row of a task, as it is defined now.

        `status`: waiting, interrupted (also while it runs), passed, or failed.

        Raises: StateError where it cannot be read: the task is not begun again then.
        """
        row: dict[str, Any] = {
            "id": task.id,
            "status": "waiting",
            "outcome": "not begun",
            "branch": task.branch,
        }
        row |= {"commit": "", "failed_ref": "", "run": "", "attempts": 0, "seconds": 0.0}
        row |= {"tokens": None, "cost_usd": None, "log": f"{self.folder_abs}/{task.id}.log"}
        path_abs = f"{self.folder_abs}/{task.id}.progress"
        hint = f"To start this task again: rm {path_abs}"
        try:
            if (content := read_state(path_abs)) is None:
                return row
            fields = parse_json(content)
            version, digest, saved = fields["v"], fields["task"], fields["row"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StateError(f"{path_abs}: cannot be read: {error}", hint) from error
        if version != _VERSION:
            raise StateError(f"{path_abs}: was written by another version of gitgates", hint)
        if digest != task.digest:
            return row
        if saved["status"] == "interrupted":
            saved |= self._conclusion(saved)
            self._save(task, saved)
        row |= saved
        return row

    def begin(self, task: QueueTask, run: str) -> str:
        """Write down that a run of a task begins; return the file with the prompt."""
        prompt_abs = f"{self.folder_abs}/{task.id}.prompt"
        _write(prompt_abs, task.prompt)
        outcome = "it will be repeated next time"
        self._save(task, {"status": "interrupted", "outcome": outcome, "run": run})
        return prompt_abs

    def _save(self, task: QueueTask, row: dict[str, Any]) -> None:
        fields = {"v": _VERSION, "task": task.digest, "row": {"branch": task.branch, **row}}
        _write(f"{self.folder_abs}/{task.id}.progress", json.dumps(fields))

    def _conclusion(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return what the result of a run, or the commit on its branch, says of its task."""
        places = [f"{state_abs}/runs/{row['run']}" for state_abs in self._repo.states_abs]
        document: dict[str, Any] = next(filter(None, map(read_result, places)), {})
        facts = document.get("headless") or {}
        if facts.get("outcome") == _INTERRUPTED:
            return {}
        if not facts.get("status"):
            tip = self._repo.git.resolve(f"refs/heads/{row['branch']}")
            if not tip or not is_of(self._repo.git, tip, row["run"]):
                return {}
            return {
                "status": "passed",
                "outcome": "all gates passed; then it was killed",
                "commit": tip,
            }
        turns = facts.get("turns", [])
        tokens = [turn["tokens"] for turn in turns if "tokens" in turn]
        return {
            "status": facts["status"],
            "outcome": facts.get("outcome", ""),
            "commit": facts.get("commit", ""),
            "failed_ref": facts.get("failed_ref", ""),
            "attempts": len(attempts_made(document)),
            "seconds": round(sum(turn["seconds"] for turn in turns), 1),
            "tokens": sum(tokens) if tokens else None,
            "cost_usd": cost_usd(turns),
        }


def _write(path_abs: str, text: str) -> None:
    try:
        replace_file(path_abs, text.encode())
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error
