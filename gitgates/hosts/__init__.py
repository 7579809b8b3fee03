"""Convert each host's bytes to an `Event`, and a `Decision` to the host's bytes. Pure.

A coding agent is a module of this package and a line in `AGENTS`: only they contain its names.
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

DEFAULT_AGENT = "claude"  # whose names are used if the agent is unknown


class Agent(Record):
    """What is needed of an agent without loading its module."""

    # Part of the payload at the end of a turn: if gitgates is off, no other payload is decoded.
    turn_end: bytes
    settings: str = ""  # a project's settings, which are guarded; empty: there are none
    session: str = ""  # the variable that tells its commands the session
    caller: tuple[str, ...] = ()  # variables that its commands have: NAME, or NAME=VALUE
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
    # For any other agent, which must set the variable for its commands.
    "generic": Agent(
        turn_end=b'"Stop"',
        settings=".agents/gitgates/hooks.json",
        session="GITGATES_SESSION",
    ),
}


# Agents without settings that run other agents' hooks; their payloads identify them.
GUESTS = {"vscode": "gitgates.hosts.agents.vscode"}


def agent_host(name: str) -> AgentHost:
    """Return a coding agent. Raises: KeyError if the name is unknown."""
    module = GUESTS[name] if name in GUESTS else AGENTS[name].module
    host: AgentHost = _module(module or f"gitgates.hosts.agents.{name}").HOST
    return host


def agent_settings(name: str) -> AgentSettings:
    """Return a coding agent's settings. Raises: KeyError if the name is unknown."""
    host = agent_host(name)
    settings: AgentSettings = _module(host.SETTINGS.module).Settings(host)
    return settings


def turn_end_of(name: str) -> bytes:
    """Return bytes that the payload at the end of an agent's turn contains, and few others do."""
    return AGENTS[name].turn_end


def project_settings() -> dict[str, str]:
    """Return the settings that agents may have in a project: agent → file, relative to the root."""
    return {name: agent.settings for name, agent in AGENTS.items() if agent.settings}


def agent_servers(name: str) -> AgentServers | None:
    """Return the module for a coding agent's servers; None if there is none.

    Raises: KeyError if the name is unknown.
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
    """Return the variables of a session that another agent must not inherit."""
    return tuple(name for agent in AGENTS for name in agent_host(agent).ENVIRONMENT.of_a_session)


def _module(name: str) -> Any:  # noqa: ANN401 - what it offers, a test holds
    __import__(name)
    return sys.modules[name]
