"""Qwen Code as a host.

`UserPromptSubmit` also comes, empty, with each tool result; `submitted_prompt` is what a person
typed. `continue: false` at a turn's end makes the agent go on. A sub-agent may run in the
background, and the main agent's turn may end before it.

Source: recorded from qwen-code 0.24.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels, Payload
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.lifecycle import EventKind

_PROMPT, _TYPED = "UserPromptSubmit", "submitted_prompt"


class Qwen(agent.AgentHost):
    """Qwen Code."""

    NAME = "qwen"
    TITLE = "Qwen Code"
    PROGRAMS = ("qwen", "@qwen-code/qwen-code")
    AUTO_APPROVE_OPTIONS = ("--yolo", "-y", "yolo")
    TESTED = "0.24.4"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            ("QWEN_PROJECT_DIR", "qwen", "the folder in which the agent's session was started"),
            ("QWEN_CODE_SESSION_ID", "qwen", "the session of the agent that runs a command"),
            ("QWEN_CODE", "qwen", "set if an agent runs the command, not a person"),
            ("QWEN_HOME", "you", "the folder of Qwen Code's user settings, instead of ~/.qwen"),
        ),
        project="QWEN_PROJECT_DIR",
        secrets=(
            "OPENAI_API_KEY",
            "DASHSCOPE_API_KEY",
            "BAILIAN_CODING_PLAN_API_KEY",
            "BAILIAN_TOKEN_PLAN_API_KEY",
        ),
        of_a_session=(
            *("QWEN_CODE", "QWEN_CODE_SESSION_ID", "QWEN_CODE_PROMPT_ID", "QWEN_CODE_AGENT_ID"),
            *("QWEN_CODE_NO_RELAUNCH", "QWEN_CODE_PRIVATE_RELAUNCH_ENV_PROVENANCE"),
        ),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            _PROMPT: (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True)),
            "PostToolUse": ("after-tool", Channels(block=True, context=True)),
            "PostToolUseFailure": ("tool-failed", Channels(context=True)),
            "SubagentStart": ("subagent-start", Channels()),
            "SubagentStop": ("subagent-end", Channels(block=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "StopFailure": ("turn-failed", Channels()),
            "PreCompact": ("before-compact", Channels()),
            "PostCompact": ("after-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        provable=("turn-end", "subagent-end", "before-tool", "prompt"),
        hands_tokens=False,
        answers=agent.Answers(only_tells=("after-tool",), silent_stops=("turn-end",)),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("write_file", "edit", "notebook_edit"),
            "reads": ("read_file", "list_directory", "glob", "grep_search", "zoom_image"),
            "shell": ("run_shell_command", "monitor"),
            "agent": ("agent",),
            "skill": ("skill",),
            "report": ("report_findings",),
            "ours": ("mcp__gitgates__*",),
            "harmless": (
                *("todo_write", "task_create", "task_update", "task_list", "task_stop"),
                *("ask_user_question", "enter_plan_mode", "exit_plan_mode", "tool_search"),
                *("web_fetch", "web_search", "read_mcp_resource", "lsp", "list_agents"),
                *("get_goal", "update_goal", "propose_goal", "send_message", "loop_wakeup"),
                *("cron_create", "cron_list", "cron_delete"),
            ),
        },
        other_names={
            "notebook_edit": ("NotebookEdit",),
            "agent": ("Agent", "Task"),
        },
        path_fields=("file_path", "notebook_path", "path"),
    )
    FILES = agent.Files(
        folder=".qwen",
        home_variable="QWEN_HOME",
        settings={"project": "settings.json", "user": "settings.json"},
        start_only=("project",),
        agents=("agents/{}.md",),
        skills=("skills/{}/SKILL.md",),
    )
    SETTINGS = agent.SettingsFormat(
        by_shell=True,
        runs_once=True,
        times=agent.HookTimes(
            per_second=1000
        ),  # values below 1000 count as seconds; ours are never so small
    )
    OFF = agent.DisableSwitch(
        key="disableAllHooks",
        words=(("--safe-mode",), ("--bare",)),
        variables=("QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE"),
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        fields = {**fields}
        if typed := text_of(fields, _TYPED):
            fields["prompt"] = typed
        elif text_of(fields, "hook_event_name") == _PROMPT and not text_of(fields, "prompt"):
            fields["hook_event_name"] = "ToolResult"
        tasks = fields.get("background_tasks")
        fields["background_tasks"] = [
            {"type": "subagent" if "agent_type" in task else "", **task}
            for task in (tasks if isinstance(tasks, list) else ())
            if isinstance(task, dict) and task.get("id") != (fields.get("agent_id") or "")
        ]
        return fields

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return the payload with these fields."""
        payload = super().payload_of(fields, env)
        is_automatic = payload.kind == "prompt" and not text_of(fields, _TYPED)
        return payload._replace(prompt=payload.prompt._replace(automatic=is_automatic))

    def sample(
        self, kind: EventKind, root_abs: str, session: str, file: str = ""
    ) -> dict[str, Any]:
        """Return a sample payload of an event in a session in a folder; `file`: in it."""
        payload = super().sample(kind, root_abs, session, file)
        return {**payload, _TYPED: payload["prompt"]} if "prompt" in payload else payload


HOST = Qwen()
