"""Claude Code as a host: any bytes in, one JSON object or nothing out."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_support import JSON, TEXTS
from payload_support import payload_with

from gitgates.core.agent_types import BackgroundTask, Channels, Payload
from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Verdict
from gitgates.hosts.agent import BadPayload
from gitgates.hosts.agents.claude import HOST

if TYPE_CHECKING:
    from gitgates.core.types import Level

EVENTS = HOST.PROTOCOL.events

STOP_PAYLOAD = {
    "session_id": "s1",
    "transcript_path": "/h/t.jsonl",
    "cwd": "/repo",
    "prompt_id": "p1",
    "permission_mode": "default",
    "hook_event_name": "Stop",
    "stop_hook_active": True,
    "last_assistant_message": "end",
    "background_tasks": [
        {"id": "a", "type": "subagent", "status": "running", "agent_type": "reviewer"},
        "no table",
        {"type": 3},
    ],
}
VERDICTS: tuple[Level, ...] = (ALLOW, WARN, BLOCK, STOP)


def decode(data: bytes) -> Payload:
    return HOST.decode(data, {})


def encode(event: str, answer: Verdict) -> bytes:
    kind, can = EVENTS.get(event, ("", Channels()))
    return HOST.encode(Payload(event=event, kind=kind, can=can), answer)


def payload_of(event: str = "", **fields: Any) -> Payload:
    """Return the payload of an event of which these things are said."""
    kind, can = EVENTS.get(event, ("", Channels()))
    unread = "" if event else "an event without a name"
    row = {"host": "claude", "event": event, "kind": kind, "can": can, "unread": unread}
    return payload_with(**row, **fields)


def test_everything_that_a_stop_says() -> None:
    assert decode(json.dumps(STOP_PAYLOAD).encode()) == payload_of(
        "Stop",
        session="s1",
        prompt_id="p1",
        cwd_abs="/repo",
        mode="default",
        last_message="end",
        transcript_abs="/h/t.jsonl",
        again=True,
        background=(BackgroundTask("subagent", "running"), BackgroundTask("", "")),
    )


def test_everything_that_a_tool_call_says() -> None:
    data = {
        "hook_event_name": "PreToolUse",
        "agent_id": "a1",
        "agent_type": "reviewer",
        "tool_name": "Write",
        "tool_use_id": "toolu_1",
        "tool_input": {"file_path": "/r/a", "notebook_path": "/r/b"},
    }
    assert decode(json.dumps(data).encode()) == payload_of(
        "PreToolUse",
        agent_id="a1",
        agent_type="reviewer",
        tool="Write",
        tool_kind="writes",
        tool_use_id="toolu_1",
        paths=("/r/a", "/r/b"),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no input on standard input"),
        (b" \n", "no input on standard input"),
        (b"{", "not valid JSON: Expecting property name"),
        (b'{"a": 1} {"b": 2}', "not valid JSON: Extra data"),
        (b"\xff\xfe{\0}\0", "not valid JSON: Expecting value"),
        (b"[]", "expected a JSON object, not list"),
        (b"null", "expected a JSON object, not NoneType"),
        (b'"Stop"', "expected a JSON object, not str"),
        (b"3", "expected a JSON object, not int"),
        (b"[" * 100_000, "not valid JSON: "),
        (b'{"a":' * 100_000, "not valid JSON: "),
        (
            b'{"hook_event_name": "Stop", "x": ' + b"9" * 5000 + b"}",
            "not valid JSON: Exceeds the limit",
        ),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_is_no_object_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(BadPayload) as refused:
        decode(data)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", payload_of()),
        (b'\xef\xbb\xbf{"hook_event_name": "Stop"}', payload_of("Stop")),
        (b'{"session_id": "a\xffb"}', payload_of(session="a?b")),
        (rb'{"session_id": "a\ud800b"}', payload_of(session="a?b")),
        (rb'{"session_id": "\ud83d\ude00"}', payload_of(session="\U0001f600")),
        (rb'{"cwd": "/a\u0000b", "transcript_path": "\u0000"}', payload_of()),
        (rb'{"tool_input": {"file_path": "a\u0000b"}}', payload_of()),
        (rb'{"tool_input": {"file_path": ["a"], "command": 3}}', payload_of()),
        (rb'{"tool_input": {"file_path": "a\udcff"}}', payload_of(paths=("a\udcff",))),
        (b'{"tool_input": "rm"}', payload_of()),
        (b'{"tool_input": null, "tool_name": null}', payload_of()),
        (b'{"stop_hook_active": "true"}', payload_of()),
        (b'{"stop_hook_active": 1}', payload_of()),
        (b'{"background_tasks": {"type": "subagent"}}', payload_of()),
        (b'{"hook_event_name": {"a": [1e999, NaN]}}', payload_of()),
        (b'{"hook_event_name": "Stop", "n": 1' + b"0" * 400 + b"}", payload_of("Stop")),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_odd_counts_as_not_said(data: bytes, expected: Payload) -> None:
    assert decode(data) == expected


_FIELDS = st.sampled_from([*STOP_PAYLOAD, "tool_input", "tool_name", "agent_id", "source"])


@given(data=st.dictionaries(_FIELDS, JSON))
def test_any_object_is_read(data: dict[str, Any]) -> None:
    found = decode(json.dumps(data).encode("utf-8", "surrogatepass"))
    for text in (found.event, found.session):
        text.encode()  # no half of a surrogate pair
    for path in (found.cwd_abs, *found.tool.paths):
        os.fsencode(path)  # but a byte of a file name that is not text
    assert "\0" not in "".join((found.cwd_abs, found.transcript_abs, *found.tool.paths))


@given(data=st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(BadPayload):
        decode(data)


def own(event: str, **fields: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


NOTHING: dict[str, Any] = {}
PERSON = {"systemMessage": "P"}
BLOCKS = {"decision": "block", "reason": "A"}
STOPS = {"continue": False, "stopReason": "P"}


def _told(event: str) -> dict[str, Any]:
    return {**own(event, additionalContext="A"), **PERSON}


def _denied(event: str) -> dict[str, Any]:
    return own(event, permissionDecision="deny", permissionDecisionReason="A")


# event → what it says for allow, warn, block and stop, where both are to hear something
BOTH: dict[str, tuple[dict[str, Any], ...]] = {
    "SessionStart": (_told("SessionStart"),) * 4,
    "UserPromptSubmit": (
        *(_told("UserPromptSubmit"),) * 2,
        BLOCKS | PERSON,
        STOPS | PERSON,
    ),
    "UserPromptExpansion": (
        *(_told("UserPromptExpansion"),) * 2,
        BLOCKS | PERSON,
        STOPS | PERSON,
    ),
    "PreToolUse": (
        *(_told("PreToolUse"),) * 2,
        _denied("PreToolUse") | PERSON,
        STOPS | _denied("PreToolUse") | PERSON,
    ),
    "PostToolUse": (*(_told("PostToolUse"),) * 2, BLOCKS | PERSON, STOPS | PERSON),
    "PostToolUseFailure": (_told("PostToolUseFailure"),) * 4,
    "PostToolBatch": (
        *(_told("PostToolBatch"),) * 2,
        _told("PostToolBatch") | PERSON,
        STOPS | PERSON,
    ),
    "SubagentStart": (_told("SubagentStart"),) * 4,
    "SubagentStop": (PERSON, PERSON, BLOCKS | PERSON, BLOCKS | PERSON),
    "TaskCompleted": (PERSON, PERSON, BLOCKS | PERSON, BLOCKS | PERSON),
    "TeammateIdle": (PERSON, PERSON, BLOCKS | PERSON, BLOCKS | PERSON),
    "Stop": (PERSON, PERSON, BLOCKS | PERSON, STOPS | PERSON),
    "StopFailure": (PERSON,) * 4,
    "PreCompact": (PERSON, PERSON, BLOCKS | PERSON, BLOCKS | PERSON),
    "PostCompact": (PERSON,) * 4,
    "SessionEnd": (PERSON,) * 4,
}


def test_the_table_is_whole() -> None:
    assert list(BOTH) == list(EVENTS)


def test_answers_with_a_word_to_both() -> None:
    said = {
        event: [encode(event, Verdict(one, to_agent="A", to_person="P")) for one in VERDICTS]
        for event in EVENTS
    }
    assert {event: tuple(map(json.loads, answers)) for event, answers in said.items()} == BOTH
    assert b"\n" not in b"".join(answer for answers in said.values() for answer in answers)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Verdict(ALLOW), b""),
        (Verdict(WARN), b""),
        (Verdict(ALLOW, to_person="P"), b'{"systemMessage": "P"}'),
        (Verdict(ALLOW, to_agent="A"), b""),  # there is no channel, and nothing went wrong
        (Verdict(WARN, to_agent="A"), b'{"systemMessage": "A"}'),
        (Verdict(BLOCK), b'{"decision": "block", "reason": "gitgates refused this."}'),
        (Verdict(BLOCK, to_agent="A"), b'{"decision": "block", "reason": "A"}'),
        (
            Verdict(BLOCK, to_person="P"),
            b'{"decision": "block", "reason": "P", "systemMessage": "P"}',
        ),
        (Verdict(STOP), b'{"continue": false, "stopReason": "gitgates refused this."}'),
        (Verdict(STOP, to_agent="A"), b'{"continue": false, "stopReason": "A"}'),
        (Verdict(BLOCK, to_agent="B", replayed_answer='{"x": 1}'), b'{"x": 1}'),
        (Verdict(BLOCK, to_agent="B", replayed_answer=""), b""),
    ],
)
def test_answers_to_a_stop(answer: Verdict, expected: bytes) -> None:
    assert encode("Stop", answer) == expected


@pytest.mark.parametrize(
    ("event", "answer", "expected"),
    [
        ("PreToolUse", Verdict(ALLOW), NOTHING),
        ("PreToolUse", Verdict(ALLOW, to_agent="A"), own("PreToolUse", additionalContext="A")),
        ("PreToolUse", Verdict(BLOCK, to_agent="A"), _denied("PreToolUse")),
        ("PostToolUse", Verdict(WARN, to_agent="A"), own("PostToolUse", additionalContext="A")),
        ("PostToolUse", Verdict(STOP, to_agent="A"), {"continue": False, "stopReason": "A"}),
        ("SessionStart", Verdict(BLOCK, to_agent="A"), own("SessionStart", additionalContext="A")),
        ("SessionStart", Verdict(STOP, to_person="P"), PERSON),
        ("SessionStart", Verdict(BLOCK), NOTHING),
        ("SessionEnd", Verdict(BLOCK, to_agent="A"), {"systemMessage": "A"}),
        ("SubagentStop", Verdict(STOP, to_agent="A"), BLOCKS),
        ("SubagentStop", Verdict(WARN, to_agent="A"), {"systemMessage": "A"}),
        ("Nonsense", Verdict(STOP, to_agent="A", to_person="P"), PERSON),
        ("", Verdict(BLOCK, to_agent="A"), {"systemMessage": "A"}),
    ],
)
def test_answers_with_a_word_to_one(event: str, answer: Verdict, expected: dict[str, Any]) -> None:
    said = encode(event, answer)
    assert (json.loads(said) if said else NOTHING) == expected


_TEXTS = TEXTS | st.sampled_from(["x" * 20_000, "😀" * 9_000])


@given(
    event=st.sampled_from([*EVENTS, "Nonsense"]),
    verdict=st.sampled_from(VERDICTS),
    texts=st.tuples(_TEXTS, _TEXTS),
)
def test_promises_of_every_answer(event: str, verdict: Level, texts: tuple[str, str]) -> None:
    said = encode(event, Verdict(verdict, to_agent=texts[0], to_person=texts[1]))
    found = json.loads(said) if said else {}
    assert isinstance(found, dict)
    assert not {"continue", "decision"} <= set(found)  # a stop beats a block: never both
    inside = found.get("hookSpecificOutput")
    assert inside is None or inside["hookEventName"] == event
    if event in ("Stop", "SubagentStop"):
        assert inside is None  # context would keep the turn going
    if event == "SubagentStop":
        assert "continue" not in found
    if verdict == BLOCK and event in EVENTS and EVENTS[event][1].block:
        told = (inside or {}).get("additionalContext") if event == "PostToolBatch" else None
        assert told or found["reason"]  # the client says "Blocked by hook" to an empty one
    for text in (*found.values(), *(inside or {}).values()):
        assert not isinstance(text, str) or javascript_length(text) <= 10_000


def javascript_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 10_000, "x" * 10_000),
        ("x" * 10_001, "x" * 9_996 + " […]"),
        ("x" * 1_000_000, "x" * 9_996 + " […]"),
        ("😀" * 5_000, "😀" * 5_000),
        ("😀" * 5_001, "😀" * 4_998 + " […]"),
        ("x" + "😀" * 5_000, "x" + "😀" * 4_997 + " […]"),
        ("\udcff" * 10_000, "?" * 10_000),
        ("é" * 10_000, "é" * 10_000),
    ],
    ids=range(8),
)
def test_the_limit_is_counted_as_javascript_counts(text: str, expected: str) -> None:
    said = json.loads(encode("Stop", Verdict(BLOCK, to_agent=text)))["reason"]
    assert said == expected
    context = json.loads(encode("PostToolUse", Verdict(WARN, to_agent=text)))
    assert context["hookSpecificOutput"]["additionalContext"] == expected


@pytest.mark.parametrize(
    ("prompt", "source", "expected"),
    [
        ("<task-notification>\n<task-id>x</task-id>", "", True),
        ("\n  <task-notification>", "", True),
        ("fix <task-notification>", "", False),
        ("go", "", False),
        ("", "", False),
        ("go", "schedule_wakeup", True),
        ("go", "loop_wakeup", True),
        ("go", "poll_event", True),
        ("go", "system", True),
        ("go", "user", False),
    ],
)
def test_prompts_that_the_client_writes_itself(prompt: str, source: str, expected: bool) -> None:  # noqa: FBT001 - a case of the table
    data = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "source": source}
    assert decode(json.dumps(data).encode()).prompt.automatic is expected
