"""opencode as a host: its gitgates plugin asks gitgates, and follows the answer.

Payloads and answers are in the format of `gitgates/plugin/opencode/gitgates.js`: Claude Code's
fields, with opencode's own names for tools and their input. A sub-agent has a session of its own,
which the plugin names as the agent; the plugin does not ask at a sub-agent's end.

Source: recorded from opencode 1.18.33.
"""

from __future__ import annotations

import os

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.core.agent_types import Replacement

_PATCH = "patchText"  # the field with a patch
_NAMES = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
}


class OpenCode(agent.AgentHost):
    """opencode."""

    NAME = "opencode"
    TITLE = "opencode"
    PROGRAMS: tuple[str, ...] = ("opencode", "opencode-ai")
    AUTO_APPROVE_OPTIONS: tuple[str, ...] = ("--auto",)
    TESTED = "1.18.33"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            (
                "GITGATES_SESSION",
                "gitgates",
                "the session of opencode, or Kilo, that runs a command",
            ),
            ("OPENCODE", "opencode", "set if an agent runs the command, not a person"),
        ),
        secrets=(
            *("OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONFIG_CONTENT"),
            *("OPENCODE_CONSOLE_TOKEN", "OPENCODE_SERVER_PASSWORD"),
        ),
        of_a_session=("GITGATES_SESSION", "OPENCODE", "OPENCODE_PID", "AGENT"),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": ("prompt", Channels(context=True)),
            "PreToolUse": ("before-tool", Channels(deny=True)),
            "PostToolUse": ("after-tool", Channels(block=True, context=True)),
            "SubagentStart": ("subagent-start", Channels(context=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
        },
        repeats=False,  # the plugin runs once, wherever it is
        cannot={"turn-end": "`opencode run` ends with the agent's turn, and cannot be blocked"},
        answers=agent.Answers(
            denies="block",
            tells="top",
            only_tells=("after-tool",),
            silent_stops=("turn-end",),
            changes="updatedInput",
        ),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("write", "edit", "apply_patch"),
            "reads": ("read", "grep", "glob", "list"),
            "shell": ("bash",),
            "agent": ("task",),
            "skill": ("skill",),
            "report": (),
            "ours": ("gitgates_*",),
            "harmless": (
                "todowrite",
                "todoread",
                "webfetch",
                "websearch",
                "codesearch",
                "question",
            ),
        },
        older={"multiedit": "writes", "patch": "writes"},
        other_names={
            "write": ("Write",),
            "read": ("Read",),
            "webfetch": ("WebFetch",),
            "todowrite": ("TodoWrite",),
        },
        server_prefix="gitgates_",
    )
    FILES = agent.Files(
        folder=".opencode",
        home=".config/opencode",
        settings={"project": "plugins/gitgates.js", "user": "plugins/gitgates.js"},
    )
    SETTINGS = agent.SettingsFormat(
        runs_once=True,
        module="gitgates.hosts.settings.plugin_settings",
    )
    OFF = agent.DisableSwitch(
        words=(("--pure",),),
        variables=("OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG"),
    )

    def home(self, env: Mapping[str, str]) -> str:
        """Return a person's own folder; empty if there is none."""
        folder = env.get("XDG_CONFIG_HOME", "")
        is_usable = bool(folder) and os.path.isabs(folder)  # as the XDG specification requires
        return f"{folder}/{self.NAME}" if is_usable else super().home(env)

    def agent_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that may define a sub-agent."""
        return [f"{folder}/{of}/{name}.md" for folder in folders for of in ("agents", "agent")]

    def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that may define a skill."""
        subfolders = ("skills", "skill")
        return [
            f"{folder}/{subfolder}/{name}/SKILL.md"
            for folder in folders
            for subfolder in subfolders
        ]

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields that `decode` knows."""
        tool_input, prompt = fields.get("tool_input"), text_of(fields, "prompt")
        if len(prompt) > 1 and prompt[0] == prompt[-1] == '"':
            fields = {**fields, "prompt": prompt[1:-1]}  # `run` quotes it
        if not isinstance(tool_input, dict):
            return fields
        inside = {_NAMES.get(field, field): value for field, value in tool_input.items()}
        if fields.get("tool_name") == "skill":
            inside["skill"] = inside.get("name")
        if isinstance(inside.get("edits"), list):
            edits = (edit for edit in inside["edits"] if isinstance(edit, dict))
            inside["edits"] = [{_NAMES.get(k, k): v for k, v in edit.items()} for edit in edits]
        return {**fields, "tool_input": inside}

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a tool's files."""
        if _PATCH not in tool_input:
            return super().paths_in(tool_input)
        from gitgates.hosts import patch  # only some models send patches

        return patch.paths_of(text_of(tool_input, _PATCH))

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return a tool's edits, in order."""
        if _PATCH not in tool_input:
            return super().edits_in(tool_input)
        from gitgates.hosts import patch

        return patch.edits_of(text_of(tool_input, _PATCH))


HOST = OpenCode()
