"""GitHub Copilot CLI as a host.

It denies a tool call if a hook before it exits with a status other than 0, and it also runs the
hooks in Claude Code's project settings. In a sub-agent, the session of most events is the
sub-agent's id, and another field names the agent that started it: the session, unless that is a
sub-agent itself, whose events belong to a session of their own. Instead of single edits, some
models send patches, whose text replaces the object with fields.

Source: recorded from Copilot CLI 1.0.102.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_OF_SUBAGENTS = ("Stop", "UserPromptSubmit")  # sub-agents, too, where an answer does nothing
_PATCH = "patch"
_SERVER = "gitgates-"  # the prefix of the tool names of gitgates' server


class Copilot(agent.AgentHost):
    """GitHub Copilot CLI."""

    NAME = "copilot"
    TITLE = "Copilot CLI"
    PROGRAMS = ("copilot", "@github/copilot")
    AUTO_APPROVE_OPTIONS = ("--allow-all-tools", "--allow-all", "--yolo")
    TESTED = "1.0.102"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            ("COPILOT_AGENT_SESSION_ID", "copilot", "the session of the agent that runs a command"),
            ("COPILOT_CLI", "copilot", "set if an agent runs the command, not a person"),
            (
                "COPILOT_PROJECT_DIR",
                "copilot",
                "the folder in which the agent's session was started",
            ),
            ("COPILOT_HOME", "you", "the folder of Copilot's user settings, instead of ~/.copilot"),
        ),
        project="COPILOT_PROJECT_DIR",
        secrets=(
            "COPILOT_GITHUB_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_PROVIDER_BEARER_TOKEN",
        ),
        of_a_session=(
            *("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR"),
        ),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True, context=True)),
            "PostToolUse": ("after-tool", Channels(block=True, context=True)),
            "PostToolUseFailure": ("tool-failed", Channels(context=True)),
            "SubagentStart": ("subagent-start", Channels(context=True)),
            "SubagentStop": ("subagent-end", Channels(block=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        ignored=("PermissionRequest", "UserPromptTransformed", "ErrorOccurred", "Notification"),
        returns_reason=True,
        provable=("turn-end", "subagent-end", "before-tool", "prompt"),
        answers=agent.Answers(
            tells="top",
            only_tells=("after-tool",),
            silent_stops=("turn-end",),
            changes="updatedInput",
        ),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("Write", "Edit"),
            "reads": ("Read", "Grep", "Glob"),
            "shell": ("Bash",),
            "agent": ("Agent",),
            "skill": ("skill",),
            "report": (),
            "ours": (f"{_SERVER}*",),
            "harmless": (
                *("read_bash", "stop_bash", "list_bash"),
                *("read_agent", "list_agents", "write_agent"),
                *("sql", "session_store_sql", "update_todo", "tool_search_tool", "TodoWrite"),
                *("fetch_copilot_cli_documentation", "AskUserQuestion", "WebFetch", "WebSearch"),
            ),
        },
        other_names={"Edit": ("MultiEdit",), "Agent": ("Task",)},
        path_fields=("path",),
        patch_field=_PATCH,
    )
    FILES = agent.Files(
        folder=".github",
        home=".copilot",
        home_variable="COPILOT_HOME",
        settings={"project": "hooks/gitgates.json", "user": "hooks/gitgates.json"},
        start_only=("project",),
        agents=("agents/{}.md", "agents/{}.agent.md"),
        skills=("skills/{}/SKILL.md",),
    )
    SETTINGS = agent.SettingsFormat(
        by_shell=True,
        is_shared=True,
        module="gitgates.hosts.agents.copilot_settings",
        head={"version": 1},
        guarded=True,
        times=agent.HookTimes(usual_s=30.0),
    )
    OFF = agent.DisableSwitch(
        key="disableAllHooks",
        files=(
            *(".github/copilot/settings.json", ".github/copilot/settings.local.json"),
            *(".claude/settings.json", ".claude/settings.local.json"),
        ),
    )

    def guest_of(self, _fields: dict[str, Any], env: Mapping[str, str]) -> str:
        """Return the module of another agent that may have sent it: Copilot names its folder."""
        return "" if env.get(self.ENVIRONMENT.project) else "gitgates.hosts.agents.vscode"

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        event, agent_id = fields.get("hook_event_name"), fields.get("agent_id")
        if event is None and agent_id and "agentName" in fields:
            event = "SubagentStart"  # the only event without its name
        if agent_id and event in _OF_SUBAGENTS:
            event = f"{event} of a sub-agent"
        result, patch = fields.get("tool_result"), fields.get("tool_input")
        session = fields.get("session_id") or fields.get("sessionId")
        fields = {
            **fields,
            "hook_event_name": event,
            "session_id": (agent_id and fields.get("parent_agent_id")) or session,
            "event_id": str(fields.get("timestamp") or ""),
            "transcript_path": fields.get("transcript_path") or fields.get("transcriptPath"),
        }
        if fields.get("source") == "new":
            fields["source"] = "startup"
        if isinstance(result, dict):
            fields["tool_response"] = {"success": result.get("result_type") == "success"}
        tool = text_of(fields, "tool_name")
        if tool.startswith(_SERVER):
            fields["tool_name"] = f"{self.TOOLS.server_prefix}{tool.removeprefix(_SERVER)}"
        if isinstance(patch, str):
            fields["tool_input"] = {_PATCH: patch}
        return fields

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        return {"tool_name": "Write", "tool_input": {"path": path_abs, "file_text": "done\n"}}


HOST = Copilot()
