"""A coding agent that there is not, in one file: no real one has its words or its format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitgates.agent_types import Channels, Payload
from gitgates.hosts import BadPayload
from gitgates.hosts.capabilities import express, reaches_agent
from gitgates.types import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gitgates.agent_types import ToolCall, ToolKind
    from gitgates.lifecycle import EventKind
    from gitgates.types import Verdict

NAME = "toy"
FOLDER = ".toy"
SECRETS: tuple[str, ...] = ("TOY_SECRET",)
OF_A_SESSION: tuple[str, ...] = ("TOY_SESSION",)
EVENTS: dict[str, tuple[EventKind, Channels]] = {
    "hello": ("session-start", Channels(context=True)),
    "asked": ("prompt", Channels(block=True, context=True, reason_to_person=True)),
    "about-to": ("before-tool", Channels(deny=True)),
    "done": ("turn-end", Channels(block=True)),
}
HOOKS = {"hello": "SessionStart", "asked": "UserPromptSubmit"}
HOOKS |= {"about-to": "PreToolUse", "done": "Stop"}
TOOLS: dict[str, ToolKind] = {"type": "writes", "look": "reads", "sh": "shell"}


def decode(data: bytes, env: Mapping[str, str]) -> Payload:
    """Read `event conversation folder [tool file]`, separated by tabs."""
    fields = data.decode().rstrip("\n").split("\t")
    if len(fields) not in {3, 5}:
        raise BadPayload(f"{len(fields)} fields")
    event, session, folder, tool, file = [*fields, "", ""][:5]
    kind, can = EVENTS.get(event, ("", Channels()))
    return Payload(
        host=NAME,
        event=HOOKS.get(event, event),
        kind=kind,
        can=can,
        session=session,
        prompt_id="1",
        cwd_abs=folder,
        project_abs=env.get("TOY_ROOT", ""),
        tool=tool,
        tool_kind=TOOLS.get(tool, "other" if tool else ""),
        tool_use_id=f"{tool} {file}" if tool else "",
        paths=(file,) if file else (),
    )


def encode(payload: Payload, verdict: Verdict) -> bytes:
    """Say `no: REASON`, or what is to be known."""
    if verdict.as_before is not None:
        return verdict.as_before.encode("ascii")
    level, _why = express(payload, verdict.level)
    text = (verdict.to_agent or verdict.to_person).encode("ascii", "replace")
    if level >= BLOCK:
        return b"no: " + text
    return b"know: " + text if text and reaches_agent(payload.can, level) else b""


def home(env: Mapping[str, str]) -> str:
    """Return the folder of a person's own."""
    return f"{env.get('HOME', '')}/{FOLDER}"


def session_of(env: Mapping[str, str]) -> str:
    """Return the session of the agent that runs a command."""
    return env.get("TOY_SESSION", "")


def is_caller(env: Mapping[str, str]) -> bool:
    """Return whether an agent runs a command."""
    return bool(session_of(env))


def folders_of(root_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return the folders that agents and skills are defined in."""
    return [f"{root_abs}/{FOLDER}", home(env)]


def plugin_of(_env: Mapping[str, str]) -> str:
    """Return nothing: there are no plugins."""
    return ""


def settings_files(root_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return the settings that there may be."""
    return [f"{folder}/settings" for folder in folders_of(root_abs, env)]


def agent_files(name: str, folders: Iterable[str]) -> list[str]:
    """Return the files that define a sub-agent."""
    return [f"{folder}/{name}" for folder in folders]


def skill_files(name: str, folders: Iterable[str]) -> list[str]:
    """Return the files that define a skill."""
    return [f"{folder}/skill-{name}" for folder in folders]


def calls_in(_line: bytes) -> Sequence[ToolCall]:
    """Return nothing: there is no transcript."""
    return ()


def conversation_start_in(_head: bytes) -> float:
    """Return that it is not told when a conversation began."""
    return 0.0
