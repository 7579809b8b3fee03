"""Mistral Vibe's settings: hooks that it runs only in a folder that a person trusts.

Source: recorded from mistral-vibe 3.0.
"""

from __future__ import annotations

from gitgates.hosts.settings.block_settings import BlockSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class VibeSettings(BlockSettings):
    """Vibe's settings."""

    TRUST = "start Vibe here and trust this folder: otherwise, it silently skips its hooks"

    def trust_file(self, env: Mapping[str, str]) -> str:
        """Return the file that lists the trusted folders."""
        return f"{self.host.home(env)}/trusted_folders.toml"

    def is_trusted(self, trusted: str, settings_abs: str, _text: str) -> bool | None:
        """Return whether a person has trusted a settings file's folder, or a parent."""
        import tomllib  # only doctor needs it

        from gitgates.core.limits import parse_toml

        try:
            folders = parse_toml(trusted)
        except tomllib.TOMLDecodeError:
            return None
        if not all(
            isinstance(folders.get(answer, []), list) for answer in ("trusted", "untrusted")
        ):
            return None
        folder = settings_abs.rpartition(f"/{self.host.FILES.folder}/")[0]
        while folder:
            for answer in ("untrusted", "trusted"):
                if folder in (folders.get(answer, [])):
                    return answer == "trusted"
            folder = folder.rpartition("/")[0]
        return False


Settings = VibeSettings
