"""Gemini CLI as a host.

A hook whose program is missing counts as a refusal; at a turn's end, forever. Tool calls have no
ids, and a sub-agent's calls look like the main agent's. `PreCompress` comes before each request to
the model, whether or not anything is compressed. The client's shell has its own git configuration
with an empty `core.hooksPath`: git runs no hooks there.

Source: recorded from gemini-cli 0.61.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"


class Gemini(agent.AgentHost):
    """Gemini CLI."""

    NAME = "gemini"
    TITLE = "Gemini CLI"
    PROGRAMS = ("gemini", "@google/gemini-cli")
    AUTO_APPROVE_OPTIONS = ("--yolo", "-y", "yolo")
    TESTED = "0.61.0"
    HAS_E2E_TESTS = True
    NO_GIT_HOOKS = "git runs no hooks in the shell of Gemini CLI, so its commits are not gated"
    ENVIRONMENT = agent.Environment(
        documented=(
            ("GEMINI_PROJECT_DIR", "gemini", "the folder in which the agent's session was started"),
            ("GEMINI_CLI", "gemini", "set if an agent runs the command, not a person"),
            (
                "GEMINI_CLI_HOME",
                "you",
                "the folder of Gemini CLI's user settings .gemini, instead of HOME",
            ),
        ),
        project="GEMINI_PROJECT_DIR",
        secrets=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        of_a_session=("GEMINI_CLI", "GEMINI_SESSION_ID", "GEMINI_CLI_NO_RELAUNCH"),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "BeforeAgent": (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "BeforeTool": ("before-tool", Channels(deny=True, stop=True)),
            "AfterTool": ("after-tool", Channels(block=True, stop=True, context=True)),
            "AfterAgent": ("turn-end", Channels(block=True, stop=True)),
            "SessionEnd": ("session-end", Channels()),
        },
        provable=("turn-end", "before-tool", "prompt"),
        returns_reason=True,
        hands_tokens=False,
        answers=agent.Answers(
            denies="deny",
            only_tells=("after-tool",),  # a reason would replace the tool's result
            changes="tool_input",
        ),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("write_file", "replace"),
            "reads": ("read_file", "read_many_files", "list_directory", "glob", "grep_search"),
            "shell": ("run_shell_command",),
            "agent": ("invoke_agent",),
            "skill": ("activate_skill",),
            "report": (),
            "ours": ("mcp_gitgates_*",),
            "harmless": (
                *("update_topic", "write_todos", "ask_user", "enter_plan_mode", "exit_plan_mode"),
                *("google_web_search", "web_fetch", "get_internal_docs", "complete_task"),
                *("list_background_processes", "read_background_output"),
                *("read_mcp_resource", "list_mcp_resources"),
            ),
        },
        other_names={
            "replace": ("Edit", "MultiEdit"),
            "invoke_agent": ("Agent", "Task"),
            "activate_skill": ("Skill",),
        },
        server_prefix="mcp_gitgates_",
    )
    FILES = agent.Files(
        folder=".gemini",
        home_parent_variable="GEMINI_CLI_HOME",
        settings={"project": "settings.json", "user": "settings.json"},
        start_only=("project",),
        agents=("agents/{}.md",),
        skills=("skills/{}/SKILL.md",),
    )
    SETTINGS = agent.SettingsFormat(
        by_shell=True,
        module="gitgates.hosts.agents.gemini_settings",
        runs_once=True,
        guarded=True,
        times=agent.HookTimes(per_second=1000),
    )
    OFF = agent.DisableSwitch(
        key="hooksConfig.enabled",
        value="false",
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        tool_input, response = fields.get("tool_input"), fields.get("tool_response")
        prompt = text_of(fields, "prompt")
        if prompt.startswith(_CONTEXT):  # which hooks added at the session's start
            prompt = prompt.partition(_CONTEXT_END)[2].lstrip()
        last = fields.get("prompt_response")
        fields = {**fields, "prompt": prompt, "last_assistant_message": last}
        fields["event_id"] = fields.get("timestamp")
        if fields.get("tool_name") == "activate_skill" and isinstance(tool_input, dict):
            fields["tool_input"] = {**tool_input, "skill": tool_input.get("name")}
        if isinstance(response, dict) and response.get("error"):
            fields["tool_response"] = {"success": False}
        return fields


HOST = Gemini()
