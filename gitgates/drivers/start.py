"""Record events, prompts and first snapshots in a session's journal, for all other policies.

The first snapshot is the content when the session began, or a substitute for it.
"""

from __future__ import annotations

import os
import zlib

from gitgates.core.agent_types import UNCHANGING, WorktreeState
from gitgates.core.lifecycle import ENDINGS, HOOK_OF, RETRIED
from gitgates.core.types import BLOCK, STOP, Verdict
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.hosts.capabilities import cut
from gitgates.journal.entries import (
    TIMELINE,
    DeferredEntry,
    EventEntry,
    PromptEntry,
    ScheduledEntry,
    SnapshotEntry,
    StopEntry,
    WarningEntry,
)
from gitgates.journal.journal import of_kind, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import Payload
    from gitgates.drivers.call import Call

_LONGEST_PROMPT = 65536  # bytes of a prompt that are kept
_UNKNOWN = "the start of this session is not recorded here"
_AROUND_TOOLS = ("before-tool", "after-tool", "tool-failed")
_NOW = "HEAD, so all differences from HEAD count as its work"

always = True  # if a host has no event for a session's start, the first tool may be refused


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record the first snapshot, and that of each prompt; stop after a sub-agent's STOP.

    In a large repository, that may take long; the request has been recorded before.
    """
    payload, session = call.payload, call.session
    if payload.kind in _AROUND_TOOLS and so_far.level < BLOCK:
        _observe(call)
    if call.is_deferred:
        call.record(DeferredEntry(call.prompt))
    is_prompt = payload.kind == "prompt" and not payload.prompt.automatic
    # If it is an end, or after a tool, work is done already, and is measured otherwise.
    begins = payload.kind not in (*RETRIED, "after-tool", "tool-failed")
    is_first = not (session.beginning.tree or session.beginning.why_not) and begins
    if is_prompt or (is_first and payload.kind != "prompt"):
        _record_snapshot(call)
    if session.watched is None and not call.config_error:
        from gitgates.drivers.tampering import begin  # once in a session

        begin(call)
    if not session.rules and not call.config_error:
        from gitgates.drivers.rules import begin as begin_rules  # once in a session

        begin_rules(call)
    is_asked = not (so_far.final or payload.agent.id or call.config_error)
    if session.stop and is_asked:
        return _end_main_thread(call, so_far)
    return so_far


def _observe(call: Call) -> None:
    """Record who made the changes up to now, if anybody asks for that."""
    payload, open_abs = call.payload, f"{call.repo.state_abs}/recorder.calls"
    if payload.tool.kind in UNCHANGING and not os.path.exists(open_abs):
        return
    from gitgates.drivers.recorder import observe_if_recorded  # many tools only read

    observe_if_recorded(call)


def _record_snapshot(call: Call) -> None:
    """Record a tree, or why there is none; the next event tries again if time ran out."""
    from gitgates.drivers import recorder  # once for each prompt

    now = call.snapshot
    if now.tree:
        call.record(SnapshotEntry(tree=now.tree, head=now.head, not_seen=now.doubts))
    elif not recorder.is_late(call):
        call.record(SnapshotEntry(tree="", why=now.unseen[0]))


def _end_main_thread(call: Call, so_far: Verdict) -> Verdict:
    """Stop the main thread after a sub-agent's STOP, if this event can.

    A new prompt of the person is not stopped: they have seen the message, and continue.
    """
    payload, why = call.payload, call.session.stop
    if payload.kind == "prompt" and not payload.prompt.automatic:
        call.record(StopEntry(""), WarningEntry(hook=HOOK_OF["subagent-end"], text=why))
        return so_far
    if not payload.can.stop:
        return so_far
    # It may end with a report, unless it waits for the sub-agent just now.
    if payload.kind in ("after-tool", "tool-failed") and payload.tool.kind != "agent":
        return so_far
    return Verdict(STOP, why, why, entries=(StopEntry(""),), final=True)


def is_scheduled(call: Call) -> bool:
    """Return whether the agent itself has scheduled the text of a prompt.

    The client submits such a prompt by itself, and need not say so. A person who types the same
    text is taken for the client.
    """
    payload = call.payload
    if payload.kind != "prompt" or payload.prompt.automatic:
        return False
    facts = (*call.entries, *call.entries_elsewhere)
    scheduled = of_kind(facts, ScheduledEntry)
    marks = {mark for entry in scheduled for mark in entry.get("prompts", ())}
    text = _bytes_of(payload.prompt.text)
    if not call.host.PROTOCOL.returns_reason:
        return _mark_of(text) in marks
    # If others have blocked as well, all reasons are one prompt.
    longest = [int(size) for mark in marks if (size := mark.partition(":")[0]).isdecimal()]
    parts = (part for most in longest if most for part in (text[:most], text[-most:]))
    return any(_mark_of(part) in marks for part in parts)


def _bytes_of(prompt: str) -> bytes:
    return prompt.strip().encode("utf-8", "replace")


def _mark_of(text: bytes) -> str:
    """Return a digest of the text of a prompt."""
    return f"{len(text)}:{zlib.crc32(text):08x}"


def entries_of(call: Call) -> list[Any]:
    """Return the journal entries of an event and its prompt."""
    payload = call.payload
    event = EventEntry(
        event=payload.event,
        key=call.key,
        prompt_id=payload.prompt.id,
        agent=payload.agent.id,
        agent_type=payload.agent.type,
        tool=payload.tool.name,
        tool_kind=payload.tool.kind,
        host="" if payload.host == DEFAULT_AGENT else payload.host,
    )
    entries: list[Any] = [PromptEntry("", ""), event] if _begins_turn(call) else [event]
    if payload.prompt.scheduled:
        entries.append(
            ScheduledEntry([_mark_of(_bytes_of(prompt)) for prompt in payload.prompt.scheduled])
        )
    if payload.kind == "prompt":
        entries.append(_prompt(payload))
    return entries


def _begins_turn(call: Call) -> bool:
    """Return whether an event comes after a turn's end, in a host without events for prompts.

    A blocked end of a turn does not count, and one that follows another may be a repetition.
    """
    payload, last = call.payload, call.session.last
    if payload.kind in ENDINGS or call.host.PROTOCOL.tells_prompts:
        return False
    if payload.kind == "prompt" or not last.startswith(f"{HOOK_OF['turn-end']}:"):
        return False
    rounds = call.session.rounds
    return not (rounds and rounds[-1].key == last and rounds[-1].outcome == "blocked")


def with_session_option(call: Call, verdict: Verdict) -> Verdict:
    """Return a block that names the session if commands could not identify it."""
    agent = AGENTS.get(call.host.NAME)
    if verdict.level < BLOCK or (agent and agent.session) or call.host.PROTOCOL.answers.changes:
        return verdict
    from gitgates.store.log import sessions  # few hosts come here

    if len(sessions(call.repo.state_abs)) < 2:  # noqa: PLR2004 - this one and another
        return verdict
    option = f"--session {call.payload.session}"
    hint = f"There were other sessions here: add `{option}` to the gitgates commands that you run."
    return verdict._replace(to_agent=f"{verdict.to_agent}\n\n{hint}")


def returned_reason(call: Call, verdict: Verdict) -> tuple[ScheduledEntry, ...]:
    """Return the entry for a block whose reason a host submits as a prompt."""
    payload = call.payload
    if verdict.level < BLOCK or payload.kind not in ENDINGS or not verdict.to_agent:
        return ()
    if not call.host.PROTOCOL.returns_reason:
        return ()
    reason = _bytes_of(cut(verdict.to_agent))  # as the client gets it
    return (ScheduledEntry([_mark_of(reason)]),)


def _prompt(payload: Payload) -> PromptEntry:
    prompt = payload.prompt
    if prompt.automatic:
        return PromptEntry(prompt.id, "", automatic=True)
    text = prompt.text.encode("utf-8", "replace")[:_LONGEST_PROMPT].decode("utf-8", "ignore")
    return PromptEntry(prompt.id, text, payload.transcript_abs)


def first_point(call: Call) -> tuple[WorktreeState, str]:
    """Return the session's first point, and a note if it is a substitute.

    If its start was not recorded: the commit checked out when it began elsewhere, else the current
    content. The log of HEAD counts in seconds: changes of the same second belong to the session.

    Raises: GitError if git cannot be asked.
    """
    timeline, git = call.state(TIMELINE), call.repo.git
    if timeline.base:
        return timeline.base, timeline.base_note
    began = min((stamp_of(facts[0]) for facts in call.elsewhere.values()), default=0.0)
    names = [(f"HEAD@{{{int(began) - 1} +0000}}", "the commit checked out when it began")]
    for name, description in [*(names if began else []), ("HEAD", _NOW)]:
        resolved = git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if not resolved.exit_status:
            head = resolved.stdout.decode().split()[-1]
            tree = git.lines("rev-parse", "--verify", f"{head}^{{tree}}")[0]
            point = WorktreeState(tree=tree, head=head, stamp=began)
            return point, f"{_UNKNOWN}: compared with {description}"
    empty = git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    return WorktreeState(tree=empty, stamp=began), f"{_UNKNOWN}: everything counts as its work"


def record_base(call: Call) -> None:
    """Record a substitute for the first snapshot if the start of the session was missed.

    Otherwise the next event would take one, and what is there by then would be nobody's work.

    Raises: GitError if git cannot be asked; OSError if the journal cannot be written.
    """
    if call.session.beginning.tree:
        return
    point, note = first_point(call)
    # In a worktree that the session came to later, it began when it did elsewhere.
    snapshot = SnapshotEntry(
        tree=point.tree,
        head=point.head,
        why=call.session.beginning.why_not or ("" if point.stamp else note),
        note=note,
        not_seen=call.snapshot.doubts,
        t=point.stamp,
    )
    call.record(snapshot)
