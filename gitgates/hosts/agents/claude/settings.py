"""What is special in Claude Code's settings: its plugin, and sub-agents. Pure.

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from gitgates.core.lifecycle import GATES_OWN_TIME
from gitgates.hosts import definitions
from gitgates.hosts.agents.claude import HOST
from gitgates.hosts.definitions import packaged
from gitgates.hosts.settings.base import HookSettings, InstalledHook, bare, guarded
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind

_SUPPORT = {"darwin": "/Library/Application Support/ClaudeCode"}.get(sys.platform)
_MANAGED_ONLY = "allowManagedHooksOnly"

BARE = bare(HOST.NAME)
# In our plugin, which may be installed without gitgates: then it must do nothing.
PLUGIN = guarded(BARE)
_WAITING = "gitgates: running the gates"
# How long the client waits by default.
_USUAL_OF = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
# The keys that our hooks and their groups may have: the client ignores a hook with a wrong type,
# and with `if`, `async` or another shell, it may not run it, or not wait for it.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "command", "matcher", "statusMessage"), (str,)),
    "timeout": (int, float),
}
_AS_IF_NOT_SAID = (None, False, "", "bash")


# A file with such a name would replace the client's own agent.
_CLIENTS_OWN = ("general-purpose", "explore", "plan", "statusline-setup", "claude")


class ClaudeSettings(AgentSettings):
    """Claude Code's settings."""

    MANAGED = f"{_SUPPORT or '/etc/claude-code'}/managed-settings.json"
    # In a repository: settings, plugins' hooks, and definitions of agents.
    SETTINGS_PATH = re.compile(r"(?:^|/)\.claude/settings[\w.-]*\.json$|(?:^|/)hooks/hooks\.json$")
    AGENT_PATH = re.compile(r"(?:^|/)\.claude/agents/.+\.md$")
    AGENTS = "agents"
    PERMITS = "Bash({}:*)"
    TAKE_PLUGIN_OUT = "in Claude Code: /plugin uninstall gitgates"

    def more_of(self, kind: EventKind) -> dict[str, Any]:
        """Return the message that the client shows while a slow hook runs."""
        return {"statusMessage": _WAITING} if kind in GATES_OWN_TIME else {}

    def read(self, text: str, file: str, scope: str = "") -> HookSettings:
        """Parse a settings file.

        Raises: ConfigError as `add`.
        """
        root = self._parse(text, file)
        table = root.value if root else {}
        troubles = {}
        if scope == "managed" and table.get(_MANAGED_ONLY) is True:
            what = f"`{_MANAGED_ONLY}` is true: Claude Code runs only the hooks in this file"
            troubles[what] = "ask the administrator of this machine"
        plugins = _table(table, "enabledPlugins").items()
        return self.settings_of(table)._replace(
            troubles=troubles,
            env={key: str(value) for key, value in _table(table, "env").items()},
            plugins={name: bool(value) for name, value in plugins},
        )

    def hook_of(self, event: str, group: dict[str, Any], handler: dict[str, Any]) -> InstalledHook:
        """Return a hook, with what keeps the client from waiting for it."""
        hook = super().hook_of(event, group, handler)
        has_timeout = isinstance(handler.get("timeout"), int | float)
        return hook._replace(
            timeout_s=hook.timeout_s
            if has_timeout
            else _USUAL_OF.get(event, HOST.SETTINGS.times.usual_s),
            is_ours=hook.is_ours and "args" not in handler,
            loose=_why_not_awaited(group, handler),
        )

    def plugin(self) -> HookSettings:
        """Return the plugin's hooks; their command tolerates a missing gitgates."""
        settings = self.read(packaged("hooks/hooks.json"), "hooks.json")
        return settings._replace(
            hooks=tuple(hook._replace(command=BARE) for hook in settings.hooks)
        )

    def agent_definitions(self, name: str, model: str) -> dict[str, str]:
        """Return the files for the plugin's agent and command: path → text."""
        skill, agent = definitions.plugin_skill(), definitions.plugin_agent()
        command = packaged(f"skills/{skill}/SKILL.md").replace(f"`gitgates:{agent}`", f"`{name}`")
        agents = {}
        if self.may_define(name):
            agents = {f"{self.AGENTS}/{name}.md": definitions.definition(name, model)}
        # Not a skill: its name would hide one of the client's. The folder has the plugin's name.
        return {**agents, f"commands/gitgates/{skill}.md": command}

    def may_define(self, name: str) -> bool:
        """Return whether a gitgates file can define that agent: not a plugin's, or a pattern."""
        return definitions.can_be_named(name, _CLIENTS_OWN)

    def agent_name(self, text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if there is none."""
        return definitions.name_in(text)


Settings = ClaudeSettings


def _why_not_awaited(group: dict[str, Any], handler: dict[str, Any]) -> str:
    """Return what keeps the client from running a hook, or from waiting for it; or ""."""
    for key, value in {**handler, "matcher": group.get("matcher", "")}.items():
        types = _TYPES.get(key)
        if type(value) not in types if types else value not in _AS_IF_NOT_SAID:
            literal = json.dumps(value)
            return f"its `{key}` is {literal}: Claude Code may skip it, or not wait for it"
    return ""


def _table(table: dict[str, Any], key: str) -> dict[str, Any]:
    subtable = table.get(key)
    return subtable if isinstance(subtable, dict) else {}
