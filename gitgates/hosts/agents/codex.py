"""Codex as a host.

It parses answers strictly: it ignores an answer with an unknown field. `apply_patch` edits files;
its input is a patch that may change several files, and it may also be called through the shell.

Source: recorded from codex 0.169.
"""

from __future__ import annotations

import os

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.patch import BEGIN, END, edits_of, paths_of
from gitgates.hosts.payload import path_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import Replacement

_PATCH, _BASH = "apply_patch", "Bash"
# The input after `rename`: the patch, and the folder of its paths, if not the agent's own.
_TEXT, _FOLDER = "patch", "folder"
# A shell command that counts as a call of the tool: how it begins, and its first line.
_SHELL_STARTS = ("cd ", "apply_patch ", "applypatch ", "apply_patch<", "applypatch<")
_HEAD = (
    r"""(?:cd +(?:'([^']*)'|"([^"]*)"|([^\s'"]+)) *&& *)?"""
    r"""apply_?patch *<<-? *(['"]?)(\w+)\4 *"""
)


class Codex(agent.AgentHost):
    """Codex."""

    NAME = "codex"
    TITLE = "Codex"
    PROGRAMS = ("codex", "@openai/codex")
    AUTO_APPROVE_OPTIONS = (
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        "--full-auto",
        "--approve-for-me",
        "--yolo",
        "danger-full-access",
        "--ask-for-approval=never",
        "-a=never",
        "approval_policy=never",
    )
    TESTED = "0.169.0"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            ("CODEX_SESSION_ID", "codex", "the session of the agent that runs a command"),
            ("CODEX_HOME", "you", "the folder of Codex's user settings, instead of ~/.codex"),
        ),
        secrets=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
        of_a_session=("CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True, context=True)),
            "PostToolUse": ("after-tool", Channels(block=True, context=True)),
            "SubagentStart": ("subagent-start", Channels(context=True)),
            "SubagentStop": ("subagent-end", Channels(block=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels()),
            "PostCompact": ("after-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        provable=("turn-end", "subagent-end", "before-tool", "prompt"),
        answers=agent.Answers(only_tells=("after-tool",)),
        hands_tokens=False,
    )
    TOOLS = agent.Tools(
        names={
            "writes": (_PATCH,),
            "reads": ("view_image",),
            "shell": (_BASH, "write_stdin"),
            "agent": ("spawn_agent", "collaborationspawn_agent"),
            "skill": (),
            "report": (),
            "ours": ("mcp__gitgates__*",),
            "harmless": (
                *("request_user_input", "get_goal", "create_goal", "update_goal", "update_plan"),
                *("tool_search", "web_search"),
                *("collaborationwait_agent", "collaborationlist_agents"),
                *("multi_agent_v1wait_agent", "multi_agent_v1close_agent"),
            ),
        },
        other_names={"spawn_agent": ("Agent",)},
    )
    FILES = agent.Files(
        folder=".codex",
        home_variable="CODEX_HOME",
        settings={"project": "hooks.json", "user": "hooks.json"},
    )
    SETTINGS = agent.SettingsFormat(
        by_shell=True,
        module="gitgates.hosts.agents.codex_settings",
        times=agent.HookTimes(usual_s=600.0, most_s={"session-end": 3}),
    )
    OFF = agent.DisableSwitch(
        key="features.hooks",
        value="false",
        former=("features.codex_hooks",),
        files=(".codex/config.toml",),
        own_files=("config.toml",),
        words=(
            ("features", "disable", "*hooks"),
            ("--disable", "*hooks"),
            *((option, "*hooks*false*") for option in ("-c", "--config")),
            ("-c*hooks*false*",),
        ),
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        fields = {**fields, "prompt_id": fields.get("turn_id")}
        if fields.get("agent_id") and fields.get("hook_event_name") == "UserPromptSubmit":
            fields["hook_event_name"] = "a sub-agent's task"  # which is not an event for us
        tool, tool_input = fields.get("tool_name"), fields.get("tool_input")
        if tool in (_PATCH, _BASH) and isinstance(tool_input, dict):
            command = text_of(tool_input, "command")
            folder, text = ("", command) if tool == _PATCH else _patch_in(command)
            if text:
                fields |= {"tool_name": _PATCH, "tool_input": {_TEXT: text, _FOLDER: folder}}
        return fields

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a patch's files."""
        folder = path_of(tool_input, _FOLDER)
        paths = paths_of(path_of(tool_input, _TEXT))
        return tuple(os.path.join(folder, path) for path in paths)

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return a patch's edits: the lines of each part."""
        return edits_of(text_of(tool_input, _TEXT))

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        patch = f"{BEGIN}*** Add File: {path_abs}\n+done{END}\n"
        return {"tool_name": _PATCH, "tool_input": {"command": patch}}


def _patch_in(command: str) -> tuple[str, str]:
    """Return the patch that a shell command applies, and its folder; "" if it does more."""
    head, _, rest = command.strip().partition("\n")
    if not (head.startswith(_SHELL_STARTS) and BEGIN.strip() in rest):
        return "", ""
    import re  # few commands apply patches

    match = re.fullmatch(_HEAD, head)
    lines = rest.split("\n")
    ends = [number for number, line in enumerate(lines) if match and line.strip() == match[5]]
    if not (match and ends[:1] == [len(lines) - 1]):
        return "", ""
    return match[1] or match[2] or match[3] or "", "\n".join(lines[:-1])


HOST = Codex()
