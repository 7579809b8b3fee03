"""Mistral Vibe as a host.

It has no events for a session's start and for prompts. A turn that was blocked three times ends,
whatever its hooks answer. If two settings files call gitgates, only the project's hooks run: hooks
with the same name replace each other.

Source: recorded from mistral-vibe 3.0.2.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind

_END = "post_agent"
_HOOK_OUTPUT = "hook_specific_output"
# Payloads have the client's internal name; people and patterns use the model's.
_MODEL_NAMES = {"file_system.search_replace": "edit", "skill.read": "skill"}
_GROUPS = ("file_system.", "self.")


class Vibe(agent.AgentHost):
    """Mistral Vibe."""

    NAME = "vibe"
    TITLE = "Mistral Vibe"
    PROGRAMS = ("vibe", "mistral-vibe")
    AUTO_APPROVE_OPTIONS = ("--auto-approve", "--yolo", "auto-approve")
    TESTED = "3.0.2"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            ("VIBE_APP_SERVER_BIN", "vibe", "set if an agent runs the command, not a person"),
            ("VIBE_HOME", "you", "the folder of Vibe's user settings, instead of ~/.vibe"),
        ),
        secrets=("MISTRAL_API_KEY",),
        of_a_session=("VIBE_APP_SERVER_BIN",),
    )
    PROTOCOL = agent.Protocol(
        events={
            "pre_tool": ("before-tool", Channels(deny=True)),
            "post_tool": ("after-tool", Channels(block=True, context=True)),
            _END: ("turn-end", Channels(block=True, stop=True)),
        },
        tells_prompts=False,
        repeats=False,
        hands_tokens=False,
        cannot={"turn-end": "Vibe ends a turn after three blocks"},
        answers=agent.Answers(
            denies="deny",
            blocks="deny",
            only_tells=("after-tool",),
            silent_stops=("turn-end",),
            person="system_message",
        ),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("edit", "write_file"),
            "reads": ("read_file",),
            "shell": ("bash", "process_start", "process_write"),
            "agent": ("agents_spawn", "agents_send_message"),
            "skill": ("skill",),
            "report": (),
            "ours": (),
            "harmless": (
                *("wait", "sleep", "vibe_todo", "agents_list", "agents_list_configs"),
                *("agents_interrupt", "process_output", "process_list", "process_stop"),
            ),
        },
        other_names={
            "process_start": ("Bash",),
            "agents_spawn": ("Agent", "Task"),
        },
    )
    FILES = agent.Files(
        folder=".vibe",
        home_variable="VIBE_HOME",
        settings={"project": "hooks.toml", "user": "hooks.toml"},
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.agents.vibe_settings",
        fields={"name": "name", "event": "type", "matcher": "match"},
        whole=True,
        expression="re:{}",
        runs_once=True,
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows.

        A sub-agent has a session of its own, which ends with the event that ends a turn.
        """
        tool = text_of(fields, "tool_name")
        name = _MODEL_NAMES.get(tool, tool)
        for group in _GROUPS:
            name = name.removeprefix(group)
        fields = {
            **fields,
            "tool_name": name.replace(".", "_"),
            "tool_use_id": fields.get("tool_call_id"),
            "transcript_path": "",  # a folder
        }
        tool_input = fields.get("tool_input")
        if isinstance(tool_input, dict):
            fields["tool_input"] = _renamed_input(name, tool_input)
        if fields.get("tool_status") not in (None, "success"):
            fields["tool_response"] = {"success": False}
        if parent := text_of(fields, "parent_session_id"):
            fields |= {"session_id": parent, "agent_id": fields.get("session_id")}
            if fields.get("hook_event_name") == _END:
                fields["hook_event_name"] = f"{_END} of a sub-agent"
        return fields

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the answer with a text for the agent."""
        return {_HOOK_OUTPUT: {"additional_context": text}}

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        tool_input = {"file_path": path_abs, "content": "done\n"}
        return {"tool_name": "file_system.write_file", "tool_input": tool_input}

    def sample(
        self, kind: EventKind, root_abs: str, session: str, file: str = ""
    ) -> dict[str, Any]:
        """Return a sample payload of an event in a session in a folder; `file`: in it."""
        payload = super().sample(kind, root_abs, session, file)
        return {**payload, "tool_call_id": payload.get("tool_use_id")}


def _renamed_input(tool: str, tool_input: dict[str, Any]) -> dict[str, Any]:
    if tool == "skill":
        return {"skill": tool_input.get("name")}
    content = tool_input.get("content")  # of a file, or a list of edits
    if isinstance(content, list):
        return {
            **{key: tool_input[key] for key in tool_input if key != "content"},
            "edits": content,
        }
    return tool_input


HOST = Vibe()
