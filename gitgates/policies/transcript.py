"""Look for a review in the host's transcript: a fallback, where no event told of one.

The format is the host's own and not promised, so that whatever is not understood is passed over.
Only calls of tools count, by their structure: a text that mentions one is none.
"""

from __future__ import annotations

import json
import time

from gitgates.engine.hooks import names_agent
from gitgates.policies.tools import AGENTS, READING, WRITING
from gitgates.record import Record
from gitgates.store.transcript import length_of, read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gitgates.types import Review

_LONGEST_S = 2.0
_HEAD = 1 << 16  # bytes, in which the first record with a time is
_MARKS = (b'"tool_use"', b'"toolUseResult"', b'"tool_use_id"')
_SKILLS = ("Skill", "SlashCommand")
_NOT_OURS = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


class Unread(Exception):
    """The transcript is too long to be read, or took too long."""


class Call(Record):
    """A call of a tool, or its result."""

    id: str
    stamp: float
    name: str = ""
    input: dict[str, Any] = {}
    is_result: bool = False
    completed: bool = False  # what a sub-agent's result says
    session: str = ""  # of a conversation that was forked, that of another one
    failed: bool = False

    @property
    def command(self) -> str:
        """What a shell is to run."""
        return str(self.input.get("command", ""))

    @property
    def path(self) -> str:
        """The file that a tool works on."""
        return str(self.input.get("file_path") or self.input.get("notebook_path") or "")


def find_review(
    path_abs: str, review: Review, since: float, session: str = ""
) -> tuple[str, str] | None:
    """Return how the last review after a moment came about, and its name; None for none.

    One that files were written after by a tool is none: what it saw is not known. A call counts
    when its result is there and no error; that of a sub-agent, when its report is.
    """
    try:
        return _last_review(list(calls_since(path_abs, 0)), review, (since, session))
    except Unread:
        return None  # a file may have been written after it


def may_have_acted(path_abs: str) -> bool:
    """Tell whether the agent may have changed anything: unless only reading tools were used."""
    if length_of(path_abs) < 0:
        return True
    try:
        return any(
            not call.is_result and call.name not in READING for call in calls_since(path_abs, 0)
        )
    except Unread:
        return True


def began_at(path_abs: str) -> float:
    """Return when the conversation began, since the epoch; 0 where the transcript does not tell."""
    for line in (read_tail(path_abs, 0, _HEAD) or b"").split(b"\n"):
        try:
            stamp = _stamp(str(json.loads(line).get("timestamp", "")))
        except (*_NOT_OURS, UnicodeDecodeError):
            continue
        if stamp:
            return stamp
    return 0.0


def _last_review(
    calls: list[Call], review: Review, known: tuple[float, str]
) -> tuple[str, str] | None:
    since, session = known
    found: tuple[str, str] | None = None
    waiting: dict[str, tuple[str, str]] = {}  # calls that would be a review
    for call in calls:
        if call.stamp < since or call.session not in ("", session):
            continue
        if call.is_result:
            told = waiting.pop(call.id, None)
            if told and not call.failed and (told[0] != "agent" or call.completed):
                found = told
        elif call.name in WRITING:
            found = None
        elif told := _review_of(call, review):
            waiting[call.id] = told
    return found


def _review_of(call: Call, review: Review) -> tuple[str, str] | None:
    skill = str(call.input.get("skill") or call.input.get("command") or "").lstrip("/")
    kind = str(call.input.get("subagent_type", ""))
    if call.name == "ReportFindings":
        return "findings", ""
    if call.name in _SKILLS and _is_named(skill, review.skills):
        return "skill", skill
    if call.name in AGENTS and _is_named(kind, (*review.agents, review.reviewer)):
        return "agent", kind
    return None


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return bool(name) and names_agent(patterns, name)


def calls_since(path_abs: str, start: int) -> Iterator[Call]:
    """Yield each call of a tool after `start` bytes, and each result of one, in order.

    What is no JSON is a call of nobody knows what. Raises: Unread where it is not all of them.
    """
    until = time.monotonic() + _LONGEST_S
    size = length_of(path_abs)
    raw = read_tail(path_abs, start) or b""
    for line in raw.split(b"\n"):
        if time.monotonic() > until:
            raise Unread
        if not any(mark in line for mark in _MARKS):
            continue
        try:
            record = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            yield Call("", 0.0)
            continue
        try:
            yield from _calls_of(record)
        except _NOT_OURS:
            continue
    if len(raw) < size - max(start, 0):
        raise Unread


def _calls_of(record: dict[str, Any]) -> list[Call]:
    content = record["message"]["content"]
    stamp = _stamp(str(record.get("timestamp", "")))
    session = str(record.get("sessionId", ""))
    if record.get("type") == "assistant":
        return [
            Call(
                str(one.get("id", "")),
                stamp,
                str(one["name"]),
                one["input"] if isinstance(one.get("input"), dict) else {},
                session=session,
            )
            for one in content
            if one["type"] == "tool_use"
        ]
    result = record.get("toolUseResult")
    completed = isinstance(result, dict) and result.get("status") == "completed"
    return [
        Call(
            str(one["tool_use_id"]),
            stamp,
            is_result=True,
            completed=completed,
            session=session,
            failed=bool(one.get("is_error")),
        )
        for one in content
        if one["type"] == "tool_result"
    ]


def _stamp(text: str) -> float:
    """Return a time of the transcript since the epoch; 0 where it is not told."""
    from datetime import datetime  # only where a transcript is read at all

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
