"""OpenHands' settings: the hooks of gitgates are in `hooks`, with Claude Code's names.

The client also accepts events at the top of the file, and names such as `stop`. Next to our hooks,
it would silently ignore the former, and refuse to start with the latter.
"""

from __future__ import annotations

from gitgates.core.errors import ConfigError
from gitgates.hosts.agents.openhands import EDITOR, VIEW
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.edit.json_text import Node

_EVENTS = (
    *("PreToolUse", "PostToolUse", "UserPromptSubmit"),
    *("SessionStart", "SessionEnd", "Stop"),
)


class OpenHandsSettings(AgentSettings):
    """OpenHands' settings."""

    def _parse(self, text: str, file: str) -> Node | None:
        root = super()._parse(text, file)
        hooks = root.get("hooks") if root else None
        if root and hooks is None:
            _refuse(root, file, "is next to `hooks`, not in it")
        elif hooks:
            _refuse(hooks, file, "is in lower case", small_only=True)
        return root

    def _own_names(self, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return patterns with the client's tool names."""
        names = super()._own_names(patterns)
        if names is None:
            return None
        supported = [name.removesuffix(VIEW) for name in names if name != f"!{EDITOR}{VIEW}"]
        return tuple(dict.fromkeys(supported)) or None


def _refuse(table: Node, file: str, how: str, *, small_only: bool = False) -> None:
    """Refuse events in another form. Raises: ConfigError."""
    for member in table.parts:
        words = (member.key or "").split("_")
        name = "".join(word[:1].upper() + word[1:] for word in words)
        if name in _EVENTS and not (small_only and name == member.key):
            raise ConfigError(
                f"{file}: the event `{member.key}` {how}",
                f"Write it as `{name}` in `hooks`, which OpenHands also accepts; the file was "
                "not changed.",
            )


Settings = OpenHandsSettings
