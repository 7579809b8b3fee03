"""The settings of Codex: JSON, whose expressions are Rust's."""

from __future__ import annotations

from gitgates.hosts.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.lifecycle import EventKind


class CodexSettings(AgentSettings):
    """The settings of Codex."""

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return the matcher of an event; None for all.

        An expression cannot leave tools out, and for a wrong one the hook is skipped. We let
        through what is left out.
        """
        found = super().matcher(kind, tools, agents)
        return None if found and "(?!" in found else found


Settings = CodexSettings
