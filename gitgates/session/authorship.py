"""Authorship: record which files the session's own tools wrote, as far as that is known.

As long as it used none that may write any file, whatever else has changed meanwhile, somebody else
has changed: the person, or another session. A shell command may have written anything while it ran,
unless it is known to read or to test: there is a snapshot before and after it. A tool that is not
known may have written anything since the snapshot before it.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import UNCHANGING
from gitgates.core.lifecycle import ENDINGS, HOOK_OF, kind_of
from gitgates.core.types import BLOCK
from gitgates.features.review.config import asks_for_review, knows_all_writers, review_needs
from gitgates.features.review.evidence import EVIDENCE, stamp_of
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.session.start import record_base
from gitgates.store.files import length_of, read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from gitgates.core.agent_types import Payload, ToolCall
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Verdict
    from gitgates.session.call import Call
    from gitgates.session.state import Fact

_LONGEST_S = 2.0  # that a transcript is read for
_POINTS = ("snapshot", "rest")
# Facts about a tool call, by its key.
_REFUSED, _HARMLESS, _BACKGROUND = "tool-refused", "tool-harmless", "tool-background"
_TOOL_HOOKS = (HOOK_OF["before-tool"], HOOK_OF["after-tool"])
# Events that come while the agent has nothing to do.
_BETWEEN: tuple[EventKind, ...] = (
    *("prompt", "prompt-expansion"),
    *("session-start", "session-end", "before-compact", "after-compact"),
)
_OF_AGENTS: tuple[EventKind, ...] = ("subagent-start", "subagent-end")


needs = review_needs
always = True  # a command that was refused has written nothing


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record a snapshot at the end of a turn, and the session's own files in it.

    Before gates run, which may take minutes: what is written meanwhile belongs to the next turn.
    """
    payload = call.payload
    if payload.tool_kind == "shell":
        _record_command(call, so_far)
    elif so_far.final:
        return so_far
    elif payload.kind == "prompt":
        if call.session.base and not payload.automatic:
            call.snapshot_fields["own"] = own_files_now(call)
    elif asks_for_review(call) and (call.ends_work or payload.mode == "plan"):
        record_now(call)
    return so_far


def _record_command(call: Call, so_far: Verdict) -> None:
    """Record a snapshot before and after a shell command that may write."""
    if so_far.level >= BLOCK:
        call.record({"what": _REFUSED, "key": call.key})
    elif call.session.base and not _leaves_files(call):
        record_now(call)
        if call.kind == "before-tool" and _goes_on(call.payload):
            call.record({"what": _BACKGROUND, "key": call.key})


def _may_run_on(call: Call) -> bool:
    """Return whether a shell command may go on while the agent does something else.

    Which ones do, the end of a turn tells.
    """
    if call.kind in ENDINGS:
        return _is_shell_running(call)
    last = _last_point(call.entries)
    since = call.entries[max(last, 0) :]
    return any(one.get("running") or one.get("what") == _BACKGROUND for one in since)


def _goes_on(payload: Payload) -> bool:
    """Return whether a command is started in the background, by the tool or by the shell."""
    plain = payload.command.replace("&&", "").replace(">&", "").replace("&>", "")
    return payload.tool_input.get("run_in_background") is True or "&" in plain


def _leaves_files(call: Call) -> bool:
    """Return whether a command is known to read or to test; note it before it runs."""
    from gitgates.session.command_effects import leaves_files  # no other tool pays for it

    before = _before(call.payload)
    known = [one.get("what") for one in call.entries if before and one.get("key") == before]
    if known and call.kind != "before-tool":
        return _HARMLESS in known
    is_harmless = leaves_files(call.payload.command)
    if is_harmless:
        call.record({"what": _HARMLESS, "key": call.key})
    return is_harmless


def _before(payload: Payload) -> str:
    """Return the key of the event before a tool call; empty where calls have no ids."""
    use = payload.tool_use_id
    return f"{HOOK_OF['before-tool']}:{use}" if use else ""


