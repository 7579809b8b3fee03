"""Cursor as a host: its editor, its command line, and its cloud agents.

A conversation is a session, and a generation is a prompt. Before a tool call, an answer can deny
it; after it, and at the start, the agent gets the text; at an end, the text becomes the next
prompt. The person only sees refusals. Cursor also runs the hooks in Claude Code's settings, with
its own payloads. Payloads of a sub-agent's tools do not name the main conversation.

Source: cursor.com/docs/hooks and docs/reference/third-party-hooks, 2026-11. No client was driven.
Names of tools that these do not have (`StrReplace`, `ApplyPatch`): reported by users of hooks.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.core.lean_json import loads
from gitgates.core.lifecycle import ENDINGS, kind_of
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.agent_types import Payload
    from gitgates.core.lifecycle import EventKind

_REFUSES, _ASKS = Channels(deny=True), Channels(deny=True, ask=True)
# Events of single tools, which install-hooks does not use → general event, tool, answers.
OF_TOOLS = {
    "beforeShellExecution": ("preToolUse", "Shell", _ASKS),
    "afterShellExecution": ("postToolUse", "Shell", Channels()),
    "beforeMCPExecution": ("preToolUse", "", _ASKS),
    "afterMCPExecution": ("postToolUse", "", Channels()),
    "afterFileEdit": ("postToolUse", "Write", Channels()),
}
_PATCH = "patch"
_SESSIONS = ("parent_conversation_id", "conversation_id", "session_id")
_FIELDS = {
    "generation_id": "prompt_id",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
    "summary": "last_assistant_message",
}
_BESIDE = ("command", "file_path", "edits")  # a single tool's input, at the top of its event


class Cursor(agent.AgentHost):
    """Cursor."""

    NAME = "cursor"
    TITLE = "Cursor"
    PROGRAMS = ("cursor-agent",)
    AUTO_APPROVE_OPTIONS = ("--force", "-f", "--yolo")
    DOCUMENT = "cursor.com/docs/hooks, 2026-11"
    ENVIRONMENT = agent.Environment(
        documented=(
            ("CURSOR_AGENT", "cursor", "set if an agent runs the command, not a person"),
            ("CURSOR_PROJECT_DIR", "cursor", "the folder in which the agent's session was started"),
        ),
        project="CURSOR_PROJECT_DIR",
        secrets=("CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"),
        of_a_session=("CURSOR_AGENT", "CURSOR_PROJECT_DIR", "CURSOR_TRANSCRIPT_PATH"),
    )
    PROTOCOL = agent.Protocol(
        events={
            # Nothing waits for it, and the cloud has none: a tool call may come earlier.
            "sessionStart": ("session-start", Channels(context=True)),
            "beforeSubmitPrompt": ("prompt", Channels(block=True, reason_to_person=True)),
            "preToolUse": ("before-tool", _REFUSES),
            "postToolUse": ("after-tool", Channels(block=True, context=True)),
            "postToolUseFailure": ("tool-failed", Channels()),
            "subagentStart": ("subagent-start", Channels(deny=True, reason_to_person=True)),
            "subagentStop": ("subagent-end", Channels(block=True)),
            "stop": ("turn-end", Channels(block=True, stop=True)),
            "preCompact": ("before-compact", Channels()),
            "sessionEnd": ("session-end", Channels()),
        },
        ignored=(
            *("afterAgentResponse", "afterAgentThought", "workspaceOpen"),
            *("beforeReadFile", "beforeTabFileRead", "afterTabFileEdit"),
        ),
        tells_start=False,
        returns_reason=True,
        hands_tokens=False,
        provable=("turn-end", "subagent-end", "before-tool", "prompt"),
        cannot={
            "turn-end": (
                "Cursor is reported to run no hook there in print mode (`cursor-agent -p`); "
                "elsewhere, its gates block. It does not show messages to the person: see "
                "`gitgates runs` for failures"
            ),
        },
        answers=agent.Answers(only_tells=("after-tool",), silent_stops=("turn-end",), person=""),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("Write", "StrReplace", "ApplyPatch", "EditNotebook", "Delete"),
            "reads": ("Read", "Grep", "Glob", "LS", "SemanticSearch", "ReadLints"),
            "shell": ("Shell",),
            "agent": ("Task",),
            "skill": (),
            "report": (),
            "ours": (),
            "harmless": ("WebFetch", "WebSearch", "TodoWrite", "AskQuestion"),
        },
        older={"Edit": "writes", "MultiEdit": "writes", "Bash": "shell", "Agent": "agent"},
        other_names={
            "Write": ("Edit", "MultiEdit"),  # its names in hooks for Claude Code
            "StrReplace": ("Edit", "MultiEdit"),
            "ApplyPatch": ("Edit", "Write", "MultiEdit"),
            "EditNotebook": ("NotebookEdit",),
            "Shell": ("Bash",),
            "Task": ("Agent",),
        },
        path_fields=("file_path", "path", "target_notebook"),
        patch_field=_PATCH,
    )
    FILES = agent.Files(
        folder=".cursor",
        settings={"project": "hooks.json", "user": "hooks.json"},
        agents=("agents/{}.md",),
        skills=("skills/{}/SKILL.md", "commands/{}.md"),
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.agents.cursor_settings",
        head={"version": 1},
        flat=True,
        whole=True,
        times=agent.HookTimes(usual_s=60.0),
    )

    def is_speaking(self, fields: Mapping[str, Any], _env: Mapping[str, str]) -> bool:
        """Return whether this agent sent a payload through another agent's settings."""
        return "cursor_version" in fields

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        event = text_of(fields, "hook_event_name")
        general, tool, _can = OF_TOOLS.get(event, ("", "", None))
        kind = kind_of(general or event)  # with the names in Claude Code's settings, which it reads
        if fields.get("status") not in (None, "completed"):
            kind, event = "", f"{event} of what was not completed"
        sessions = (text_of(fields, name) for name in _SESSIONS)
        loops = fields.get("loop_count")
        # If two settings files call gitgates, both payloads of an end have the same id.
        event_id = f"{text_of(fields, 'generation_id')}:{loops}" if event == "stop" else ""
        return {
            **{_FIELDS.get(name, name): value for name, value in fields.items()},
            "hook_event_name": self.own_event(kind) if self.has(kind) else general or event,
            "session_id": next(filter(None, sessions), ""),
            "cwd": _folder(fields),
            "tool_name": tool or ("MCP:" if general else "") + text_of(fields, "tool_name"),
            "tool_input": _input(fields, is_beside=bool(tool)),
            "stop_hook_active": bool(loops),
            "event_id": event_id,
            "tool_event": event,
        }

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return the payload with these fields."""
        payload = super().payload_of(fields, env)
        of_a_tool = OF_TOOLS.get(text_of(fields, "tool_event"))
        return payload._replace(can=of_a_tool[2]) if of_a_tool else payload

    def decided(self, kind: EventKind, permission: str, reason: str) -> dict[str, Any]:
        """Return the answer with a decision, "deny" or "ask", on a tool call or a sub-agent."""
        answer = {"permission": permission, "user_message": reason}
        return {**answer, "agent_message": reason} if kind == "before-tool" else answer

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the answer with a block, other than one that denies a tool call."""
        if kind == "prompt":
            return {"continue": False, "user_message": reason}
        if kind in ENDINGS:
            return {"followup_message": reason}
        return self.agent_message(kind, reason)

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the answer with a text for the agent."""
        return {"additional_context": text}

    def person_message(self, payload: Payload, person: str) -> dict[str, Any]:
        """Return the answer with a text for the person, which few events accept."""
        if payload.kind == "before-compact":
            return {"user_message": person}
        return super().person_message(payload, person)

    def is_block(self, exit_status: int | None, stdout: bytes) -> bool:
        """Return whether a hook's answer blocks an event that can be blocked."""
        if super().is_block(exit_status, stdout):
            return True
        try:
            answer = loads(stdout)
        except (ValueError, RecursionError):
            return False
        return isinstance(answer, dict) and (
            answer.get("permission") == "deny" or bool(answer.get("followup_message"))
        )


def _folder(fields: dict[str, Any]) -> object:
    """Return a tool's folder, which may be empty, or the window's first folder."""
    inside, roots = fields.get("tool_input"), fields.get("workspace_roots")
    own = inside.get("working_directory") if isinstance(inside, dict) else None
    folders = [fields.get("cwd"), own, *(roots if isinstance(roots, list) else ())]
    return next(filter(None, folders), "")


def _input(fields: dict[str, Any], *, is_beside: bool) -> dict[str, Any]:
    """Return a tool's input: a table, or a patch. `is_beside`: at the top of the event."""
    inside = fields.get("tool_input")
    if is_beside:
        inside = {name: fields[name] for name in _BESIDE if name in fields}
    if isinstance(inside, str):
        return {_PATCH: inside}
    table = inside if isinstance(inside, dict) else {}
    return {**table, "content": table["contents"]} if "contents" in table else table


HOST = Cursor()
