"""Each host's own language: its bytes in, an `Event` out; a `Decision` in, its bytes out. Pure.

A coding agent is a module of this package, and a line in `AGENTS`: nothing else knows its words.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from gitgates.agent_types import Payload, ToolCall
    from gitgates.types import Verdict

    class AgentHost(Protocol):
        """What such a module offers."""

        SECRETS: tuple[str, ...]  # variables of its own that no gate gets unless it asks for them
        OF_A_SESSION: tuple[str, ...]  # variables that another agent must not be started with

        def session_of(self, env: Mapping[str, str]) -> str:
            """Return the session of the agent that runs a command; empty if none does."""

        def is_caller(self, env: Mapping[str, str]) -> bool:
            """Return whether such an agent runs a command, and not a person."""

        def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
            """Return what a payload says.

            Raises: BadPayload where it is none.
            """

        def encode(self, payload: Payload, verdict: Verdict) -> bytes:
            """Return what the agent's client receives, or nothing."""

        FOLDER: str  # of a project, that settings, agents and skills are in

        def home(self, env: Mapping[str, str]) -> str:
            """Return the folder of a person's own; empty if there is none."""

        def folders_of(self, root_abs: str, env: Mapping[str, str]) -> list[str]:
            """Return the folders that agents and skills are defined in."""

        def plugin_of(self, env: Mapping[str, str]) -> str:
            """Return the folder of the plugin that has started us; empty if none has."""

        def settings_files(self, root_abs: str, env: Mapping[str, str]) -> list[str]:
            """Return the settings that a person, or a project, may have."""

        def agent_files(self, name: str, folders: Iterable[str]) -> list[str]:
            """Return the files that define a sub-agent."""

        def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
            """Return the files that define a skill."""

        def calls_in(self, line: bytes) -> Sequence[ToolCall]:
            """Return the calls of tools, and their results, in one line of a transcript."""

        def conversation_start_in(self, head: bytes) -> float:
            """Return when the conversation of a transcript began; 0 if that is not told."""


DEFAULT_AGENT = "claude"  # whose transcripts and sessions those of no known host are
AGENTS = {"claude": "gitgates.hosts.claude"}  # as `agent-hook` names it → its module
# What stands in the payload of the end of a turn: where we are switched off, no other is read.
TURN_ENDS = {"claude": b'"Stop"'}


class BadPayload(Exception):
    """What came is nothing that the host sends."""


def agent_host(name: str) -> AgentHost:
    """Return the module of a coding agent.

    Raises: KeyError if there is none.
    """
    module = AGENTS[name]
    __import__(module)
    found: AgentHost = sys.modules[module]
    return found


def calling_session(env: Mapping[str, str]) -> str:
    """Return the session of the agent that runs a command; empty if none does."""
    found = (agent_host(name).session_of(env) for name in AGENTS)
    return next((session for session in found if session), "")


def is_called_by_agent(env: Mapping[str, str]) -> bool:
    """Return whether an agent runs a command, and not a person."""
    return any(agent_host(name).is_caller(env) for name in AGENTS)


def withheld_from_agents() -> tuple[str, ...]:
    """Return the variables of a session that another agent must not be started with."""
    return tuple(name for agent in AGENTS for name in agent_host(agent).OF_A_SESSION)
