"""Compare what a session has changed with the scope of intents.

A shell command names no file, so what it writes is not known beforehand. After each command, and at
an end of work, what the session itself has changed by now, as the memory of files tells it, is
compared. Changes in the scope of any intent that is held in this worktree, and those that a tool of
any session has announced, are allowed.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import ENDINGS
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.features.intents.approved import intents_in_force, is_approved_since
from gitgates.features.intents.facts import (
    IntentLetGoEntry,
    IntentOutsideEntry,
    IntentPointEntry,
    IntentSelectedEntry,
    IntentSentBackEntry,
    IntentWriteEntry,
)
from gitgates.features.intents.gatekeeper import (
    holder_of_call,
    intent_settings,
    join_paths,
    renewed_leases,
    request,
)
from gitgates.features.intents.lease import end, held_by
from gitgates.features.intents.scope import is_in_scope
from gitgates.git.object_store import reading_git
from gitgates.session.journal import fact_of, of_kind, stamp_of
from gitgates.session.reading import is_reading
from gitgates.session.start import first_point
from gitgates.session.writers import observe_others, own_history
from gitgates.store.log import Journal, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.core.record import LazyRecord
    from gitgates.features.intents.intent import Intent
    from gitgates.features.intents.lease import Leases
    from gitgates.session.call import Call
    from gitgates.session.journal import Fact

_MOST_SENT_BACK = 3  # in one prompt
_MOST_RECORDED = 200
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")


def decide_changes(call: Call) -> Verdict:
    """Return the verdict on changes outside the scope: after a shell command, or at an end."""
    payload, leases = call.payload, renewed_leases(call)
    if payload.kind in ("after-tool", "tool-failed"):
        return Verdict() if is_reading(payload.command) else _after_shell(call, leases)
    is_end = payload.kind in ENDINGS and call.ends_work
    verdict = _at_end(call, leases) if is_end else Verdict()
    if payload.kind != "turn-end" and verdict.level < BLOCK and not call.is_dry:
        end(call.repo.shared_state_abs, holder_of_call(call))  # of a sub-agent, or of the session
    return verdict


def _after_shell(call: Call, leases: Leases) -> Verdict:
    scopes = _Scopes(call, leases)
    paths, entries = _find_outside(call, scopes)
    if not paths:
        return Verdict(entries=entries)
    text = _text(call, leases, scopes.file, paths, what="This command has changed")
    return Verdict(BLOCK if call.payload.can.block else WARN, to_agent=text, entries=entries)


def _at_end(call: Call, leases: Leases) -> Verdict:
    """Send an agent back that leaves changes outside the scope, three times at most."""
    agent, scopes = call.payload.agent_id, _Scopes(call, leases)
    paths, entries = _find_outside(call, scopes, since_last=False)
    if agent:  # only what was found after a command of its own, or just now
        agents_paths = _found([*call.entries, *map(fact_of, entries)], agent)
        paths = [path for path in paths if path in agents_paths]
    if not paths:
        return Verdict(entries=entries)
    sent = IntentSentBackEntry(call.prompt, agent)
    times = sum(
        (entry.get("prompt"), entry.get("agent")) == tuple(sent)
        for entry in of_kind(call.entries, IntentSentBackEntry)
    )
    if times < _MOST_SENT_BACK:
        text = _text(call, leases, scopes.file, paths, what="This work has changed")
        text += f"\nYou are sent back for this ({times + 1} of {_MOST_SENT_BACK} times)."
        return Verdict(BLOCK, to_agent=text, entries=(*entries, sent))
    text = "gitgates: the agent was allowed to stop with changes outside its intent: "
    text += join_paths(paths)
    return Verdict(WARN, to_person=text, entries=(*entries, IntentLetGoEntry(agent)))


class _Scopes:
    """What may be changed in a worktree: the scopes of all intents that are held in it."""

    def __init__(self, call: Call, leases: Leases) -> None:
        git_dir_abs, intents = call.repo.git_dir_abs, intents_in_force(call)
        # Those that have just ended, too: their changes are still in the working tree.
        held_ids = [
            lease.intent
            for lease in leases.values()
            if lease.is_recent and lease.git_dir_abs == git_dir_abs
        ]
        self._intents = [intent for intent in intents.active if intent.id in held_ids]
        self._ignore_case = call.repo.ignores_case
        self._all, self.file = intents, intents.file
        is_own = held_by(leases, holder_of_call(call)) is not None
        self.are_judged = intent_settings(call).required or is_own

    def without(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that are in no scope."""
        return [
            path for path in paths if not any(self._has(intent, path) for intent in self._intents)
        ]

    def _has(self, intent: Intent, path: str) -> bool:
        return is_in_scope(self._all, intent, path, ignore_case=self._ignore_case)


