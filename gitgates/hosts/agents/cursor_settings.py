"""Cursor's settings: hooks without groups, in a file that one error invalidates. Pure.

Source: cursor.com/docs/hooks, 2026-11; that one unknown event voids the file: reported by users.
"""

from __future__ import annotations

import sys
from typing import Any

from gitgates.core.lifecycle import ENDINGS
from gitgates.hosts.agents.cursor import OF_TOOLS
from gitgates.hosts.settings.base import HookSettings
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind

_MOST_BLOCKS = 50
_MANAGED = {"darwin": "/Library/Application Support/Cursor/hooks.json"}


class CursorSettings(AgentSettings):
    """Cursor's settings."""

    MANAGED = _MANAGED.get(sys.platform, "/etc/cursor/hooks.json")
    TRUST = "open this folder in Cursor and trust it: it skips the hooks of other workspaces"

    def more_of(self, kind: EventKind) -> dict[str, Any]:
        """Return more keys of an event's hook.

        Cursor's default limit is 5. Our own limits decide how often it is blocked; this one ends a
        loop if they cannot be read.
        """
        return {"loop_limit": _MOST_BLOCKS} if kind in ENDINGS else {}

    def settings_of(self, table: dict[str, Any]) -> HookSettings:
        """Return the hooks in a settings file's table."""
        known = {*self.host.PROTOCOL.events, *self.host.PROTOCOL.ignored, *OF_TOOLS}
        unknown = [event for event in table.get("hooks", {}) if event not in known]
        what = f"has the event `{next(iter(unknown), '')}`: Cursor ignores a file with unknown ones"
        troubles = {what: "remove it, or check how it is spelled"} if unknown else {}
        return super().settings_of(table)._replace(troubles=troubles)


Settings = CursorSettings
