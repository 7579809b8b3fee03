"""Continuing the conversation of an earlier run: what is kept of it, and its work restored."""

from __future__ import annotations

import json
import os

from gitgates.core.errors import GitError, UsageError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.headless.commit import AS_PATCH, FAILED_REFS, PATCH
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
    passed: bool = False
    outcome: str = ""
    commit: str = ""
    work_ref: str = ""  # of a run that failed

    def prompt(self, task: str) -> str:
        """Return how to go on: with another task, or with that of before."""
        parts = [task] if task else [f"Continue this task: {self.task}"]
        if self.outcome and not self.passed:
            parts.append(f"It last ended as follows: {self.outcome}.")
        if self.work_ref:
            parts.append("Your changes so far are in the working tree, uncommitted.")
        return "\n\n".join(parts)


def save_conversation(run_abs: str, conversation: dict[str, Any]) -> None:
    """Write down what another run needs to go on: task, agent, session, root_abs, turns."""
    replace_file(f"{run_abs}/{_FILE}", json.dumps(conversation).encode(), sync=False)


def find_conversation(repo: Repo, name: str) -> Conversation:
    """Return the conversation of a run: its name, the beginning of that, or `latest`.

    Raises: UsageError if there is none that can be continued.
    """
    run_names = [
        run
        for run in runs.run_ids(repo.state_abs)
        if os.path.isfile(f"{repo.state_abs}/runs/{run}/{_FILE}")
    ]
    matching = (
        run_names[-1:] if name == "latest" else [run for run in run_names if run.startswith(name)]
    )
    if len(matching) != 1:
        newest = ", ".join(run_names[:-4:-1]) or "none"
        missing = "no headless run of that name with a finished turn"
        raise UsageError(
            f"--resume {name}: {'ambiguous prefix of several runs' if matching else missing}",
            f"Newest: {newest}.",
        )
    conversation = _read(repo, matching[0])
    if conversation.agent not in CLIENTS:
        raise UsageError(
            f"--resume {conversation.run}: `{conversation.agent}` cannot resume a conversation",
            "Start a new run, and describe in its task what to continue.",
        )
    if not conversation.session:
        raise UsageError(f"--resume {conversation.run}: none of its turns reported a conversation")
    return conversation


def _read(repo: Repo, run: str) -> Conversation:
    run_abs = f"{repo.state_abs}/runs/{run}"
    try:
        fields = parse_json(read_state(f"{run_abs}/{_FILE}") or b"")
        conversation = Conversation(run=run, **{**fields, "turns": tuple(fields["turns"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"--resume {run}: {run_abs}/{_FILE} cannot be read: {error}") from error
    facts = (read_result(run_abs) or {}).get("headless") or {}
    ref = f"{FAILED_REFS}/{run}"
    return conversation._replace(
        passed=facts.get("status") == "passed",
        outcome=facts.get("outcome", ""),
        commit=facts.get("commit", ""),
        work_ref=ref if repo.git.resolve(ref) else "",
    )


def missing_work(repo: Repo, ref: str, *, run_abs: str) -> bytes:
    """Return the patch that brings back the work of a failed run; empty where it is there.

    Raises: GitError where it cannot be restored.
    """
    if not ref:
        return b""
    patch = _patch(repo, ref, run_abs)
    check = ("apply", "--check", "--whitespace=nowarn")
    if not patch or not repo.git.ask(*check, "--reverse", stdin=patch).exit_status:
        return b""
    applied = repo.git.ask(*check, stdin=patch)
    if applied.exit_status:
        reason = applied.stderr.decode("utf-8", "replace").strip().replace("error: ", "")
        raise GitError(
            f"the changes of the earlier run do not apply here:\n  {reason}",
            f"Stash your own changes (git stash), or inspect them: git show {ref}",
        )
    return patch


def _patch(repo: Repo, ref: str, run_abs: str) -> bytes:
    """Return the work of a failed run, without uncommitted changes of before it."""
    path_abs = f"{run_abs}/{PATCH}"
    if os.path.isfile(path_abs):
        with open(path_abs, "rb") as file:
            return file.read()
    base = repo.git.ask("merge-base", "HEAD", ref).stdout.decode().strip()
    if not base:
        hint = f"Switch to its branch, or inspect them: git show {ref}"
        raise GitError("the changes of the earlier run have no commit in common with HEAD", hint)
    return repo.git.out(*AS_PATCH, base, ref)
