"""Hermes Agent as a host.

At a turn's end, it runs hooks only if its file tools have changed something, and at most three
times. Most of a payload is in the field `extra`. A sub-agent has a session of its own, and is
recognised by the names of its tasks; nothing tells which agent started it.

Source: recorded from hermes-agent 0.19.0.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.patch import edits_of, paths_of
from gitgates.hosts.payload import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import Replacement
    from gitgates.core.lifecycle import EventKind

_SESSION = "HERMES_SESSION_ID"
_MOST_S = 300
_SUBAGENT = "sa-"  # the prefix of the names of a sub-agent's tasks
_TOOL_EVENTS = ("pre_tool_call", "post_tool_call")


class Hermes(agent.AgentHost):
    """Hermes Agent."""

    NAME = "hermes"
    TITLE = "Hermes"
    PROGRAMS = ("hermes", "hermes-agent")
    AUTO_APPROVE_OPTIONS = ("--yolo", "--accept-hooks")
    TESTED = "0.19.0"
    HAS_E2E_TESTS = True
    ENVIRONMENT = agent.Environment(
        documented=(
            (_SESSION, "hermes", "the session of the agent that runs a command"),
            ("HERMES_HOME", "you", "the folder of Hermes' user settings, instead of ~/.hermes"),
        ),
        secrets=("OPENROUTER_API_KEY",),
        of_a_session=(_SESSION,),
    )
    PROTOCOL = agent.Protocol(
        events={
            "on_session_start": ("session-start", Channels()),
            "pre_llm_call": ("prompt", Channels(context=True)),
            "pre_tool_call": ("before-tool", Channels(deny=True)),
            "post_tool_call": ("after-tool", Channels()),
            "pre_verify": ("turn-end", Channels(block=True, stop=True)),
        },
        repeats=False,
        hands_tokens=False,
        cannot={
            "session-start": (
                "Hermes does not pass the rules to the agent: write them to "
                "AGENTS.md with install-hooks --agents-md"
            ),
            "after-tool": "Hermes shows nobody the output of gates there",
            "turn-end": (
                "Hermes fires it at most three times per turn, only if its file tools "
                "changed files, and does not show messages to the person"
            ),
        },
        answers=agent.Answers(silent_stops=("turn-end",), denies="block", person=""),
    )
    TOOLS = agent.Tools(
        names={
            "writes": ("write_file", "patch", "skill_manage"),
            "reads": ("read_file", "search_files"),
            "shell": ("terminal", "execute_code", "process"),
            "agent": ("delegate_task",),
            "skill": ("skill_view",),
            "report": (),
            "ours": (),
            "harmless": (
                *("skills_list", "clarify", "memory", "session_search", "todo", "vision_analyze"),
            ),
        },
        other_names={
            "patch": ("Edit", "MultiEdit"),
            "search_files": ("Grep", "Glob"),
            "execute_code": ("Bash",),
            "process": ("Bash",),
            "delegate_task": ("Agent", "Task"),
            "skill_view": ("Skill",),
        },
    )
    FILES = agent.Files(
        folder=".hermes",
        home_variable="HERMES_HOME",
        settings={"user": "config.yaml"},
    )
    SETTINGS = agent.SettingsFormat(
        module="gitgates.hosts.agents.hermes_settings",
        whole=True,
        times=agent.HookTimes(most_s={kind: _MOST_S for kind, _can in PROTOCOL.events.values()}),
    )
    OFF = agent.DisableSwitch(
        words=(("--safe-mode",), ("--ignore-user-config",)),
        variables=("HERMES_SAFE_MODE", "HERMES_IGNORE_USER_CONFIG"),
    )

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        event, tool = fields.get("hook_event_name"), text_of(fields, "tool_name")
        extra, tool_input = fields.get("extra"), fields.get("tool_input")
        extra = extra if isinstance(extra, dict) else {}
        inside = tool_input if isinstance(tool_input, dict) else {}
        is_child = extra.get("platform") == "subagent"
        is_child = is_child or text_of(extra, "task_id").startswith(_SUBAGENT)
        if is_child and event not in _TOOL_EVENTS:
            event = f"{event} of a sub-agent"
        if extra.get("status") == "blocked":
            event = f"{event} of a refused call"
        if tool == "skill_view":
            inside = {"skill": inside.get("name")}
        return {
            **fields,
            "hook_event_name": event,
            "agent_id": fields.get("session_id") if is_child else "",
            "tool_input": inside,
            "tool_use_id": extra.get("tool_call_id"),
            "tool_response": {"success": extra.get("status") != "error"},
            "prompt": extra.get("user_message"),
            "last_assistant_message": extra.get("final_response"),
            "stop_hook_active": bool(extra.get("attempt")),
        }

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a tool's files."""
        return super().paths_in(tool_input) or paths_of(text_of(tool_input, "patch"))

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return a tool's edits, in order."""
        return super().edits_in(tool_input) or edits_of(text_of(tool_input, "patch"))

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the answer with a text for the agent."""
        return {"context": text}


HOST = Hermes()
