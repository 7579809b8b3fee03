"""Droid as a host.

`droid exec` sends prompts only over JSON-RPC, so a turn may also begin with the event after an
allowed stop. Tool calls have no ids, failed ones have no event, and no variable names the session
in a shell. An event's hooks are those in `hooks.json`, or, if it has none, in `settings.json`.

Source: recorded from droid 0.225; what a patch is was read in its program.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import edits_in, path_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import Replacement
    from gitgates.core.lifecycle import EventKind

_PATCH = "input"  # of ApplyPatch: a patch that may change several files


class Droid(agent.AgentHost):
    """Droid."""

    NAME = "droid"
    TITLE = "Droid"
    PROGRAMS = ("droid", "@factory/cli")
    AUTO_APPROVE_OPTIONS = ("--skip-permissions-unsafe", "--auto=high")
    TESTED = "0.225.2"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            ("FACTORY_PROJECT_DIR", "droid", "the folder in which the agent's session was started"),
            (
                "FACTORY_DISABLE_SETTINGS_PERSISTENCE",
                "droid exec",
                "set if an agent runs the command, not a person",
            ),
            (
                "FACTORY_HOME_OVERRIDE",
                "you",
                "the folder of Droid's user settings .factory, instead of HOME",
            ),
        ),
        project="FACTORY_PROJECT_DIR",
        secrets=("FACTORY_API_KEY",),
        of_a_session=("FACTORY_DISABLE_SETTINGS_PERSISTENCE",),
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True, stop=True)),
            "PostToolUse": ("after-tool", Channels(block=True, stop=True, context=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels()),
            "SessionEnd": ("session-end", Channels()),
        },
        provable=("turn-end", "before-tool", "prompt"),
        tells_prompts=False,
        hands_tokens=False,
        answers=agent.Answers(only_tells=("after-tool",), changes="updatedInput"),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("Create", "Edit", "ApplyPatch", "GenerateImage"),
            "reads": ("Read", "LS", "Grep", "Glob"),
            "shell": ("Execute",),
            "agent": ("Task",),
            "skill": ("Skill",),
            "report": (),
            "ours": ("gitgates___*",),
            "harmless": (
                *("TodoWrite", "TaskOutput", "TaskStop", "ToolSearch", "ConnectorSearch"),
                *("WebSearch", "FetchUrl", "AskUser", "ExitSpecMode"),
            ),
        },
        other_names={
            "Create": ("Write",),
            "Edit": ("MultiEdit",),
            "ApplyPatch": ("Edit", "Write", "MultiEdit"),
            "Execute": ("Bash",),
            "Task": ("Agent",),
            "FetchUrl": ("WebFetch",),
        },
        server_prefix="gitgates___",
    )
    FILES = agent.Files(
        folder=".factory",
        home_parent_variable="FACTORY_HOME_OVERRIDE",
        settings={"project": "hooks.json", "user": "hooks.json"},
        agents=("droids/{}.md",),
        skills=("skills/{}/SKILL.md",),
        older_settings="settings.json",
    )
    SETTINGS = agent.SettingsFormat(events_at=(), by_shell=True)
    OFF = agent.DisableSwitch(
        key="hooksDisabled",
        former=("hooks.hooksDisabled",),
        files=(".factory/settings.json",),
        own_files=("settings.json",),
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        is_prompt = fields.get("hook_event_name") == "UserPromptSubmit"
        return {**fields, "prompt_id" if is_prompt else "event_id": fields.get("message_id")}

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a tool's files."""
        from gitgates.hosts.patch import paths_of  # only needed at tool calls

        return (*super().paths_in(tool_input), *paths_of(path_of(tool_input, _PATCH)))

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return a tool's edits, in order."""
        from gitgates.hosts.patch import edits_of

        return (*edits_in(tool_input), *edits_of(text_of(tool_input, _PATCH)))

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the answer with a block, other than one that denies a tool call."""
        if kind == "prompt":  # `decision` has no effect
            return {"continue": False, "stopReason": reason}
        return super().blocked(kind, reason)


HOST = Droid()
