"""What is special in Copilot CLI's settings: its sub-agents. Pure.

Source: recorded from Copilot CLI 1.0.102.
"""

from __future__ import annotations

import re

from gitgates.hosts import definitions
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.lifecycle import EventKind

_CLIENTS_OWN = ("general-purpose", "explore", "task", "code-review", "research")
_ELSEWHERE = ("opus", "sonnet", "haiku", "inherit")  # short model names that it does not know


class CopilotSettings(AgentSettings):
    """Copilot CLI's settings: a hooks file for each program that has hooks."""

    TRUST = (
        "start Copilot in this folder and trust it: it silently skips the hooks of untrusted "
        "repositories"
    )
    SETTINGS_PATH = re.compile(r"(?:^|/)\.github/(?:hooks/.+|copilot/settings(?:\.local)?)\.json$")
    AGENTS = "agents"
    AGENT_PATH = re.compile(r"(?:^|/)\.github/agents/.+\.md$")

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return an event's matcher; None for all. It must match the whole name."""
        matcher = super().matcher(kind, tools, agents)
        return f"{matcher}.*" if matcher and matcher.startswith("^(?!") else matcher

    def agent_definitions(self, name: str, model: str) -> dict[str, str]:
        """Return the file for the plugin's agent: path → text."""
        if not self.may_define(name):
            return {}
        model = "" if model in _ELSEWHERE else model
        return {f"{self.AGENTS}/{name}.md": definitions.definition(name, model)}

    def may_define(self, name: str) -> bool:
        """Return whether a gitgates file can define that agent."""
        return definitions.can_be_named(name, _CLIENTS_OWN)

    def agent_name(self, text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if there is none."""
        return definitions.name_in(text)

    def trust_file(self, env: Mapping[str, str]) -> str:
        """Return the file that lists the trusted folders."""
        return f"{self.host.home(env)}/config.json"

    def is_trusted(self, trusted: str, settings_abs: str, _text: str) -> bool | None:
        """Return whether a person has trusted the settings' folder, or a parent."""
        folder, is_project, _file = settings_abs.rpartition("/.github/hooks/")
        if not is_project:
            return True  # a person's own settings
        from gitgates.core.lean_json import loads  # only doctor needs it

        lines = [line for line in trusted.splitlines() if not line.lstrip().startswith("//")]
        try:
            config = loads("\n".join(lines))
            trusted_folders = [
                *config.get("trustedFolders", ()),
                *config.get("trusted_folders", ()),
            ]
        except (ValueError, RecursionError, AttributeError, TypeError):
            return None
        return any(
            f"{folder}/".startswith(f"{str(ancestor).rstrip('/')}/") for ancestor in trusted_folders
        )


Settings = CopilotSettings
