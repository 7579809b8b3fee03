"""Find the files that the session's own tools wrote, and those that somebody else changed.

As long as it used none that may write any file, whatever else has changed meanwhile, somebody else
has changed: the person, or another session. The journal has the tools that events have reported;
others are in the transcript.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import UNCHANGING
from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import HOOK_OF, kind_of
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.session.facts import (
    TIMELINE,
    EventEntry,
    RestEntry,
    SnapshotEntry,
    ToolRefusedEntry,
    WroteEntry,
)
from gitgates.session.journal import is_a, of_kind, stamp_of
from gitgates.session.needs import are_all_writers_heard
from gitgates.store.files import length_of, read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from gitgates.core.agent_types import ToolCall
    from gitgates.core.lifecycle import EventKind
    from gitgates.session.call import Call
    from gitgates.session.journal import Fact

_LONGEST_S = 2.0  # that a transcript is read for
_TOOL_HOOKS = (HOOK_OF["before-tool"], HOOK_OF["after-tool"])
# Events that come while the agent has nothing to do.
_BETWEEN: tuple[EventKind, ...] = (
    *("prompt", "prompt-expansion"),
    *("session-start", "session-end", "before-compact", "after-compact"),
)
_OF_AGENTS: tuple[EventKind, ...] = ("subagent-start", "subagent-end")


def own_files_now(call: Call) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None if they may have written any file.
    """
    facts, at = call.entries, find_last_snapshot(call.entries)
    if at < 0:
        return None
    point = facts[at]
    elsewhere = [fact for fact in call.entries_elsewhere if stamp_of(fact) > stamp_of(point)]
    since = [*facts[at + 1 :], *elsewhere]
    if _is_idle(facts[:at], point, since):
        return []
    knows_tools = are_all_writers_heard(call)  # there is an event for each tool that writes
    has_agents = any(task.kind == "subagent" for task in call.payload.background)
    # What a sub-agent does is in no transcript of the session.
    may_be_unseen = not knows_tools and (bool(call.payload.agent_id) or has_agents)
    if may_be_unseen or is_shell_running(call) or point.get("running"):
        return None
    events = [fact for fact in since if fact.get("event") in _TOOL_HOOKS]
    if call.kind == "before-tool":  # what is about to run has not run yet
        events = [fact for fact in events if fact.get("key") != call.key]
    events = [*_running(facts[:at]), *events]
    # Not every client reports it.
    tells = knows_tools and any(fact.get("agent") for fact in events)
    quiet = (*UNCHANGING, "writes", *(("agent",) if tells else ()))
    marks = {fact.get("key") for fact in of_kind(facts, ToolRefusedEntry)}
    judged = [fact for fact in events if not _tool_keys(fact) & marks]
    if any(fact.get("tool_kind") not in quiet and fact.get("shows") is not True for fact in judged):
        return None
    recorded = {str(fact["path"]) for fact in of_kind(since, WroteEntry) if "path" in fact}
    start, size = point.get("transcript"), length_of(call.payload.transcript_abs)
    if not isinstance(start, int) or size < max(start, 0):
        has_tool_events = any(fact.get("event") in _TOOL_HOOKS for fact in facts)
        return sorted(recorded) if knows_tools and has_tool_events else None
    # What a tool has written is noted after it; not every configuration asks for that event.
    keys = (
        fact.get("key")
        for fact in facts
        if fact.get("event") in _TOOL_HOOKS
        and (fact.get("tool_kind") != "writes" or _kind(fact) == "after-tool")
    )
    heard_of = {str(key).partition(":")[2] for key in keys}
    written = _written(call, start, quiet, heard_of)
    return None if written is None else sorted(recorded | written)


def _tool_keys(fact: Fact) -> set[str]:
    """Return the key of an event of a tool, and that of the event before the same call."""
    _event, _colon, use = str(fact.get("key")).partition(":")
    return {str(fact.get("key")), f"{HOOK_OF['before-tool']}:{use}"}


def _running(before: list[Fact]) -> list[Fact]:
    """Return the events of calls that had begun, and not ended, at a snapshot.

    Of one agent, a call has ended where its next event is about another one.
    """
    running: dict[str, Fact] = {}
    for fact in of_kind(before, EventEntry):
        if _kind(fact) != "prompt":
            running.pop(str(fact.get("agent")), None)
            if _kind(fact) == "before-tool":
                running[str(fact.get("agent"))] = fact
    return list(running.values())


