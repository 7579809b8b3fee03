"""The protocol for any other agent: Claude Code's, with a kind for each tool (`tool_kind`).

An agent that calls gitgates needs nothing else: see docs/how-to/generic-hook.md.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.agents.claude import HOST as CLAUDE
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.agent_types import Payload, ToolKind

_NAMES = CLAUDE.TOOLS.names
_KINDS: tuple[ToolKind, ...] = (*_NAMES, "other")
# The names by which patterns in the configuration match tools of a kind.
_USUAL: dict[ToolKind, tuple[str, ...]] = {
    "writes": ("Edit", "Write"),
    "reads": ("Read",),
    "shell": ("Bash",),
    "agent": ("Agent",),
    "skill": ("Skill",),
}


class Generic(agent.AgentHost):
    """Any agent that uses our protocol."""

    NAME = "generic"
    TITLE = "Generic agent"
    DOCUMENT = "[its own page](../how-to/generic-hook.md), whose example a test runs"
    PROTOCOL = agent.Protocol(
        # Here, a block at the end of a step is like one after a tool call.
        events={
            **CLAUDE.PROTOCOL.events,
            "SubagentStop": ("subagent-end", Channels(block=True, stop=True)),
            "TaskCompleted": ("task-end", Channels(block=True, stop=True)),
            "TeammateIdle": ("teammate-idle", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels(block=True, context=True)),
        },
        repeats=False,
        provable=CLAUDE.PROTOCOL.provable,
        answers=agent.Answers(changes="updatedInput"),
    )
    TOOLS = agent.Tools(
        names=_NAMES, other_names=CLAUDE.TOOLS.other_names, path_fields=("file_path", "path")
    )
    FILES = agent.Files(
        folder=".agents/gitgates",
        settings={"project": "hooks.json", "user": "hooks.json"},
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.agents.generic_settings",
        is_shared=True,
        times=agent.HookTimes(usual_s=600.0),
    )

    def tool_kind_of(self, tool: str, fields: Mapping[str, Any]) -> ToolKind:
        """Return a tool's kind: the agent's, or that of Claude Code's tool with that name."""
        stated = fields.get("tool_kind")
        usual = super().tool_kind_of(tool, fields)
        return next((kind for kind in _KINDS if kind == stated), usual)

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return the payload with these fields."""
        payload = super().payload_of(fields, env)
        tool, is_automatic = payload.tool, fields.get("automatic") is True
        names = dict.fromkeys((*tool.other_names, *_USUAL.get(tool.kind, ())))
        others = tuple(name for name in names if name != tool.name)
        return payload._replace(
            tool=tool._replace(other_names=others),
            agent=payload.agent._replace(attended=fields.get("attended") is True),
            prompt=payload.prompt._replace(automatic=is_automatic),
        )

    def unread_in(self, fields: dict[str, Any], payload: Payload) -> str:
        """Return the part of a payload that this host does not know; empty: none."""
        kind = text_of(fields, "tool_kind")
        if kind and kind not in _KINDS:
            return f"the tool_kind `{kind}` (not one of {', '.join(_KINDS)})"
        return super().unread_in(fields, payload)


HOST = Generic()
