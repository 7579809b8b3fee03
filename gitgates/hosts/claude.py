"""Claude Code as a host: one JSON object on standard input, one (or nothing) on standard output.

Reading is tolerant: a field that is missing or of another type counts as not said, and only what is
no JSON object at all is refused. Whatever is answered goes with exit status 0, because 2 means
"block" there, and everything else "the hook is broken, go on".

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import json
import os

from gitgates.hosts.capabilities import CLAUDE, NOTHING, express, reaches_agent
from gitgates.types import BLOCK, STOP, Answer, Payload, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 10_000  # of one text; the client puts what is longer into a file
_CUT = " […]"
_BOM = b"\xef\xbb\xbf"
# In which fields of `tool_input` a tool names the file that it works on.
_PATH_FIELDS = ("file_path", "notebook_path")
# What the client itself puts in place of a prompt when a background task has something to say.
_PSEUDO_PREFIXES = ("<task-notification>",)
_SCHEDULED = "schedule_wakeup"
_PSEUDO_SOURCES = ("system", "loop_wakeup", _SCHEDULED, "poll_event")
_SCHEDULERS = ("ScheduleWakeup", "CronCreate")


class BadPayload(Exception):
    """What came is no JSON object."""


def decode(data: bytes) -> Payload:
    """Return what a payload says.

    Raises: BadPayload where it is no JSON object.
    """
    if not data.strip():
        raise BadPayload("nothing came on standard input")
    try:
        found = json.loads(data.removeprefix(_BOM).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadPayload(f"a JSON object was expected, not {type(found).__name__}")
    tool_input = found.get("tool_input")
    inside = tool_input if isinstance(tool_input, dict) else {}
    response = found.get("tool_response")
    return Payload(
        event=_text(found, "hook_event_name"),
        session=_text(found, "session_id"),
        prompt_id=_text(found, "prompt_id"),
        cwd_abs=_path(found, "cwd"),
        agent_id=_text(found, "agent_id"),
        agent_type=_text(found, "agent_type"),
        mode=_text(found, "permission_mode"),
        tool=_text(found, "tool_name"),
        tool_use_id=_text(found, "tool_use_id"),
        paths=tuple(path for name in _PATH_FIELDS if (path := _path(inside, name))),
        command=_text(inside, "command"),
        failed=isinstance(response, dict) and response.get("success") is False,
        skill=_text(inside, "skill") or _text(found, "command_name"),
        prompt=_text(found, "prompt"),
        source=_text(found, "source"),
        scheduled=_scheduled(found, inside),
        last_message=_text(found, "last_assistant_message"),
        transcript_abs=_path(found, "transcript_path"),
        again=found.get("stop_hook_active") is True,
        background=_tasks(found.get("background_tasks")),
    )


def as_scheduled(payload: Payload) -> Payload:
    """Return the payload of a prompt as the client would send it if it told who wrote it."""
    return payload._replace(source=_SCHEDULED)


def is_pseudo_prompt(payload: Payload) -> bool:
    """Tell whether a prompt was written by the client or the agent, not by the person."""
    begins = payload.prompt.lstrip().startswith(_PSEUDO_PREFIXES)
    return begins or payload.source in _PSEUDO_SOURCES


def encode(event: str, answer: Answer) -> bytes:
    """Return what the client receives: one JSON object, or nothing."""
    if answer.as_before is not None:
        return answer.as_before.encode("ascii", "replace")
    verdict, _why = express(event, answer.verdict)
    has = CLAUDE.get(event, NOTHING)
    reason = answer.to_agent or answer.to_person or "gitgates refused this."
    person = answer.to_person
    body: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if verdict == STOP:
        body |= {"continue": False, "stopReason": _cut(answer.to_person or reason)}
    if verdict >= BLOCK and has.deny:
        own |= {"permissionDecision": "deny", "permissionDecisionReason": _cut(reason)}
    elif verdict == BLOCK:
        body |= {"decision": "block", "reason": _cut(reason)}
    elif answer.to_agent and reaches_agent(event, verdict):
        own["additionalContext"] = _cut(answer.to_agent)
    elif answer.to_agent and verdict != STOP and answer.verdict:
        person = person or answer.to_agent  # nobody else would hear of it
    if own:
        body["hookSpecificOutput"] = {"hookEventName": event, **own}
    if person:
        body["systemMessage"] = _cut(person)
    return json.dumps(body).encode("ascii") if body else b""


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    # Half of a surrogate pair is no text.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _path(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        # A file name need not be text: the host may send its bytes, or what Python makes of them.
        return os.fsdecode(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return os.fsdecode(value.encode("utf-8", "replace"))


def _tasks(value: object) -> tuple[Task, ...]:
    if not isinstance(value, list):
        return ()
    tables = [item for item in value if isinstance(item, dict)]
    return tuple(Task(_text(table, "type"), _text(table, "status")) for table in tables)


def _scheduled(found: dict[str, Any], tool_input: dict[str, Any]) -> tuple[str, ...]:
    """Return the prompts that a tool schedules, and those that an end says are to come."""
    crons = found.get("session_crons")
    tables = [item for item in crons if isinstance(item, dict)] if isinstance(crons, list) else []
    if found.get("tool_name") in _SCHEDULERS:
        tables.append(tool_input)
    texts = (_text(table, "prompt").strip() for table in tables)
    return tuple(text for text in texts if text)


def _cut(text: str) -> str:
    """Return a text that the client takes whole. It counts as JavaScript does."""
    from gitgates.clean import plain  # most events are answered with nothing

    text = plain(text.encode("utf-8", "replace"))  # a file's name may be no text
    if len(text) <= _LONGEST // 2 or _length(text) <= _LONGEST:
        return text
    while _length(text) > _LONGEST - len(_CUT):
        over = _length(text) - (_LONGEST - len(_CUT))
        text = text[: -max(over // 2, 1)]
    return text + _CUT


def _length(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)