def is_shell_running(call: Call) -> bool:
    """Return whether something runs in the background that may write any file."""
    tasks = call.payload.background
    return any(task.status == "running" and task.kind != "subagent" for task in tasks)


def find_last_snapshot(facts: list[Fact]) -> int:
    """Return the index of the last entry with a snapshot; -1 if there is none."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].get("tree") and is_a(facts[at], SnapshotEntry, RestEntry):
            return at
    return -1


def _is_idle(before: list[Fact], point: Fact, since: list[Fact]) -> bool:
    """Return whether the agent was idle after a snapshot.

    So it is between a stop that was let go and the next prompt, and before the first prompt.
    """
    if not is_a(point, RestEntry) and _kind(_last_event(before)) != "session-start":
        return False
    return not any(map(_is_work, since))


def _last_event(facts: list[Fact]) -> Fact:
    return next((fact for fact in reversed(facts) if is_a(fact, EventEntry)), {})


def _is_work(fact: Fact) -> bool:
    if not is_a(fact, EventEntry):
        return is_a(fact, SnapshotEntry)  # a prompt begins with one
    if _kind(fact) in _OF_AGENTS:
        return bool(fact.get("agent_type"))  # what has none is the summary of a conversation
    return _kind(fact) not in _BETWEEN


def _kind(fact: Fact) -> EventKind:
    return kind_of(str(fact.get("event")))


def observe_others(call: Call) -> None:
    """Record, before gates run, what somebody else has changed since the last tool call."""
    from gitgates.session.recorder import observe  # only where gates run

    if _is_recorded(call):
        try:
            observe(call, always=True)
        except GitgatesError as error:
            call.say(str(error))


def _is_recorded(call: Call) -> bool:
    """Return whether there are points around the tool calls of a session."""
    is_heard = any(fact.get("event") in _TOOL_HOOKS for fact in call.entries)
    return is_heard and os.path.exists(f"{call.repo.state_abs}/recorder.calls.lock")


def changed_by_others(call: Call) -> tuple[str, ...]:
    """Return the files that only others have changed since the session began, if that is known.

    Raises: GitError, StateError.
    """
    from gitgates.files.changes import changed_by  # only where gates failed
    from gitgates.files.points import PERSON, SESSION, points

    base, session = call.state(TIMELINE).base, call.payload.session
    if not (base and _is_recorded(call)):
        return ()
    every = points(call.repo)
    first = next((at for at, point in enumerate(every) if point.time_s >= base.stamp), len(every))
    since = every[max(first - 1, 0) :]
    own = changed_by(call.repo, since, lambda who: (who.kind, who.name) == (SESSION, session))
    theirs = changed_by(
        *(call.repo, since),
        lambda who: who.kind == PERSON or (who.kind == SESSION and who.name != session),
    )
    return tuple(sorted(theirs.keys() - own.keys()))


def _written(
    call: Call, start: int, quiet: Iterable[str], heard_of: Container[str]
) -> set[str] | None:
    """Return the files that tools wrote since an offset of the transcript; None for any file.

    `heard_of`: ids of calls that events have reported, which are judged by these.
    """
    from gitgates.session.reading import is_reading  # many sessions have no transcript

    paths: set[str] = set()
    real_abs = os.path.realpath(call.repo.root_abs)
    host = call.payload.host or DEFAULT_AGENT
    calls = calls_since(call.payload.transcript_abs, start, host)
    if calls is None:
        return None
    for tool_call in calls:
        if tool_call.tool_use_id and tool_call.tool_use_id in heard_of:
            continue
        if tool_call.kind == "shell" and is_reading(tool_call.command):
            continue
        if tool_call.kind not in quiet or (
            tool_call.kind == "writes" and not os.path.isabs(tool_call.path)
        ):
            return None
        if tool_call.kind == "writes":
            paths.add(os.path.relpath(os.path.realpath(tool_call.path), real_abs))
    return paths


def calls_since(path_abs: str, start: int, agent: str = DEFAULT_AGENT) -> list[ToolCall] | None:
    """Return each call of a tool after `start` bytes of a transcript; None if that is too long."""
    host = agent_host(agent)
    until = time.monotonic() + _LONGEST_S
    raw = read_tail(path_abs, start) or b""
    if len(raw) < length_of(path_abs) - max(start, 0):
        return None
    calls: list[ToolCall] = []
    for line in raw.split(b"\n"):
        if time.monotonic() > until:
            return None
        calls += host.calls_in(line)
    return calls