def record_now(call: Call) -> None:
    """Record a snapshot, and the session's own files in it.

    Raises: GitError where git cannot be asked.
    """
    record_base(call)
    if not call.snapshot.tree:
        return
    own = own_files_now(call)
    writes: list[list[str]] = []
    if own:
        from gitgates.session.edited_lines import told_apart  # where an agent has edited files

        own, writes = told_apart(call, own, since=call.entries[_last_point(call.entries) :])
    length, running = length_of(call.payload.transcript_abs), _may_run_on(call)
    fields = {"tree": call.snapshot.tree, "head": call.snapshot.head, "own": own}
    entry: Fact = {"what": "snapshot", **fields, "transcript": length, "running": running}
    call.record(entry, *([{"what": "others-wrote", "writes": writes}] if writes else []))


def idle_entry(call: Call) -> tuple[Fact, ...]:
    """Return the entry that the agent is idle from now on: later changes are others'.

    A server that it has left running is no work of its own.
    """
    is_end = call.payload.kind == "turn-end"  # a sub-agent's is none of the others' work
    if not is_end or not call.snapshot.tree or call.agents_at_work:
        return ()
    length = length_of(call.payload.transcript_abs)
    return ({"what": "rest", "tree": call.snapshot.tree, "transcript": length},)


def own_files_now(call: Call) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None if they may have written any file.
    """
    facts, at = call.entries, _last_point(call.entries)
    if at < 0:
        return None
    point = facts[at]
    elsewhere = [one for one in call.entries_elsewhere if stamp_of(one) > stamp_of(point)]
    since = [*facts[at + 1 :], *elsewhere]
    if _is_idle(facts[:at], point, since):
        return []
    knows_tools = knows_all_writers(call.config)  # events tell of each tool that writes
    has_agents = any(task.kind == "subagent" for task in call.payload.background)
    # What a sub-agent does is in no transcript of the session.
    may_be_unseen = not knows_tools and (bool(call.payload.agent_id) or has_agents)
    if may_be_unseen or _is_shell_running(call) or point.get("running"):
        return None
    events = [fact for fact in since if fact.get("event") in _TOOL_HOOKS]
    if call.kind == "before-tool":  # what is about to run has not run yet
        events = [fact for fact in events if fact.get("key") != call.key]
    events = [*_running(facts[:at]), *events]
    # Not every client tells of it.
    tells = knows_tools and any(fact.get("agent") for fact in events)
    quiet = (*UNCHANGING, "writes", *(("agent",) if tells else ()))
    marks = {fact.get("key") for fact in facts if fact.get("what") in (_REFUSED, _HARMLESS)}
    judged = [fact for fact in events if not _tool_keys(fact) & marks]
    if any(fact.get("tool_kind") not in quiet and fact.get("shows") is not True for fact in judged):
        return None
    own = {str(fact["path"]) for fact in since if fact.get("what") == "wrote" and "path" in fact}
    start, size = point.get("transcript"), length_of(call.payload.transcript_abs)
    if not isinstance(start, int) or size < max(start, 0):
        heard = any(fact.get("event") in _TOOL_HOOKS for fact in facts)
        return sorted(own) if knows_tools and heard else None
    # What a tool has written is noted after it; not every configuration asks for that event.
    keys = (
        fact.get("key")
        for fact in facts
        if fact.get("event") in _TOOL_HOOKS
        and (fact.get("tool_kind") != "writes" or _kind(fact) == "after-tool")
    )
    heard_of = {str(key).partition(":")[2] for key in keys}
    written = _written(call, start, quiet, heard_of)
    return None if written is None else sorted(own | written)


def _tool_keys(fact: Fact) -> set[str]:
    """Return the key of an event of a tool, and that of the event before the same call."""
    _event, _colon, use = str(fact.get("key")).partition(":")
    return {str(fact.get("key")), f"{HOOK_OF['before-tool']}:{use}"}


def _running(before: list[Fact]) -> list[Fact]:
    """Return the events of calls that had begun, and not ended, at a snapshot.

    Of one agent, a call has ended where its next event is about another one.
    """
    found: dict[str, Fact] = {}
    for fact in before:
        if fact.get("what") == "event" and _kind(fact) != "prompt":
            found.pop(str(fact.get("agent")), None)
            if _kind(fact) == "before-tool":
                found[str(fact.get("agent"))] = fact
    return list(found.values())


def _is_shell_running(call: Call) -> bool:
    """Return whether something runs in the background that may write any file."""
    tasks = call.payload.background
    return any(one.status == "running" and one.kind != "subagent" for one in tasks)


def _last_point(facts: list[Fact]) -> int:
    """Return the index of the last entry with a snapshot; -1 if there is none."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].get("what") in _POINTS and facts[at].get("tree"):
            return at
    return -1


