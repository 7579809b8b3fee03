"""Claude Code's settings, where they differ from other agents': its plugin, and sub-agents. Pure.

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
# In our plugin, which may be there where we are not: then it must not show.
PLUGIN = guarded(BARE)
_WAITING = "gitgates: running the gates"
# What the client waits, where the settings say nothing.
_USUAL_OF = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
# What a hook of ours and its group may have: if the client finds another type, it leaves it
# out, and with `if`, `async` or another shell, it may not run it, or not wait for it.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "command", "matcher", "statusMessage"), (str,)),
    "timeout": (int, float),
}
_AS_IF_NOT_SAID = (None, False, "", "bash")


# A file of that name would take the place of the client's own agent.
_CLIENTS_OWN = ("general-purpose", "explore", "plan", "statusline-setup", "claude")


class ClaudeSettings(AgentSettings):
    """Claude Code's settings."""

    MANAGED = f"{_SUPPORT or '/etc/claude-code'}/managed-settings.json"
    # In a repository: settings and the hooks of plugins, and what defines agents.
    SETTINGS_PATH = re.compile(r"(?:^|/)\.claude/settings[\w.-]*\.json$|(?:^|/)hooks/hooks\.json$")
    AGENT_PATH = re.compile(r"(?:^|/)\.claude/agents/.+\.md$")
    AGENTS = "agents"
    PERMITS = "Bash({}:*)"
    TAKE_PLUGIN_OUT = "in Claude Code: /plugin uninstall gitgates"

    def more_of(self, kind: EventKind) -> dict[str, Any]:
        """Return what the client shows meanwhile, if that may take long."""
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
        """Return one hook, and what keeps the client from waiting for it."""
        hook = super().hook_of(event, group, handler)
        has_timeout = isinstance(handler.get("timeout"), int | float)
        return hook._replace(
            timeout_s=hook.timeout_s
            if has_timeout
            else _USUAL_OF.get(event, HOST.SETTINGS.usual_s),
            is_ours=hook.is_ours and "args" not in handler,
            loose=_why_not_awaited(group, handler),
        )

    def plugin(self) -> HookSettings:
        """Return what the plugin says; its command tolerates a missing gitgates."""
        settings = self.read(packaged("hooks/hooks.json"), "hooks.json")
        return settings._replace(
            hooks=tuple(hook._replace(command=BARE) for hook in settings.hooks)
        )

    def agent_definitions(self, name: str, model: str) -> dict[str, str]:
        """Return the files of the agent and the command of the plugin: path → text."""
        skill, agent = definitions.plugin_skill(), definitions.plugin_agent()
        command = packaged(f"skills/{skill}/SKILL.md").replace(f"`gitgates:{agent}`", f"`{name}`")
        agents = {}
        if self.may_define(name):
            agents = {f"{self.AGENTS}/{name}.md": definitions.definition(name, model)}
        # No skill, whose name would hide one of the client's own; the folder is the plugin's name.
        return {**agents, f"commands/gitgates/{skill}.md": command}

    def may_define(self, name: str) -> bool:
        """Return whether a gitgates file can define that agent: not for a plugin, or a pattern."""
        return definitions.can_be_named(name, _CLIENTS_OWN)

    def agent_name(self, text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if none."""
        return definitions.name_in(text)


Settings = ClaudeSettings


def _why_not_awaited(group: dict[str, Any], handler: dict[str, Any]) -> str:
    """Return what keeps the client from running a hook, or from waiting for it."""
    for key, value in {**handler, "matcher": group.get("matcher", "")}.items():
        types = _TYPES.get(key)
        if type(value) not in types if types else value not in _AS_IF_NOT_SAID:
            literal = json.dumps(value)
            return f"its `{key}` is {literal}: Claude Code may skip it, or not wait for it"
    return ""


def _table(table: dict[str, Any], key: str) -> dict[str, Any]:
    subtable = table.get(key)
    return subtable if isinstance(subtable, dict) else {}
