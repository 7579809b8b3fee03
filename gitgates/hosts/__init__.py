"""Each host's own language: its bytes in, an `Event` out; a `Decision` in, its bytes out. Pure.

A coding agent is a module of this package, and a line in `AGENTS`: nothing else knows its words.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.hosts.agent import AgentHost
    from gitgates.hosts.interface import AgentServers
    from gitgates.hosts.settings.json_settings import AgentSettings

DEFAULT_AGENT = "claude"  # whose words stand for those of any agent, where none is known
# As `agent-hook` names it → its module; what stands in the payload of the end of a turn: where we
# are switched off, no other payload is read; and its settings of a project, which are guarded.
AGENTS = {
    "claude": ("gitgates.hosts.agents.claude", b'"Stop"', ".claude/settings.json"),
    "codex": ("gitgates.hosts.agents.codex", b'"Stop"', ".codex/hooks.json"),
    "copilot": ("gitgates.hosts.agents.copilot", b'"Stop"', ".github/hooks/gitgates.json"),
    "gemini": ("gitgates.hosts.agents.gemini", b'"AfterAgent"', ".gemini/settings.json"),
    "qwen": ("gitgates.hosts.agents.qwen", b'"Stop"', ".qwen/settings.json"),
    "droid": ("gitgates.hosts.agents.droid", b'"Stop"', ".factory/hooks.json"),
    "vibe": ("gitgates.hosts.agents.vibe", b'"post_agent"', ".vibe/hooks.toml"),
    "kimi": ("gitgates.hosts.agents.kimi", b'"Stop"', ""),
    "opencode": ("gitgates.hosts.agents.opencode", b'"Stop"', ".opencode/plugins/gitgates.js"),
    "kilo": ("gitgates.hosts.agents.kilo", b'"Stop"', ".kilo/plugins/gitgates.js"),
    "openhands": ("gitgates.hosts.agents.openhands", b'"Stop"', ".openhands/hooks.json"),
    "hermes": ("gitgates.hosts.agents.hermes", b'"pre_verify"', ""),
}


# Agents that have no settings and run the hooks of others; told apart by their payloads.
GUESTS = {"vscode": "gitgates.hosts.agents.vscode"}


def agent_host(name: str) -> AgentHost:
    """Return a coding agent.

    Raises: KeyError if there is none of that name.
    """
    found: AgentHost = _module(GUESTS[name] if name in GUESTS else AGENTS[name][0]).HOST
    return found


def agent_settings(name: str) -> AgentSettings:
    """Return the settings of a coding agent.

    Raises: KeyError if there is none of that name.
    """
    host = agent_host(name)
    found: AgentSettings = _module(host.SETTINGS.module).Settings(host)
    return found


def turn_end_of(name: str) -> bytes:
    """Return what the payload of the end of an agent's turn contains, and few others."""
    return AGENTS[name][1]


def project_settings() -> dict[str, str]:
    """Return the settings of a project, from its root, that agents may have: agent → file."""
    return {name: file for name, (_module, _end, file) in AGENTS.items() if file}


def agent_servers(name: str) -> AgentServers | None:
    """Return the module of a coding agent that knows its servers; None if it has none.

    Raises: KeyError if there is no such agent.
    """
    module = agent_host(name).SERVERS
    found: AgentServers | None = _module(module) if module else None
    return found


def calling_session(env: Mapping[str, str]) -> str:
    """Return the session of the agent that runs a command; empty if none does."""
    found = (agent_host(name).session_of(env) for name in AGENTS)
    return next((session for session in found if session), "")


def is_called_by_agent(env: Mapping[str, str]) -> bool:
    """Return whether an agent runs a command, and not a person."""
    return any(agent_host(name).is_caller(env) for name in AGENTS)


def withheld_from_agents() -> tuple[str, ...]:
    """Return the variables of a session that must be unset for another agent."""
    return tuple(name for agent in AGENTS for name in agent_host(agent).ENVIRONMENT.of_a_session)


def _module(name: str) -> Any:  # noqa: ANN401 - what it offers, a test holds
    __import__(name)
    return sys.modules[name]