def _find_outside(
    call: Call, scopes: _Scopes, *, since_last: bool = True
) -> tuple[list[str], tuple[Any, ...]]:
    """Return what has changed outside any scope and still differs, and the entries of that.

    `since_last`: only what has changed since the last comparison.
    """
    if not scopes.are_judged:
        return [], ()
    let_go_s, last_s = _last(call, IntentLetGoEntry), _last(call, IntentPointEntry)
    start_s = max(let_go_s, _last(call, IntentSelectedEntry))
    try:
        observe_others(call)
        history = own_history(call)
        compared = IntentPointEntry(time.time())  # before the gates of this event change files
        if history is None:
            changed = new = _changed_since_start(call)
        else:
            changed, new = ({*history.changes(since_s)} for since_s in (start_s, last_s))
            # What was found before stays: an agent may have changed what a selection requires.
            changed |= _found(call.entries, since_s=let_go_s) & {*history.changes(let_go_s)}
    except GitgatesError as error:
        call.note(f"changes outside the intent cannot be determined: {error.message}")
        return [], ()
    outside = sorted(scopes.without(changed))
    announced = _announced(call, start_s) if outside else set()
    if scopes.file in outside and is_approved_since(call.repo, last_s):
        announced.add(scopes.file)
    outside = [path for path in outside if path not in announced][:_MOST_RECORDED]
    new_outside = [path for path in outside if path in new]
    entries: tuple[Any, ...] = (compared,)
    if new_outside:
        entries = (compared, IntentOutsideEntry(call.payload.agent_id, new_outside))
    return (new_outside if since_last else outside), entries


def _last(call: Call, kind: type[LazyRecord]) -> float:
    """Return when something last happened that changes are compared since; 0.0: never."""
    agents = ("", call.payload.agent_id)
    return max(
        (
            stamp_of(fact)
            for fact in of_kind(call.entries, kind)
            if (kind is not IntentSelectedEntry or fact.get("begins"))
            and (kind is not IntentLetGoEntry or fact.get("agent") in agents)
        ),
        default=0.0,
    )


def _found(facts: Iterable[Fact], agent: str | None = None, since_s: float = 0.0) -> set[str]:
    """Return the files that were found outside any scope; `agent`: after its own commands."""
    return {
        str(path)
        for fact in of_kind(facts, IntentOutsideEntry)
        if agent in (None, fact.get("agent")) and stamp_of(fact) > since_s
        for path in fact["paths"]
    }


def _changed_since_start(call: Call) -> set[str]:
    """Return the files that differ from those at the session's start, whoever has changed them.

    Raises: GitError.
    """
    before, now = first_point(call)[0].tree, call.point.tree
    return {*reading_git(call.repo).names(*_NAMES, before, now, "--")} if now else set()


def _announced(call: Call, since_s: float) -> set[str]:
    """Return the files that a tool of any session has named since."""
    announced: set[str] = set()
    for path_abs in sessions(call.repo.state_abs):
        try:
            if os.stat(path_abs).st_mtime < since_s:
                continue
            facts = Journal(path_abs).read()
        except OSError:
            continue
        for fact in of_kind(facts, IntentWriteEntry):
            if stamp_of(fact) >= since_s:
                announced.update(map(str, fact.get("paths", ())))
    return announced


def _text(call: Call, leases: Leases, file: str, paths: list[str], *, what: str) -> str:
    lease = held_by(leases, holder_of_call(call))
    scope = f"the scope of {lease.intent}" if lease else "the scope of any intent that is held here"
    lines = [f"gitgates: {what} files outside {scope}: {join_paths(paths)}", "Undo that."]
    others = [path for path in paths if path != file]  # which no scope can have
    if lease and others:
        lines[1] = "Undo that, or ask for the files, and undo it until they are approved:"
        lines.append(request(lease.intent, others[0]))
    if file in paths:
        lines.append(f"{file} defines what agents may work on; only a person may change it.")
    return "\n".join([*lines, "Leave changes by somebody else unchanged, and say so."])
