"""The file that names the events that any other agent must send. Pure."""

from __future__ import annotations

from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind


class GenericSettings(AgentSettings):
    """Settings without matchers: the agent's tool names are unknown."""

    def matcher(
        self, _kind: EventKind, _tools: tuple[str, ...] | None, _agents: tuple[str, ...] | None
    ) -> str | None:
        """Return an event's matcher: none."""
        return None


Settings = GenericSettings
