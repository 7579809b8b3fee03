"""Read from the host's transcript which tools a session has used."""

from __future__ import annotations

import time

from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.store.files import length_of, read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.agent_types import ToolCall

_LONGEST_S = 2.0
_HEAD = 1 << 16  # bytes, in which the first record with a time is


class TranscriptUnreadable(Exception):
    """The transcript is too long to be read, or took too long."""


def conversation_start(path_abs: str) -> float:
    """Return when the conversation began, since the epoch; 0 if unknown."""
    return agent_host(DEFAULT_AGENT).conversation_start_in(read_tail(path_abs, 0, _HEAD) or b"")


def calls_since(path_abs: str, start: int) -> Iterator[ToolCall]:
    """Yield each call of a tool after `start` bytes, in order.

    Raises: TranscriptUnreadable if it is not all of them.
    """
    host = agent_host(DEFAULT_AGENT)
    until = time.monotonic() + _LONGEST_S
    size = length_of(path_abs)
    raw = read_tail(path_abs, start) or b""
    for line in raw.split(b"\n"):
        if time.monotonic() > until:
            raise TranscriptUnreadable
        yield from (call for call in host.calls_in(line) if not call.is_result)
    if len(raw) < size - max(start, 0):
        raise TranscriptUnreadable
