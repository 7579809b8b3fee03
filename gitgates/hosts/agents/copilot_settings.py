"""Copilot CLI's settings, beside what those of other agents have: its sub-agents. Pure.

Source: recorded from Copilot CLI 1.0.102.
"""

from __future__ import annotations

import re

from gitgates.hosts import definitions
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind

_CLIENTS_OWN = ("general-purpose", "explore", "task", "code-review", "research")
_ELSEWHERE = ("opus", "sonnet", "haiku", "inherit")  # short names of models that it does not know


class CopilotSettings(AgentSettings):
    """Copilot CLI's settings: one file of hooks for each program that has some."""

    SETTINGS_PATH = re.compile(r"(?:^|/)\.github/(?:hooks/.+|copilot/settings(?:\.local)?)\.json$")
    AGENTS = "agents"
    AGENT_PATH = re.compile(r"(?:^|/)\.github/agents/.+\.md$")

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return the matcher of an event; None for all. It has to fit the whole name."""
        found = super().matcher(kind, tools, agents)
        return f"{found}.*" if found and found.startswith("^(?!") else found

    def agent_definitions(self, name: str, model: str) -> dict[str, str]:
        """Return the file of the agent of our plugin: path → text."""
        if not self.may_define(name):
            return {}
        model = "" if model in _ELSEWHERE else model
        return {f"{self.AGENTS}/{name}.md": definitions.definition(name, model)}

    def may_define(self, name: str) -> bool:
        """Return whether a file of ours can be that agent."""
        return definitions.can_be_named(name, _CLIENTS_OWN)

    def agent_name(self, text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if none."""
        return definitions.name_in(text)


Settings = CopilotSettings
