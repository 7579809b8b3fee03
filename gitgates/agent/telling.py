"""What is remembered of each event, and what the agent is told without any gate being run."""

from __future__ import annotations

import zlib

from gitgates.agent.place import edited_paths, note
from gitgates.errors import GitgatesError
from gitgates.lifecycle import ENDINGS, HOOK_OF
from gitgates.types import STOP, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent_types import Payload
    from gitgates.policies.session import Fact, Session
    from gitgates.types import Config

_LONGEST_PROMPT = 65536  # bytes of a prompt that are kept


def event_key(payload: Payload) -> str:
    """Return what tells an event from others of its session.

    Without an id of its own, that is all that it says: the same again looks the same.
    """
    if payload.tool_use_id:
        return f"{payload.event}:{payload.tool_use_id}"
    said = f"{payload.source}\0{payload.prompt}\0{payload.last_message}\0{payload.agent_type}"
    mark = zlib.crc32(said.encode("utf-8", "replace"))
    again = "again" if payload.again else ""
    return f"{payload.event}:{payload.prompt_id}:{payload.agent_id}:{again}:{mark:08x}"


def with_source(place: Place, known: list[Fact]) -> Place:
    """Return the place of a prompt with its source, where the agent has scheduled that very text.

    The client submits such a prompt by itself, and need not say so. A person who types the same
    text is taken for it. `known` are the facts of the journal.
    """
    payload = place.payload
    if payload.kind != "prompt" or payload.automatic:
        return place
    from gitgates.agent.changed import elsewhere  # only prompts pay for it

    mark = _mark_of(payload.prompt)
    for fact in (*known, *elsewhere(place)):
        if fact.get("what") == "scheduled" and mark in fact.get("prompts", ()):
            return place._replace(payload=payload._replace(automatic=True))
    return place


def _mark_of(prompt: str) -> str:
    """Return what stands for the text of a prompt."""
    text = prompt.strip().encode("utf-8", "replace")
    return f"{len(text)}:{zlib.crc32(text):08x}"


def new_facts(place: Place, key: str) -> list[Fact]:
    """Return what the journal learns from an event itself: that it was, and what was asked."""
    payload = place.payload
    facts: list[Fact] = [
        {
            "what": "event",
            "event": payload.event,
            "key": key,
            "prompt_id": payload.prompt_id,
            "agent": payload.agent_id,
            "agent_type": payload.agent_type,
            "tool": payload.tool,
            "tool_kind": payload.tool_kind,
        }
    ]
    if payload.command:
        from gitgates.policies.reviewer_commands import only_shows  # only shells pay for it

        facts[0]["shows"] = only_shows(payload.command)
    if payload.kind == "after-tool" and payload.paths and not payload.failed:
        facts += [{"what": "wrote", "path": path} for path in _written_paths(place)]
    if payload.scheduled:
        facts.append({"what": "scheduled", "prompts": [*map(_mark_of, payload.scheduled)]})
    is_prompt = payload.kind == "prompt"
    if is_prompt and payload.automatic:
        return [*facts, {"what": "pseudo-prompt", "prompt_id": payload.prompt_id}]
    if is_prompt:
        text = payload.prompt.encode("utf-8", "replace")[:_LONGEST_PROMPT].decode("utf-8", "ignore")
        facts.append(
            {
                "what": "prompt",
                "prompt_id": payload.prompt_id,
                "text": text,
                "transcript": payload.transcript_abs,
            }
        )
    return facts


def _written_paths(place: Place) -> tuple[str, ...]:
    return edited_paths(place) or () if place.payload.tool_kind == "writes" else ()


def what_is_there(place: Place, before: Session) -> list[Fact]:
    """Return what the journal learns of what is there at an event, where it is to know that.

    That may take long, in a large repository; what was asked has been kept before.
    """
    payload = place.payload
    is_prompt = payload.kind == "prompt"
    if is_prompt and payload.automatic:
        return []
    # Where the first that we hear of is an end, the work is done: it is measured otherwise.
    is_first = not (before.base or before.no_base) and payload.kind not in ENDINGS
    return [_take_snapshot(place)] if is_prompt or is_first else []


def end_main_thread(place: Place, session: Session) -> Answer | None:
    """Stop the main thread because of what a sub-agent's gate said; None where this event cannot.

    A new prompt of the person is not stopped: they have been told, and go on all the same.
    """
    payload = place.payload
    if payload.kind == "prompt" and not payload.automatic:
        warning = {"what": "warning", "hook": HOOK_OF["subagent-end"], "text": session.stop}
        place.journal.append({"what": "stopped"}, warning)
        return None
    if not payload.can.stop:
        return None
    place.journal.append({"what": "stopped"})
    return Answer(STOP, to_agent=session.stop, to_person=session.stop)


def tell(place: Place, config: Config, session: Session) -> tuple[str, ...]:
    """Return what the agent is told by the way: the rules, or warnings that did not reach it."""
    payload = place.payload
    if payload.kind in ("session-start", "subagent-start"):
        from gitgates.policies.rules import rules_text  # only these events pay for it

        return (rules_text(config),)
    if payload.kind == "prompt" and session.warnings and not payload.agent_id:
        place.journal.append({"what": "told"})
        return session.warnings
    return ()


def _take_snapshot(place: Place) -> Fact:
    """Return what the journal keeps of what is there now: a tree, or nothing and why."""
    # Cold: once in a session, and once a prompt.
    from gitgates.git.snapshot import take
    from gitgates.store.files import length_of

    try:
        snapshot = take(place.repo)
    except GitgatesError as error:
        note(place, error.message)
        return {"what": "snapshot", "tree": "", "why": error.message}
    length = length_of(place.payload.transcript_abs)
    taken: Fact = {"tree": snapshot.tree, "head": snapshot.head, "why": "", "transcript": length}
    not_seen = {"not_seen": list(snapshot.not_seen)} if snapshot.not_seen else {}
    return {"what": "snapshot", **taken, **not_seen}
