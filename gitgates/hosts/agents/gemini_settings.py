"""Gemini CLI's settings: like other agents', with a list of disabled hooks. Pure.

Source: recorded from gemini-cli 0.61.
"""

from __future__ import annotations

import os

from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.hosts.settings.base import HookSettings

_DISABLED = "`hooksConfig.disabled` lists them: Gemini CLI does not run the gitgates hooks"


class GeminiSettings(AgentSettings):
    """Gemini CLI's settings."""

    TRUST = "start gemini in this folder once, and trust it: `gemini -p` refuses to start elsewhere"

    def settings_of(self, table: dict[str, Any]) -> HookSettings:
        """Return the hooks in a settings file's table."""
        settings = super().settings_of(table)
        switches = table.get("hooksConfig")
        disabled = switches.get("disabled") if isinstance(switches, dict) else None
        if isinstance(disabled, list) and any(
            hook.command in disabled for hook in settings.our_hooks
        ):
            settings = settings._replace(
                troubles={_DISABLED: "remove them from `hooksConfig.disabled`"}
            )
        return settings

    def trust_file(self, env: Mapping[str, str]) -> str:
        """Return the file that lists the trusted folders."""
        return f"{self.host.home(env)}/trustedFolders.json"

    def is_trusted(self, trusted: str, settings_abs: str, _text: str) -> bool | None:
        """Return whether a person trusts a project's folder, by the longest matching rule.

        None if there is no rule: the settings may require none.
        """
        from gitgates.core.limits import parse_json  # only doctor needs it

        try:
            rules = parse_json(trusted)
        except ValueError:
            return None
        if not isinstance(rules, dict):
            return None
        folder = f"{os.path.dirname(os.path.dirname(settings_abs))}/"
        matching = {}
        for path, rule in rules.items():
            within = os.path.dirname(path) if rule == "TRUST_PARENT" else path
            if folder.startswith(f"{within.rstrip('/')}/"):
                matching[path] = rule
        return matching[max(matching, key=len)] != "DO_NOT_TRUST" if matching else None


Settings = GeminiSettings
