"""Codex's settings: JSON that it parses strictly, and hooks that it runs only if trusted.

Source: recorded from codex 0.169: what /hooks writes into config.toml, and `hooks/list` of
`codex app-server`.
"""

from __future__ import annotations

import hashlib
import json
import re

from gitgates.core.errors import ConfigError
from gitgates.hosts.settings.base import HookSettings
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.core.lifecycle import EventKind

_KEYS = ("description", "hooks")
_NO_MATCHER = ("UserPromptSubmit", "Stop")
_HASHED = ("command", "timeout", "statusMessage")
_USUAL_S = 600


class CodexSettings(AgentSettings):
    """Codex's settings."""

    TRUST = "in Codex, type /hooks and trust them: it silently skips untrusted hooks"
    SANDBOX = "codex --add-dir"  # in its config.toml, one that is gone would let it write nothing
    FREE = ()
    OF_MAIN = True

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return an event's matcher; None for all.

        Rust's regular expressions cannot exclude tools, and an invalid one makes Codex skip the
        hook. Therefore, the hook also runs for excluded tools, and gitgates ignores them.
        """
        matcher = super().matcher(kind, tools, agents)
        return None if matcher and "(?!" in matcher else matcher

    def read(self, text: str, file: str, scope: str = "") -> HookSettings:
        """Parse a settings file.

        Raises: ConfigError as `add`.
        """
        root = self._parse(text, file)
        reasons = [
            f"has the key `{key}`" for key in (root.value if root else ()) if key not in _KEYS
        ]
        reasons += ["begins with a byte order mark"] if text.startswith("\ufeff") else []
        troubles = {f"{reason}: {self.host.TITLE} ignores the file": "" for reason in reasons}
        return super().read(text, file, scope)._replace(troubles=troubles)

    def is_off(self, text: str, file: str) -> bool | None:
        """Return whether its configuration disables all hooks; None: unspecified.

        Raises: ConfigError if it cannot be read.
        """
        import tomllib  # only needed if it mentions hooks

        from gitgates.core.limits import parse_toml

        try:
            return self._is_off(parse_toml(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{file}: {error}", "fix the file") from None

    def trust_file(self, env: Mapping[str, str]) -> str:
        """Return the file that lists the trusted hooks."""
        home = self.host.home(env)
        return f"{home}/config.toml" if home else ""

    def is_trusted(self, trusted: str, settings_abs: str, text: str) -> bool | None:
        """Return whether each gitgates hook is trusted in its current form; None: unknown."""
        import tomllib  # only doctor needs it

        from gitgates.core.limits import parse_toml

        try:
            hooks = parse_toml(trusted).get("hooks", {})
            states = {key: dict(state) for key, state in hooks.get("state", {}).items()}
        except (tomllib.TOMLDecodeError, AttributeError, TypeError, ValueError):
            return None
        settings = self._parse(text, settings_abs)
        return all(
            states.get(f"{settings_abs}:{key}", {}).get("trusted_hash") == value
            and states[f"{settings_abs}:{key}"].get("enabled") is not False
            for key, value in self._hashes(settings.value.get("hooks", {}) if settings else {})
        )

    def _hashes(self, hooks: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the key of each gitgates hook, and the hash by which it is trusted."""
        for event, groups in hooks.items():
            name = re.sub(r"\B([A-Z])", r"_\1", event).lower()
            for number, group in enumerate(groups):
                handlers = group.get("hooks") if isinstance(group, dict) else None
                for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                    if self._is_removable(handler):
                        matcher = None if event in _NO_MATCHER else group.get("matcher")
                        yield f"{name}:{number}:{index}", _hash(name, matcher, handler)


def _hash(name: str, matcher: object, hook: dict[str, Any]) -> str:
    handler = {"async": False, "timeout": _USUAL_S, "type": "command"}
    handler |= {key: hook[key] for key in _HASHED if key in hook}
    whole = {"event_name": name, "hooks": [handler], "matcher": matcher}
    identity = {key: value for key, value in whole.items() if value is not None}
    text = json.dumps(identity, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


Settings = CodexSettings
