"""Compare a session's changes with the scope of intents.

What a shell command writes is not known beforehand. So after each command, and at the end of work,
the session's own changes, taken from the memory of files, are compared. Changes in the scope of any
intent held in this worktree are allowed.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import ENDINGS
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers.reading import is_reading
from gitgates.drivers.recorder import observe_if_recorded
from gitgates.drivers.start import first_point
from gitgates.drivers.writers import own_history
from gitgates.features.intents.approved import intents_in_force, is_unapproved
from gitgates.features.intents.facts import (
    IntentEndEntry,
    IntentOutsideEntry,
    IntentSelectedEntry,
)
from gitgates.features.intents.gatekeeper import (
    holder_of_call,
    join_paths,
    renewed_leases,
    request,
)
from gitgates.features.intents.intent import settings_of
from gitgates.features.intents.lease import end, held_by
from gitgates.features.intents.scope import is_in_scope
from gitgates.git.object_store import reading_git
from gitgates.journal.journal import of_kind, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from gitgates.drivers.call import Call
    from gitgates.features.intents.lease import Leases

_MOST_SENT_BACK = 3  # in one prompt
_MOST_RECORDED = 200
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")


def decide_changes(call: Call) -> Verdict:
    """Return the verdict on changes outside the scope: after a shell command, or at an end."""
    payload, leases = call.payload, renewed_leases(call)
    if payload.kind in ("after-tool", "tool-failed"):
        return Verdict() if is_reading(payload.tool.command) else _after_shell(call, leases)
    is_end = payload.kind in ENDINGS and call.ends_work
    verdict = _at_end(call, leases) if is_end else Verdict()
    if payload.kind != "turn-end" and verdict.level < BLOCK and not call.is_dry:
        end(call.repo.shared_state_abs, holder_of_call(call))  # a sub-agent's, or the session's
    return verdict


def _after_shell(call: Call, leases: Leases) -> Verdict:
    _outside, new, entries = _compare(call, leases)
    if not new:
        return Verdict(entries=entries)
    text = _text(call, leases, new, what="This command has changed")
    return Verdict(BLOCK if call.payload.can.block else WARN, to_agent=text, entries=entries)


def _at_end(call: Call, leases: Leases) -> Verdict:
    """Send back an agent that leaves changes outside the scope, at most three times."""
    agent = call.payload.agent.id
    outside, new, entries = _compare(call, leases)
    if agent:  # only what was found after its own commands, or just now
        entries_of_agent = [
            e for e in of_kind(call.entries, IntentOutsideEntry) if e.get("agent") == agent
        ]
        agents_paths = {*new, *(path for entry in entries_of_agent for path in entry["paths"])}
        outside = [path for path in outside if path in agents_paths]
    if not outside:
        return Verdict(entries=entries)
    sent_back = IntentEndEntry(call.prompt, agent)
    ends = of_kind(call.entries, IntentEndEntry)
    times = sum((e.get("prompt"), e.get("agent")) == (call.prompt, agent) for e in ends)
    if times < _MOST_SENT_BACK:
        text = _text(call, leases, outside, what="This work has changed")
        text += f"\nYou are sent back for this ({times + 1} of {_MOST_SENT_BACK} times)."
        return Verdict(BLOCK, to_agent=text, entries=(*entries, sent_back))
    text = "gitgates: the agent was allowed to stop with changes outside its intent: "
    text += join_paths(outside)
    let_go = sent_back._replace(is_let_go=True)
    return Verdict(WARN, to_person=text, entries=(*entries, let_go))


def _compare(call: Call, leases: Leases) -> tuple[list[str], list[str], tuple[Any, ...]]:
    """Return the changed files outside all scopes, the new ones, and the journal entry."""
    is_own = held_by(leases, holder_of_call(call)) is not None
    if not (is_own or settings_of(call.config).required):
        return [], [], ()
    last_s = max(map(stamp_of, of_kind(call.entries, IntentOutsideEntry)), default=0.0)
    try:
        observe_if_recorded(call, always=True)
        history, now = own_history(call), time.time()  # before gates change files
        if history is None:
            changed = new = _changed_since_start(call)
        else:
            changed, new = {*history.changes(_start(call))}, {*history.changes(last_s)}
    except GitgatesError as error:
        call.note(f"changes outside the intent cannot be determined: {error.message}")
        return [], [], ()
    outside = _without_scopes(call, leases, changed)
    new_outside = [path for path in outside if path in new]
    return outside, new_outside, (IntentOutsideEntry(call.payload.agent.id, new_outside, now),)


def _start(call: Call) -> float:
    """Return the time from which changes count: the first selection, or the last allowed stop."""
    agents = ("", call.payload.agent.id)
    ends = of_kind(call.entries, IntentEndEntry)
    times = [stamp_of(e) for e in ends if e.get("is_let_go") and e.get("agent") in agents]
    if not settings_of(call.config).required:
        times += map(stamp_of, of_kind(call.entries, IntentSelectedEntry)[:1])
    return max(times, default=0.0)


def _changed_since_start(call: Call) -> set[str]:
    """Return the files that differ from those at session start, no matter who changed them.

    Raises: GitError.
    """
    before, now = first_point(call)[0].tree, call.point.tree
    return {*reading_git(call.repo).names(*_NAMES, before, now, "--")} if now else set()


def _without_scopes(call: Call, leases: Leases, changed: Collection[str]) -> list[str]:
    """Return the files outside the scope of every intent held in this worktree.

    Intents whose holder has just ended count, too: their changes are still there.
    """
    repo, intents = call.repo, intents_in_force(call)
    held_ids = [
        lease.intent
        for lease in leases.values()
        if lease.is_recent and lease.git_dir_abs == repo.git_dir_abs
    ]
    scopes = [intent for intent in intents.active if intent.id in held_ids]
    outside = [
        path
        for path in sorted(changed)
        if not any(is_in_scope(intents, i, path, ignore_case=repo.ignores_case) for i in scopes)
    ]
    if intents.file in outside and not is_unapproved(repo, call.config, intents):
        outside.remove(intents.file)  # a person has approved its current text
    return outside[:_MOST_RECORDED]


def _text(call: Call, leases: Leases, paths: Sequence[str], *, what: str) -> str:
    lease, file = held_by(leases, holder_of_call(call)), settings_of(call.config).file
    scope = f"the scope of {lease.intent}" if lease else "the scope of any intent held here"
    lines = [f"gitgates: {what} files outside {scope}: {join_paths(paths)}", "Undo that."]
    others = [path for path in paths if path != file]  # no scope can contain the file
    if lease and others:
        lines[1] = "Undo that. If you need these files, request them first, and wait for approval:"
        lines.append(request(lease.intent, others[0]))
    if file in paths:
        lines.append(f"{file} defines what agents may work on; only a person may change it.")
    return "\n".join([*lines, "Leave changes by others as they are, and say so."])
