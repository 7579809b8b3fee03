"""Each host's own language: its bytes in, an `Event` out; a `Decision` in, its bytes out. Pure.

A coding agent is a module of this package, and a line in `AGENTS`: nothing else knows its words.
"""

from __future__ import annotations

import sys

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.hosts.agent import AgentHost
    from gitgates.hosts.interface import AgentServers
    from gitgates.hosts.settings.json_settings import AgentSettings

DEFAULT_AGENT = "claude"  # whose words stand for any agent's, if none is known


class Agent(Record):
    """What is used of an agent without loading its module."""

    # In the payload of a turn's end: if gitgates is off, no other payload is decoded.
    turn_end: bytes
    settings: str = ""  # of a project, which are guarded; empty: there are none
    session: str = ""  # the variable of a command that contains the session of the agent
    caller: tuple[str, ...] = ()  # variables of a command: NAME, or NAME=VALUE
    rules: str = "AGENTS.md"  # the file with instructions for it
    module: str = ""  # if it is not in `hosts/agents`


AGENTS = {
    "claude": Agent(
        turn_end=b'"Stop"',
        settings=".claude/settings.json",
        session="CLAUDE_CODE_SESSION_ID",
        caller=("CLAUDECODE",),
        rules="CLAUDE.md",
    ),
    "codex": Agent(
        turn_end=b'"Stop"',
        settings=".codex/hooks.json",
        session="CODEX_SESSION_ID",
        caller=("CODEX_THREAD_ID", "CODEX_CI"),
    ),
    "copilot": Agent(
        turn_end=b'"Stop"',
        settings=".github/hooks/gitgates.json",
        session="COPILOT_AGENT_SESSION_ID",
        caller=("COPILOT_CLI",),
    ),
    "gemini": Agent(
        turn_end=b'"AfterAgent"',
        settings=".gemini/settings.json",
        caller=("GEMINI_CLI",),
        rules="GEMINI.md",
    ),
    "qwen": Agent(
        turn_end=b'"Stop"',
        settings=".qwen/settings.json",
        session="QWEN_CODE_SESSION_ID",
        caller=("QWEN_CODE",),
    ),
    "droid": Agent(
        turn_end=b'"Stop"',
        settings=".factory/hooks.json",
        caller=("FACTORY_DISABLE_SETTINGS_PERSISTENCE",),
    ),
    "vibe": Agent(
        turn_end=b'"post_agent"',
        settings=".vibe/hooks.toml",
        caller=("VIBE_APP_SERVER_BIN",),
    ),
    "kimi": Agent(turn_end=b'"Stop"'),
    "opencode": Agent(
        turn_end=b'"Stop"',
        settings=".opencode/plugins/gitgates.js",
        session="GITGATES_SESSION",
        caller=("OPENCODE",),
    ),
    "kilo": Agent(
        turn_end=b'"Stop"',
        settings=".kilo/plugins/gitgates.js",
        session="GITGATES_SESSION",
        caller=("KILO",),
    ),
    "openhands": Agent(
        turn_end=b'"Stop"',
        settings=".openhands/hooks.json",
        caller=("OR_APP_NAME=OpenHands",),  # others, too, may set that variable
    ),
    "cursor": Agent(
        turn_end=b'"stop"',
        settings=".cursor/hooks.json",
        caller=("CURSOR_AGENT",),
    ),
    "hermes": Agent(turn_end=b'"pre_verify"', session="HERMES_SESSION_ID"),
    # What any other agent may speak; it sets the variable for its commands.
    "generic": Agent(
        turn_end=b'"Stop"',
        settings=".agents/gitgates/hooks.json",
        session="GITGATES_SESSION",
    ),
}


# Agents that have no settings and run others' hooks; told apart by their payloads.
GUESTS = {"vscode": "gitgates.hosts.agents.vscode"}


def agent_host(name: str) -> AgentHost:
    """Return a coding agent.

    Raises: KeyError if there is none of that name.
    """
    module = GUESTS[name] if name in GUESTS else AGENTS[name].module
    host: AgentHost = _module(module or f"gitgates.hosts.agents.{name}").HOST
    return host


def agent_settings(name: str) -> AgentSettings:
    """Return the settings of a coding agent.

    Raises: KeyError if there is none of that name.
    """
    host = agent_host(name)
    settings: AgentSettings = _module(host.SETTINGS.module).Settings(host)
    return settings


def turn_end_of(name: str) -> bytes:
    """Return what the payload of the end of an agent's turn contains, and few others."""
    return AGENTS[name].turn_end


def project_settings() -> dict[str, str]:
    """Return the settings of a project, from its root, that agents may have: agent → file."""
    return {name: agent.settings for name, agent in AGENTS.items() if agent.settings}


def agent_servers(name: str) -> AgentServers | None:
    """Return the module of a coding agent that knows its servers; None if it has none.

    Raises: KeyError if there is no such agent.
    """
    module = agent_host(name).SERVERS
    servers: AgentServers | None = _module(module) if module else None
    return servers


def calling_session(env: Mapping[str, str]) -> str:
    """Return the session of the agent that runs a command; empty if none does."""
    sessions = (env.get(agent.session, "") for agent in AGENTS.values())
    return next(filter(None, sessions), "")


def is_called_by_agent(env: Mapping[str, str]) -> bool:
    """Return whether an agent runs a command, and not a person."""
    variables = (name for agent in AGENTS.values() for name in (agent.session, *agent.caller))
    for name, _, expected in (variable.partition("=") for variable in variables):
        if env.get(name) and expected in {"", env[name]}:
            return True
    return False


def withheld_from_agents() -> tuple[str, ...]:
    """Return the variables of a session that must be unset for another agent."""
    return tuple(name for agent in AGENTS for name in agent_host(agent).ENVIRONMENT.of_a_session)


def _module(name: str) -> Any:  # noqa: ANN401 - what it offers, a test holds
    __import__(name)
    return sys.modules[name]
