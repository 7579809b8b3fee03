"""Gemini CLI's settings: a list of hooks that are not run, beside what others have. Pure.

Source: recorded from gemini-cli 0.61.
"""

from __future__ import annotations

from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.hosts.settings.base import HookSettings

_LISTED = "`hooksConfig.disabled` lists them: Gemini CLI does not run our hooks"


class GeminiSettings(AgentSettings):
    """Gemini CLI's settings."""

    def settings_of(self, table: dict[str, Any]) -> HookSettings:
        """Return what the table of a settings file says."""
        found = super().settings_of(table)
        switches = table.get("hooksConfig")
        listed = switches.get("disabled") if isinstance(switches, dict) else None
        if isinstance(listed, list) and any(one.command in listed for one in found.ours):
            found = found._replace(troubles={_LISTED: "take them out of `hooksConfig.disabled`"})
        return found


Settings = GeminiSettings
