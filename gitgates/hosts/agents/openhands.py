"""OpenHands as a host.

It has Claude Code's events with other field names; all fields are always there, and many are null.
A tool call and an end can be refused; text after a tool call reaches nobody. `continue: false`
makes the agent go on, so it is never used. Sub-agents run no hooks.

Source: recorded from openhands 1.16.0.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind

EDITOR = "file_editor"
VIEW = ".view"  # a command of the client's only file tool
_MARK = "OR_APP_NAME"


class OpenHands(agent.AgentHost):
    """OpenHands."""

    NAME = "openhands"
    TITLE = "OpenHands"
    PROGRAMS = ("openhands", "openhands-ai")
    AUTO_APPROVE_OPTIONS = ("--always-approve", "--yolo", "--headless")
    TESTED = "1.16.0"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            (_MARK, "openhands", "`OpenHands` if an agent runs the command, not a person"),
            (
                "OPENHANDS_PROJECT_DIR",
                "openhands",
                "the folder in which the agent's session was started",
            ),
        ),
        project="OPENHANDS_PROJECT_DIR",
        secrets=("LLM_API_KEY",),
        of_a_session=("OPENHANDS_SESSION_ID", "OPENHANDS_PROJECT_DIR", _MARK),
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
            "Stop": ("turn-end", Channels(block=True, stop=True)),
        },
        repeats=False,
        hands_tokens=False,
        cannot={
            "session-start": (
                "OpenHands does not pass the rules to the agent: write them to "
                "AGENTS.md with install-hooks --agents-md"
            ),
            "after-tool": "OpenHands shows nobody the output of gates there",
            "turn-end": (
                "OpenHands does not show messages to the person: see `gitgates runs` for failures"
            ),
        },
        answers=agent.Answers(
            denies="deny", blocks="deny", tells="top", silent_stops=("turn-end",), person=""
        ),
    )
    TOOLS = agent.Tools(
        names={
            "writes": (EDITOR, "apply_patch"),
            "reads": (f"{EDITOR}{VIEW}", "glob", "grep"),
            "shell": ("terminal",),
            "agent": ("task",),
            "skill": (),
            "report": (),
            "ours": (),
            "harmless": ("task_tracker", "think", "finish"),
        },
        other_names={
            EDITOR: ("Edit", "Write", "MultiEdit"),
            f"{EDITOR}{VIEW}": ("Read",),
        },
    )
    FILES = agent.Files(
        folder=".openhands",
        settings={"project": "hooks.json", "user": "hooks.json"},
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.agents.openhands_settings",
        hides=True,
        whole=True,
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        tool, tool_input = fields.get("tool_name"), fields.get("tool_input")
        inside = tool_input if isinstance(tool_input, dict) else {}
        inside = {name: value for name, value in inside.items() if value is not None}
        if tool == EDITOR:
            action = inside.pop("command", "")
            tool = f"{EDITOR}{VIEW}" if action == "view" else EDITOR
            if action == "insert":
                inside["old_str"] = ""
        response = fields.get("tool_response")
        is_error = isinstance(response, dict) and response.get("is_error") is True
        return {
            "hook_event_name": fields.get("event_type"),
            "session_id": fields.get("session_id"),
            "cwd": fields.get("working_dir"),
            "prompt": fields.get("message"),
            "tool_name": tool,
            "tool_input": inside,
            "tool_response": {"success": not is_error},
        }

    def sample(
        self, kind: EventKind, root_abs: str, session: str, file: str = ""
    ) -> dict[str, Any]:
        """Return a sample payload of an event in a session in a folder; `file`: in it."""
        payload = super().sample(kind, root_abs, session, file)
        renamed = {
            "event_type": payload["hook_event_name"],
            "working_dir": root_abs,
            "message": payload.get("prompt"),
        }
        return {**payload, **renamed}

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        tool_input = {"command": "create", "path": path_abs, "file_text": "done\n"}
        return {"tool_name": EDITOR, "tool_input": tool_input}


HOST = OpenHands()
