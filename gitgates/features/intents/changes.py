"""Compare what has actually changed in the working tree with the scope of intents.

A shell command names no file, so what it writes is not known beforehand. After each command, and at
an end of work, the working tree is compared with its content at the last comparison. Changes in the
scope of any intent that is held in this worktree, those that a tool of any session has announced,
and those that others have committed are allowed. The rest is attributed to the agent.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import Point
from gitgates.core.errors import GitError
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
from gitgates.git.authorship import Span, trees
from gitgates.git.object_store import reading_git
from gitgates.session.facts import GatesWroteEntry, SnapshotEntry
from gitgates.session.journal import fact_of, is_a, of_kind, stamp_of
from gitgates.session.reading import is_reading
from gitgates.session.start import first_point
from gitgates.store.log import Journal, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

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
    entries = _find_outside(call, scopes)[1]
    facts = [*call.entries, *map(fact_of, entries)]
    paths = scopes.without(_differing(call, _recorded_outside(facts, agent)))
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


def _find_outside(call: Call, scopes: _Scopes) -> tuple[list[str], tuple[Any, ...]]:
    """Return what has changed outside any scope since the last comparison, and its entries.

    A file recorded earlier that is now as it was before that change was undone.
    """
    compared_s = time.time()  # the entry is written only after gates, which may change files
    now = call.point
    if not now.tree:
        return [], ()  # the missing snapshot was already reported
    point = IntentPointEntry(now.tree, now.head, compared_s)
    start = _last_point(call)
    if start.tree == now.tree or not scopes.are_judged:
        return [], (point,)
    try:
        before, after = trees(Span(call.repo, start, now, tuple(call.elsewhere)))
        outside = scopes.without(_changed(call, before, after))
        if not outside:
            return [], (point,)
        recorded = _recorded_outside(call.entries)
        again = set(
            _differing(call, {path: recorded[path] for path in outside if path in recorded})
        )
    except GitError as error:
        call.note(f"changes outside the intent cannot be determined: {error.message}")
        return [], (point,)
    announced = _announced(call, start.stamp)
    if scopes.file in outside and is_approved_since(call.repo, start.stamp):
        announced.add(scopes.file)
    new = [path for path in outside if path not in recorded and path not in announced][
        :_MOST_RECORDED
    ]
    outside_entry = IntentOutsideEntry(call.payload.agent_id, before, new)
    return sorted({*new, *again}), (point, outside_entry) if new else (point,)


def _last_point(call: Call) -> Point:
    """Return the content at the last comparison, or when the prompt was submitted."""
    for fact in reversed(
        of_kind(call.entries, SnapshotEntry, IntentPointEntry, IntentSelectedEntry)
    ):
        # Other snapshots are taken at an end of work, whose changes were not compared yet.
        is_start = "transcript" in fact and "running" not in fact
        if (is_start or not is_a(fact, SnapshotEntry)) and fact.get("tree"):
            head = str(fact.get("head", ""))
            return Point(tree=str(fact["tree"]), head=head, stamp=stamp_of(fact))
    return first_point(call)[0]


def _announced(call: Call, since_s: float) -> set[str]:
    """Return the files that a tool of any session has named since, or that gates have written."""
    announced: set[str] = set()
    for path_abs in sessions(call.repo.state_abs):
        try:
            if os.stat(path_abs).st_mtime < since_s:
                continue
            facts = Journal(path_abs).read()
        except OSError:
            continue
        for fact in of_kind(facts, IntentWriteEntry, GatesWroteEntry):
            if stamp_of(fact) >= since_s:
                announced.update(map(str, fact.get("paths", ())))
    return announced


def _recorded_outside(facts: Iterable[Fact], agent: str = "") -> dict[str, str]:
    """Return the files recorded as changed outside any scope, each with the tree before that.

    `agent`: only those of this sub-agent; empty: all. Those that it was let go with are left out.
    """
    tree_by_path: dict[str, str] = {}
    for fact in facts:
        is_meant = agent in ("", fact.get("agent"))
        if is_a(fact, IntentLetGoEntry) and fact.get("agent") in ("", agent):
            tree_by_path.clear()
        elif is_meant and is_a(fact, IntentOutsideEntry):
            tree_by_path = {
                **dict.fromkeys(map(str, fact["paths"]), str(fact["tree"])),
                **tree_by_path,
            }
    return tree_by_path


def _differing(call: Call, tree_by_path: Mapping[str, str]) -> list[str]:
    """Return the files that differ from their content in their tree, sorted.

    Raises: GitError where one of the trees does not exist.
    """
    differ: list[str] = []
    for tree in dict.fromkeys(tree_by_path.values()):
        paths = [path for path, path_tree in tree_by_path.items() if path_tree == tree]
        differ += _changed(call, tree, call.point.tree, *paths)
    return sorted(differ)


def _changed(call: Call, before: str, after: str, *paths: str) -> list[str]:
    """Return the files, links and submodules that differ between two trees.

    Raises: GitError where one of them does not exist.
    """
    return reading_git(call.repo).names(*_NAMES, before, after, "--", *paths)


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
