"""Kimi Code as a host.

A tool call and a turn's end can be refused, by the same answer; at other events, only text for a
prompt reaches anybody. At a prompt, JSON in any other form counts as text. A sub-agent's events
look like the agent's own.

Source: recorded from kimi-code 2.1.0.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind

_MOST_S = 600  # with a longer timeout, the client drops all hooks


class Kimi(agent.AgentHost):
    """Kimi Code."""

    NAME = "kimi"
    TITLE = "Kimi Code"
    PROGRAMS = ("kimi", "@moonshot-ai/kimi-code", "kimi-cli")
    AUTO_APPROVE_OPTIONS = ("--auto", "--yolo", "-y")
    TESTED = "2.1.0"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            (
                "KIMI_CODE_HOME",
                "you",
                "the folder of Kimi Code's user settings, instead of ~/.kimi-code",
            ),
        ),
        secrets=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels()),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True)),
            "PostToolUse": ("after-tool", Channels()),
            "PostToolUseFailure": ("tool-failed", Channels()),
            "SubagentStart": ("subagent-start", Channels()),
            "SubagentStop": ("subagent-end", Channels()),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels()),
            "PostCompact": ("after-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        tells_edits=False,
        repeats=False,
        hands_tokens=False,
        cannot={
            "session-start": (
                "Kimi Code does not pass the rules to the agent: write them to "
                "AGENTS.md with install-hooks --agents-md"
            ),
            "after-tool": (
                "Kimi Code shows nobody the output of gates there, and need not wait for them"
            ),
            "subagent-end": "Kimi Code cannot block a sub-agent there",
            "turn-end": (
                "Kimi Code fires it once per turn: later changes are not checked, and "
                "messages are not shown to the person"
            ),
        },
        answers=agent.Answers(blocks="permission", silent_stops=("turn-end",), person=""),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("Edit", "Write"),
            "reads": ("Read", "Grep", "Glob"),
            "shell": ("Bash",),
            "agent": ("Agent", "AgentSwarm"),
            "skill": ("Skill",),
            "report": (),
            "ours": ("mcp__gitgates__*",),
            "harmless": (
                *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "FetchURL", "WebSearch"),
                *("TaskList", "TaskOutput", "TaskStop", "TodoList", "WaitFor"),
                *("CreateGoal", "GetGoal", "SetGoalBudget", "UpdateGoal"),
                *("CronCreate", "CronDelete", "CronList"),
            ),
        },
        other_names={
            "Edit": ("MultiEdit",),
            "Agent": ("Task",),
            "AgentSwarm": ("Agent", "Task"),
        },
    )
    FILES = agent.Files(
        folder=".kimi-code",
        home_variable="KIMI_CODE_HOME",
        settings={"user": "config.toml"},
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.settings.block_settings",
        fields={"event": "event"},
        whole=True,
        expression="^({})$",
        times=agent.HookTimes(
            usual_s=30.0, most_s={kind: _MOST_S for kind, _can in PROTOCOL.events.values()}
        ),
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        fields = {
            **fields,
            "tool_use_id": fields.get("tool_call_id"),
            "agent_type": fields.get("agent_name"),
            "last_assistant_message": fields.get("response"),
        }
        prompt, tool_input = fields.get("prompt"), fields.get("tool_input")
        if isinstance(prompt, list):
            parts = [text_of(part, "text") for part in prompt if isinstance(part, dict)]
            fields["prompt"] = "\n".join(filter(None, parts))
        if isinstance(tool_input, dict) and tool_input.get("mode") == "append":
            rest = {key: tool_input[key] for key in tool_input if key != "content"}
            fields["tool_input"] = {
                **rest,
                "old_string": "",
                "new_string": text_of(tool_input, "content"),
            }
        return fields

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the answer with a text for the agent."""
        return {"message": text}


HOST = Kimi()
