"""Look for a review in the host's transcript: a fallback, where no event told of one."""

from __future__ import annotations

import time

from gitgates.agent_types import UNCHANGING
from gitgates.engine.hooks import matches_agent
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.store.files import length_of, read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.agent_types import ToolCall
    from gitgates.types import Review

_LONGEST_S = 2.0
_HEAD = 1 << 16  # bytes, in which the first record with a time is


class Unread(Exception):
    """The transcript is too long to be read, or took too long."""


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
            not call.is_result and call.kind not in UNCHANGING for call in calls_since(path_abs, 0)
        )
    except Unread:
        return True


def began_at(path_abs: str) -> float:
    """Return when the conversation began, since the epoch; 0 where the transcript does not tell."""
    return agent_host(DEFAULT_AGENT).began_in(read_tail(path_abs, 0, _HEAD) or b"")


def _last_review(
    calls: list[ToolCall], review: Review, known: tuple[float, str]
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
        elif call.kind == "writes":
            found = None
        elif told := _review_of(call, review):
            waiting[call.id] = told
    return found


def _review_of(call: ToolCall, review: Review) -> tuple[str, str] | None:
    if call.kind == "report":
        return "findings", ""
    if call.kind == "skill" and _is_named(call.asked, review.skills):
        return "skill", call.asked
    if call.kind == "agent" and _is_named(call.asked, (*review.agents, review.reviewer)):
        return "agent", call.asked
    return None


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return bool(name) and matches_agent(patterns, name)


def calls_since(path_abs: str, start: int) -> Iterator[ToolCall]:
    """Yield each call of a tool after `start` bytes, and each result of one, in order.

    Raises: Unread where it is not all of them.
    """
    host = agent_host(DEFAULT_AGENT)
    until = time.monotonic() + _LONGEST_S
    size = length_of(path_abs)
    raw = read_tail(path_abs, start) or b""
    for line in raw.split(b"\n"):
        if time.monotonic() > until:
            raise Unread
        yield from host.calls_in(line)
    if len(raw) < size - max(start, 0):
        raise Unread