def _is_idle(before: list[Fact], point: Fact, since: list[Fact]) -> bool:
    """Return whether the agent was idle after a snapshot.

    So it is between a stop that was let go and the next prompt, and before the first prompt.
    """
    if point["what"] != "rest" and _kind(_last_event(before)) != "session-start":
        return False
    return not any(map(_is_work, since))


def _last_event(facts: list[Fact]) -> Fact:
    return next((fact for fact in reversed(facts) if fact.get("what") == "event"), {})


def _is_work(fact: Fact) -> bool:
    if fact.get("what") != "event":
        return fact.get("what") == "snapshot"  # a prompt begins with one
    if _kind(fact) in _OF_AGENTS:
        return bool(fact.get("agent_type"))  # what has none is the summary of a conversation
    return _kind(fact) not in _BETWEEN


def _kind(fact: Fact) -> EventKind:
    return kind_of(str(fact.get("event")))


def changed_by_others(call: Call) -> tuple[str, ...]:
    """Return the files that somebody else has changed since the session began, as far as is known.

    Raises: GitError if a tree is not there.
    """
    from gitgates.git.object_store import reading_git  # only where gates failed
    from gitgates.git.paths import tree_paths

    evidence, own = call.state(EVIDENCE), own_files_now(call)
    spans = [(span.before, span.after, span.own) for span in evidence.quiet]
    if evidence.point and own is not None:
        spans.append((evidence.point.tree, call.point.tree, tuple(own)))
    git = reading_git(call.repo)
    found: set[str] = set()
    for before, after, written in spans:
        if before != after != "":
            changed, gone = tree_paths(git, before, after)
            found.update({*changed, *gone}.difference(written))
    return tuple(sorted(found))


def _written(
    call: Call, start: int, quiet: Iterable[str], heard_of: Container[str]
) -> set[str] | None:
    """Return the files that tools wrote since an offset of the transcript; None for any file.

    `heard_of`: ids of calls that events have told of, which are judged by these.
    """
    from gitgates.session.shell_commands import only_shows  # many sessions have no transcript

    found: set[str] = set()
    real_abs = os.path.realpath(call.repo.root_abs)
    host = call.payload.host or DEFAULT_AGENT
    calls = calls_since(call.payload.transcript_abs, start, host)
    if calls is None:
        return None
    for one in calls:
        if one.tool_use_id and one.tool_use_id in heard_of:
            continue
        if one.kind == "shell" and only_shows(one.command):
            continue
        if one.kind not in quiet or (one.kind == "writes" and not os.path.isabs(one.path)):
            return None
        if one.kind == "writes":
            found.add(os.path.relpath(os.path.realpath(one.path), real_abs))
    return found


def calls_since(path_abs: str, start: int, agent: str = DEFAULT_AGENT) -> list[ToolCall] | None:
    """Return each call of a tool after `start` bytes of a transcript; None if that is too long."""
    host = agent_host(agent)
    until = time.monotonic() + _LONGEST_S
    raw = read_tail(path_abs, start) or b""
    if len(raw) < length_of(path_abs) - max(start, 0):
        return None
    found: list[ToolCall] = []
    for line in raw.split(b"\n"):
        if time.monotonic() > until:
            return None
        found += host.calls_in(line)
    return found
