"""The file that names the events that an agent of any kind has to send. Pure."""

from __future__ import annotations

from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind


class GenericSettings(AgentSettings):
    """Without matchers: the agent's names of its tools are not known."""

    def matcher(
        self, _kind: EventKind, _tools: tuple[str, ...] | None, _agents: tuple[str, ...] | None
    ) -> str | None:
        """Return the matcher of an event: none."""
        return None


Settings = GenericSettings
