"""Each host's own language: its bytes in, an `Event` out; a `Decision` in, its bytes out. Pure.

A coding agent is a module of this package, and a line in `AGENTS`: nothing else knows its words.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from gitgates.types import Answer, Payload, ToolCall

    class AgentHost(Protocol):
        """What such a module offers."""

        SECRETS: tuple[str, ...]  # variables of its own that no gate gets unless it asks for them

        def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
            """Return what a payload says.

            Raises: BadPayload where it is none.
            """

        def encode(self, payload: Payload, answer: Answer) -> bytes:
            """Return what the agent's client receives, or nothing."""

        def calls_in(self, line: bytes) -> Sequence[ToolCall]:
            """Return the calls of tools, and their results, in one line of a transcript."""

        def began_in(self, head: bytes) -> float:
            """Return when the conversation of a transcript began; 0 where that is not told."""


DEFAULT_AGENT = "claude"  # whose transcripts and sessions those of no known host are
AGENTS = {"claude": "gitgates.hosts.claude"}  # as `agent-hook` names it → its module


class BadPayload(Exception):
    """What came is nothing that the host sends."""


def agent_host(name: str) -> AgentHost:
    """Return the module of a coding agent.

    Raises: KeyError where there is none.
    """
    module = AGENTS[name]
    __import__(module)
    found: AgentHost = sys.modules[module]
    return found
