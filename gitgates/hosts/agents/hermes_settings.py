"""Hermes' settings: hooks that it runs only after a person has approved each of them.

Source: recorded from hermes-agent 0.19.0.
"""

from __future__ import annotations

from gitgates.core.limits import parse_json
from gitgates.hosts.settings.yaml_settings import YamlSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ALL = "hooks_auto_accept"


class HermesSettings(YamlSettings):
    """Hermes' settings."""

    TRUST = "start Hermes with --accept-hooks: otherwise, it silently skips untrusted hooks"
    FREE = ()

    def trust_file(self, env: Mapping[str, str]) -> str:
        """Return the file that lists the trusted hooks."""
        return f"{self.host.home(env)}/shell-hooks-allowlist.json"

    def is_trusted(self, trusted: str, _settings_abs: str, text: str) -> bool | None:
        """Return whether each gitgates hook is approved in its current form; None: unknown."""
        settings = self.load(text, "")
        if settings.get(_ALL) is True:
            return True
        try:
            approved = [
                (approval["event"], approval["command"])
                for approval in parse_json(trusted)["approvals"]
            ]
        except (ValueError, LookupError, TypeError):
            return None
        hooks = [(event, hook) for event, hook in self.handlers(settings, "") if self.is_ours(hook)]
        return all((event, hook["command"]) in approved for event, hook in hooks)


Settings = HermesSettings
