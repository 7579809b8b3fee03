"""Claude Code as a host: its events, its tools, its protocol and its transcripts. Pure.

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels, Payload
from gitgates.core.lean_json import loads
from gitgates.hosts import agent
from gitgates.hosts.payload import tables_in, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# (name, who sets it, what it does): the ones that gitgates reads, for the documentation
VARIABLES = (
    ("CLAUDE_PROJECT_DIR", "claude", "the folder in which the agent's session was started"),
    ("CLAUDE_CONFIG_DIR", "you", "the folder of Claude Code's user settings, instead of ~/.claude"),
    ("CLAUDE_PLUGIN_ROOT", "claude", "the folder of the plugin that this hook belongs to"),
    ("CLAUDE_CODE_SESSION_ID", "claude", "the session of the agent that runs a command"),
    ("CLAUDECODE", "claude", "set if an agent runs the command, not a person"),
    ("CLAUDE_CODE_REMOTE", "claude", "`true` in a cloud session: see the key `cloud_hooks`"),
    ("CLAUDE_CODE_SESSION_ATTENDED", "claude", "`0` if there is nobody to permit a tool call"),
)
_PROJECT, _CONFIG, _PLUGIN, _SESSION, _CALLER, _CLOUD, _ATTENDED = (
    name for name, _by, _meaning in VARIABLES
)

_NOT_OURS = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
# What the client sends instead of a prompt when a background task has a message.
_PSEUDO_PREFIXES = ("<task-notification>",)
_PSEUDO_SOURCES = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
_SCHEDULERS = ("ScheduleWakeup", "CronCreate")


class Claude(agent.AgentHost):
    """Claude Code."""

    NAME = "claude"
    TITLE = "Claude Code"
    PROGRAMS = ("claude", "@anthropic-ai/claude-code")
    AUTO_APPROVE_OPTIONS = (
        "--dangerously-skip-permissions",
        "--allow-dangerously-skip-permissions",
        "--bare",
        "bypassPermissions",
    )
    TESTED = "2.1.329"
    SERVERS = "gitgates.hosts.agents.claude.mcp"
    ENVIRONMENT = agent.Environment(
        documented=VARIABLES,
        project=_PROJECT,
        cloud=_CLOUD,
        secrets=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_ENV_FILE",
        ),
        # The client passes its whole environment to its hooks (recorded from the client).
        # Another agent would use the session as its own, or refuse to start inside it.
        of_a_session=(_CALLER, _SESSION, "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_ENV_FILE"),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "UserPromptExpansion": (
                "prompt-expansion",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True, ask=True, stop=True, context=True)),
            "PostToolUse": ("after-tool", Channels(block=True, stop=True, context=True)),
            "PostToolUseFailure": ("tool-failed", Channels(context=True)),
            # A block would end the turn without telling the agent anything.
            "PostToolBatch": ("after-batch", Channels(block=True, stop=True, context=True)),
            "SubagentStart": ("subagent-start", Channels(context=True)),
            # It ignores a stop, and a block in the same answer.
            "SubagentStop": ("subagent-end", Channels(block=True)),
            # A task also ignores a stop. Only interactive sessions have teammates.
            "TaskCompleted": ("task-end", Channels(block=True)),
            "TeammateIdle": ("teammate-idle", Channels(block=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "StopFailure": ("turn-failed", Channels()),
            "PreCompact": ("before-compact", Channels(block=True)),
            "PostCompact": ("after-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        ignored=(
            *("Notification", "PreModelSwitch", "PostModelSwitch", "Setup"),
            *("PermissionRequest", "PermissionDenied"),
            *("TaskCreated", "Elicitation", "ElicitationResult"),
            *("ConfigChange", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded"),
            *("CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay"),
        ),
        provable=(
            *("turn-end", "subagent-end", "task-end", "teammate-idle", "after-tool"),
            "before-tool",
            *("prompt", "prompt-expansion", "before-compact"),
        ),
        answers=agent.Answers(only_tells=("after-batch",), changes="updatedInput"),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("Edit", "Write", "NotebookEdit"),  # their argument is the file
            "reads": ("Read", "Grep", "Glob"),
            "shell": ("Bash", "PowerShell"),
            "agent": ("Agent",),
            "skill": ("Skill",),
            "report": ("ReportFindings",),
            "ours": ("mcp__gitgates__*",),
            "harmless": (
                *("LSP", "WebFetch", "WebSearch", "ToolSearch", "ListMcpResourcesTool"),
                *("ReadMcpResourceTool", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
                *("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
                *("ScheduleWakeup", "CronCreate", "CronDelete", "CronList"),
            ),
        },
        older={
            "MultiEdit": "writes",
            "LS": "reads",
            "NotebookRead": "reads",
            "Task": "agent",
            "SlashCommand": "skill",
        },
        other_names={"Agent": ("Task",)},  # in other versions
        path_fields=("file_path", "notebook_path"),
    )
    FILES = agent.Files(
        folder=".claude",
        home_variable=_CONFIG,
        settings={
            "project": "settings.json",
            "local": "settings.local.json",
            "user": "settings.json",
        },
        start_only=("project",),
        agents=("agents/{}.md",),
        skills=("skills/{}/SKILL.md", "commands/{}.md"),
    )
    SETTINGS = agent.SettingsFormat(
        by_shell=True,
        is_shared=True,
        run_by=(
            ("copilot", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR"),
            ("cursor", "CURSOR_PROJECT_DIR", ""),
        ),
        module="gitgates.hosts.agents.claude.settings",
        runs_once=True,
        times=agent.HookTimes(usual_s=600.0),
    )
    OFF = agent.DisableSwitch(
        key="disableAllHooks",
        words=(
            *(("--safe-mode",), ("--bare",), ("--settings", "*disableAllHooks*true*")),
            # without those of the project
            ("--setting-sources", ""),
            *(("--setting-sources", of) for of in ("user", "local", "user,local", "local,user")),
        ),
        variables=("CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE"),
    )

    def plugin_of(self, env: Mapping[str, str]) -> str:
        """Return the folder of the plugin that started gitgates; empty if none did."""
        return env.get(_PLUGIN, "")

    def guest_of(self, fields: dict[str, Any], _env: Mapping[str, str]) -> str:
        """Return the module of another agent that may have sent it: Claude Code sends no time."""
        if "cursor_version" in fields:
            return "gitgates.hosts.agents.cursor"
        return (
            "gitgates.hosts.agents.vscode"
            if "timestamp" in fields or "hookEventName" in fields
            else ""
        )

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return the payload with these fields."""
        payload = super().payload_of(fields, env)
        prompt = payload.prompt
        tool_input = fields.get("tool_input")
        inside = tool_input if isinstance(tool_input, dict) else {}
        is_pseudo = prompt.text.lstrip().startswith(_PSEUDO_PREFIXES)
        return payload._replace(
            agent=payload.agent._replace(attended=env.get(_ATTENDED) != "0"),
            prompt=prompt._replace(
                automatic=is_pseudo or prompt.source in _PSEUDO_SOURCES,
                scheduled=_scheduled(fields, inside),
            ),
        )

    def conversation_start_in(self, head: bytes) -> float:
        """Return when the conversation began, in seconds since the epoch; 0: unknown."""
        for line in head.split(b"\n"):
            try:
                stamp = _stamp(loads(line).get("timestamp", ""))
            except (*_NOT_OURS, UnicodeDecodeError):
                continue
            if stamp:
                return stamp
        return 0.0


def _scheduled(fields: dict[str, Any], tool_input: dict[str, Any]) -> tuple[str, ...]:
    """Return the prompts that a tool call schedules, or that are scheduled at a turn's end."""
    tables = tables_in(fields.get("session_crons"))
    if fields.get("tool_name") in _SCHEDULERS:
        tables.append(tool_input)
    texts = (text_of(table, "prompt").strip() for table in tables)
    return tuple(text for text in texts if text)


def _stamp(text: object) -> float:
    """Return a time in seconds since the epoch; 0 if it is unknown."""
    from datetime import datetime  # only needed if a transcript is read

    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


HOST = Claude()
