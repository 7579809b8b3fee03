"""Continuing the conversation of an earlier run: what is kept of it, and its work restored."""

from __future__ import annotations

import json
import os

from gitgates.core.errors import UsageError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.headless.commit import FAILED_REFS
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
    """An earlier run, as far as another one can go on with it."""

    run: str
    task: str
    agent: str
    session: str  # of the agent's client
    root_abs: str  # where it has worked: clients find a conversation by that
    turns: tuple[dict[str, Any], ...]  # with what they used, which clients count on
    start: str = "HEAD"  # the commit to go on from
    passed: bool = False
    outcome: str = ""
    work_ref: str = ""  # of a run that failed

    def prompt(self, task: str) -> str:
        """Return how to go on: with another task, or with that of before."""
        parts = [task] if task != self.task else [f"Continue this task: {self.task}"]
        if self.outcome and not self.passed:
            parts.append(f"It last ended as follows: {self.outcome}.")
        if self.work_ref:
            parts.append("Your changes so far are in the working tree, uncommitted.")
        return "\n\n".join(parts)


def save_conversation(run_abs: str, conversation: dict[str, Any]) -> None:
    """Write down what another run needs to go on, the first fields of `Conversation`."""
    replace_file(f"{run_abs}/{_FILE}", json.dumps(conversation).encode(), sync=False)


def find_conversation(repo: Repo, name: str) -> Conversation:
    """Return the conversation of a run: its name, the beginning of that, or `latest`.

    Raises: UsageError if there is none that can be continued.
    """
    places = (f"{repo.state_abs}/runs/{run}/{_FILE}" for run in runs.run_ids(repo.state_abs))
    names = [path.split("/")[-2] for path in places if os.path.isfile(path)]
    matching = names[-1:] if name == "latest" else [run for run in names if run.startswith(name)]
    if len(matching) != 1:
        newest = ", ".join(names[:-4:-1]) or "none"
        missing = "no headless run of that name with a finished turn"
        raise UsageError(
            f"--resume {name}: {'ambiguous prefix of several runs' if matching else missing}",
            f"Newest: {newest}.",
        )
    conversation = _read(repo, matching[0])
    if conversation.agent not in CLIENTS or not conversation.session:
        raise UsageError(
            f"--resume {conversation.run}: `{conversation.agent}` cannot resume a conversation, or "
            "has named none",
            "Start a new run, and describe in its task what to continue.",
        )
    return conversation


def _read(repo: Repo, run: str) -> Conversation:
    run_abs, ref = f"{repo.state_abs}/runs/{run}", f"{FAILED_REFS}/{run}"
    try:
        fields = parse_json(read_state(f"{run_abs}/{_FILE}") or b"")
        earlier = Conversation(run=run, **{**fields, "turns": tuple(fields["turns"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"--resume {run}: {run_abs}/{_FILE} cannot be read: {error}") from error
    facts = (read_result(run_abs) or {}).get("headless") or {}
    passed, start = facts.get("status") == "passed", earlier.start
    if passed and (start := facts.get("commit", earlier.start)):
        is_in = repo.git.ask("merge-base", "--is-ancestor", start, "HEAD")
        start = start if is_in.exit_status else "HEAD"
    return earlier._replace(
        start=start,
        passed=passed,
        outcome=facts.get("outcome", ""),
        work_ref=ref if repo.git.resolve(ref) else "",
    )
