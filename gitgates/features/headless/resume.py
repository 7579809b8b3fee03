"""Continue an earlier run's conversation: what is kept of it, and what to tell the agent."""

from __future__ import annotations

import json
import os

from gitgates.core.errors import UsageError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.headless.ground import FAILED_REFS
from gitgates.hosts.headless import CLIENTS
from gitgates.report.artifacts import read_result
from gitgates.store import runs
from gitgates.store.files import read_state, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.git.repo import Repo

_FILE = "conversation.json"


class Conversation(Record):
    """What another run needs to continue an earlier one."""

    run: str
    task: str
    agent: str
    session: str  # of the agent's client
    root_abs: str  # where it worked, by which clients find a conversation
    turns: list[dict[str, Any]]  # with their usage, because some clients report totals
    start: str = ""  # the commit to continue from; empty: HEAD
    passed: bool = False
    outcome: str = ""
    work_ref: str = ""  # of a failed run

    def prompt(self, task: str) -> str:
        """Return the prompt that continues the conversation: with another task, or the same one."""
        parts = [task] if task != self.task else [f"Continue this task: {self.task}"]
        if self.outcome and not self.passed:
            parts.append(f"It last ended as follows: {self.outcome}.")
        if self.work_ref:
            parts.append("Your changes so far are in the working tree, uncommitted.")
        return "\n\n".join(parts)


def save_conversation(run_abs: str, **fields: object) -> None:
    """Save what another run needs to continue: the first fields of `Conversation`."""
    replace_file(f"{run_abs}/{_FILE}", json.dumps(fields).encode(), sync=False)


def find_conversation(repo: Repo, name: str) -> Conversation:
    """Return a run's conversation, by its name, a prefix of it, or `latest`.

    Raises: UsageError if there is none that can be continued.
    """
    runs_abs = f"{repo.state_abs}/runs"
    names = [n for n in runs.run_ids(repo.state_abs) if os.path.isfile(f"{runs_abs}/{n}/{_FILE}")]
    if not (run := runs.meant_by(name, names)):
        what = f"--resume {name}: not the name of exactly one headless run with a finished turn"
        raise UsageError(what, f"Newest: {', '.join(names[:-4:-1]) or 'none'}.")
    path_abs = f"{runs_abs}/{run}/{_FILE}"
    try:
        earlier = Conversation(run=run, **parse_json(read_state(path_abs) or b""))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--resume {run}: {path_abs} cannot be read: {error}") from error
    if earlier.agent not in CLIENTS or not earlier.session:
        what = f"`{earlier.agent}` cannot resume a conversation, or has reported no session"
        hint = "Start a new run, and describe in its task what to continue."
        raise UsageError(f"--resume {run}: {what}", hint)
    facts = (read_result(f"{runs_abs}/{run}") or {}).get("headless") or {}
    passed, start, ref = facts.get("status") == "passed", earlier.start, f"{FAILED_REFS}/{run}"
    if passed and (start := facts.get("commit", earlier.start)):
        is_in = repo.git.ask("merge-base", "--is-ancestor", start, "HEAD")
        start = start if is_in.exit_status else ""
    return earlier._replace(
        start=start,
        passed=passed,
        outcome=facts.get("outcome", ""),
        work_ref=ref if repo.git.resolve(ref) else "",
    )
