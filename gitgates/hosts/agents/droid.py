"""Droid as a host.

`droid exec` tells of no prompts but over JSON-RPC, so that a turn may also begin with what comes
after a stop that was let go. No tool call has an id, a tool that has failed has no event, and
nothing names the session in a shell. The hooks of an event are those of `hooks.json`, or, where it
has none, of `settings.json`.

Source: recorded from droid 0.225; what a patch is was read in its program.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts.agent import AgentHost
from gitgates.hosts.payload import edits_in, path_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import Replacement
    from gitgates.core.lifecycle import EventKind

_PATCH = "input"  # of ApplyPatch: the text of a patch with several files


class Droid(AgentHost):
    """Droid."""

    NAME = "droid"
    TITLE = "Droid"
    PROGRAMS = ("droid", "@factory/cli")
    UNASKED = ("--skip-permissions-unsafe", "--auto=high")
    TESTED = "0.225.2"
    DRIVEN = True
    VARIABLES = (
        ("FACTORY_PROJECT_DIR", "droid", "where the agent's session was started"),
        (
            "FACTORY_DISABLE_SETTINGS_PERSISTENCE",
            "droid exec",
            "tells that an agent runs a command, and not a person",
        ),
        ("FACTORY_HOME_OVERRIDE", "you", "where Droid's folder .factory of your own is: not HOME"),
    )
    CALLER = ("FACTORY_DISABLE_SETTINGS_PERSISTENCE",)
    PROJECT = "FACTORY_PROJECT_DIR"
    SECRETS = ("FACTORY_API_KEY",)
    OF_A_SESSION = CALLER
    EVENTS = {
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
    }
    PROVABLE = ("turn-end", "before-tool", "prompt")
    TELLS_PROMPTS = False
    HANDS_TOKENS = False
    ONLY_TELLS = ("after-tool",)
    CHANGES = "updatedInput"
    TOOL_NAMES = {
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
    }
    OTHER_NAMES = {
        "Create": ("Write",),
        "Edit": ("MultiEdit",),
        "ApplyPatch": ("Edit", "Write", "MultiEdit"),
        "Execute": ("Bash",),
        "Task": ("Agent",),
        "FetchUrl": ("WebFetch",),
    }
    OURS = "gitgates___"
    FOLDER = ".factory"
    HOME_PARENT_VARIABLE = "FACTORY_HOME_OVERRIDE"
    FILES = {"project": "hooks.json", "user": "hooks.json"}
    AGENT_FILES = ("droids/{}.md",)
    SKILL_FILES = ("skills/{}/SKILL.md",)
    OLDER_FILE = "settings.json"
    EVENTS_AT = ()
    OFF = "hooksDisabled"
    FORMER_OFF = ("hooks.hooksDisabled",)
    SWITCHES = (".factory/settings.json",)
    OWN_SWITCHES = ("settings.json",)

    def rename(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields, and of values, that `decode` knows."""
        is_prompt = found.get("hook_event_name") == "UserPromptSubmit"
        return {**found, "prompt_id" if is_prompt else "event_id": found.get("message_id")}

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return the files that a tool works on."""
        from gitgates.hosts.patch import paths_of  # only tools have them

        return (*super().paths_in(tool_input), *paths_of(path_of(tool_input, _PATCH)))

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return what a tool does to a file, in order."""
        from gitgates.hosts.patch import edits_of

        return (*edits_in(tool_input), *edits_of(text_of(tool_input, _PATCH)))

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the form of a block, where no tool call is denied."""
        if kind == "prompt":  # `decision` has no effect
            return {"continue": False, "stopReason": reason}
        return super().blocked(kind, reason)


HOST = Droid()
