"""Whose work a change is: which files the session's own tools wrote, as far as that is known.

As long as it used none that may write any file, whatever else has changed meanwhile, somebody else
has changed: the person, or another session. A shell command, or a tool that is not known, may have
written anything.
"""

from __future__ import annotations

import os
import time

from gitgates.agent_types import UNCHANGING
from gitgates.lifecycle import HOOK_OF
from gitgates.policies.beginning import record_base, stamp_of
from gitgates.policies.evidence import EVIDENCE, Quiet
from gitgates.policies.review_config import asks_for_review, hears_all, review_needs
from gitgates.policies.reviewer_commands import only_shows
from gitgates.policies.transcript import TranscriptUnreadable, calls_since
from gitgates.store.files import length_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gitgates.agent_types import Point
    from gitgates.policies.call import Call
    from gitgates.policies.evidence import Evidence
    from gitgates.policies.session import Fact
    from gitgates.policy import Need
    from gitgates.types import Config, Verdict

_POINTS = ("snapshot", "rest")
_TOOL_HOOKS = (HOOK_OF["before-tool"], HOOK_OF["after-tool"])


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events that tell whose work a change is: those that reviews need."""
    return review_needs(config)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record what is there at the end of a turn, and which of it is the session's own.

    Before gates run, which may take minutes: what is written meanwhile belongs to the next turn.
    """
    payload = call.payload
    if payload.kind == "prompt":
        if call.session.base and not payload.automatic:
            call.snapshot_fields["own"] = own_files_now(call)
    elif asks_for_review(call) and (call.ends_work or payload.mode == "plan"):
        if call.ends_work:
            record_base(call)
        if call.snapshot.tree:
            fields = {
                "tree": call.snapshot.tree,
                "head": call.snapshot.head,
                "own": own_files_now(call),
            }
            length = length_of(payload.transcript_abs)
            running = _is_shell_running(call)
            call.record({"what": "snapshot", **fields, "transcript": length, "running": running})
    return so_far


def idle_entry(call: Call) -> tuple[Fact, ...]:
    """Return the entry that the agent has nothing to do from now on: what changes, others change.

    A server that it has left running is no work of its own.
    """
    is_end = call.payload.kind == "turn-end"  # a sub-agent's is none of the others' work
    if not is_end or not call.snapshot.tree or call.agents_at_work:
        return ()
    length = length_of(call.payload.transcript_abs)
    return ({"what": "rest", "tree": call.snapshot.tree, "transcript": length},)


def own_files_now(call: Call, *, knows_tools: bool | None = None) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None if they may have written any file. `knows_tools` tells whether events tell of each tool
    that writes; None: the configuration does.
    """
    payload = call.payload
    if _is_shell_running(call):
        return None
    if knows_tools is None:
        knows_tools = hears_all(call.config)
    has_agents = any(task.kind == "subagent" for task in payload.background)
    if not knows_tools and (payload.agent_id or has_agents):
        return None  # what a sub-agent does is in no transcript of the session
    journals = (call.entries, call.entries_elsewhere)
    paths = (payload.transcript_abs, call.repo.root_abs)
    return own_files_since(journals, *paths, hears_all=knows_tools)


def _is_shell_running(call: Call) -> bool:
    """Return whether something runs in the background that may write any file."""
    tasks = call.payload.background
    return any(one.status == "running" and one.kind != "subagent" for one in tasks)


def changed_by_others(call: Call) -> tuple[str, ...]:
    """Return the files that somebody else has changed since the session began, as far as is known.

    Raises: GitError where a tree is not there.
    """
    from gitgates.git.object_store import reading_git  # only where gates failed
    from gitgates.git.paths import tree_paths

    git = reading_git(call.repo)
    found: set[str] = set()
    for span in with_open_span(call.state(EVIDENCE), own_files_now(call), call.point).quiet:
        if span.before != span.after:
            changed, gone = tree_paths(git, span.before, span.after)
            found.update({*changed, *gone}.difference(span.own))
    return tuple(sorted(found))


def own_files_since(
    journals: Sequence[Sequence[Fact]], transcript_abs: str, root_abs: str, *, hears_all: bool
) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None if they may have written any file, or if that is not known. `journals` are those of
    the session, that of this worktree first; `hears_all` tells whether events tell of all tools.
    """
    point, since = _since_last(journals[0])
    if point is None or point.get("running"):
        return None
    since += [fact for facts in journals[1:] for fact in facts if stamp_of(fact) > stamp_of(point)]
    events = [fact for fact in since if fact.get("event") in _TOOL_HOOKS]
    # What a sub-agent does is in no transcript of the session, and not every client tells of it.
    tells = hears_all and any(fact.get("agent") for fact in events)
    quiet = (*UNCHANGING, "writes", *(("agent",) if tells else ()))
    if any(fact.get("tool_kind") not in quiet and fact.get("shows") is not True for fact in events):
        return None
    own = {str(fact["path"]) for fact in since if fact.get("what") == "wrote" and "path" in fact}
    start, size = point.get("transcript"), length_of(transcript_abs)
    if not isinstance(start, int) or size < max(start, 0):
        heard = hears_all and any(fact.get("event") in _TOOL_HOOKS for fact in journals[0])
        return sorted(own) if heard else None
    written = _written(transcript_abs, start, root_abs, quiet)
    return None if written is None else sorted(own | written)


def with_open_span(evidence: Evidence, own: list[str] | None, now: Point) -> Evidence:
    """Return evidence that tells apart, too, what others have changed since the last snapshot."""
    point = evidence.point
    if own is None or point is None or not now.tree:
        return evidence
    span = Quiet(
        began=point.stamp, ended=time.time(), before=point.tree, after=now.tree, own=tuple(own)
    )
    return evidence._replace(quiet=(*evidence.quiet, span))


def _since_last(facts: Sequence[Fact]) -> tuple[Fact | None, list[Fact]]:
    """Return the last fact with a snapshot, and those after it."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].get("what") in _POINTS and facts[at].get("tree"):
            return facts[at], list(facts[at + 1 :])
    return None, []


def _written(
    transcript_abs: str, start: int, root_abs: str, quiet: Iterable[str]
) -> set[str] | None:
    """Return the files that tools wrote since a place of the transcript; None for any file."""
    found: set[str] = set()
    real_abs = os.path.realpath(root_abs)
    try:
        for call in calls_since(transcript_abs, start):
            if call.kind == "shell" and only_shows(call.command):
                continue
            if call.kind not in quiet or (call.kind == "writes" and not os.path.isabs(call.path)):
                return None
            if call.kind == "writes":
                found.add(os.path.relpath(os.path.realpath(call.path), real_abs))
    except TranscriptUnreadable:
        return None
    return found
