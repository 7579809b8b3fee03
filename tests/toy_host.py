"""A coding agent that there is not, in one file: no real one has its words or its format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gitgates.agent_types import Channels, Payload
from gitgates.hosts import BadPayload
from gitgates.hosts.capabilities import express, reaches_agent
from gitgates.hosts.settings import Entry, HookSettings, InstalledHook, is_our_command
from gitgates.types import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gitgates.agent_types import ToolCall, ToolKind
    from gitgates.lifecycle import EventKind
    from gitgates.types import Verdict

NAME = "toy"
TITLE = "The Toy"
FOLDER = ".toy"
RULES_FILE = "TOY.txt"
SETTINGS = __name__
SERVERS = ""
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
TOOL_NAMES: dict[ToolKind, tuple[str, ...]] = {}
TOOL_NAMES |= {"writes": ("type",), "reads": ("look",), "shell": ("sh",)}
TOOLS = {name: kind for kind, names in TOOL_NAMES.items() for name in names}


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


def settings_files(root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that there may be."""
    return {"project": f"{root_abs}/{FOLDER}/settings", "user": f"{home(env)}/settings"}


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


# Its settings: lines such as `done: COMMAND (75 s)`, `about-to type|look: COMMAND (5 s)`, `silent`

MANAGED = "/nowhere/toy"
LOUDER: tuple[str, ...] = ("user", "project", "managed")
OFF = "silent"
SETTINGS_PATH = re.compile(r"(?:^|/)\.toy/settings$")
AGENT_PATH = re.compile(r"(?!)")
TAKE_PLUGIN_OUT = AGENTS = ""
PROVABLE = tuple(HOOKS[event] for event in ("done", "asked", "about-to"))
_LINE = re.compile(r"([a-z-]+)(?: ([^:]+))?: (.+) \((\d+) s\)\r?\n")
_OWN = {hook: event for event, hook in HOOKS.items()}


def add(text: str | None, wanted: tuple[Entry, ...], command: str, _file: str) -> str:
    """Return the text with a line for each event that there is, before all else."""
    lines = [
        f"{_OWN[one.event]}{f' {one.matcher}' if one.matcher else ''}: {command} "
        f"({one.timeout_s} s)\n"
        for one in wanted
        if one.event in _OWN
    ]
    return "".join(lines) + ("made for gitgates\n" if text is None else text)


def remove(text: str, _file: str) -> str | None:
    """Return the text without our lines."""
    rest = "".join(line for line in text.splitlines(keepends=True) if not _is_ours(line))
    return None if rest == "made for gitgates\n" else rest


def _is_ours(line: str) -> bool:
    found = _LINE.fullmatch(line)
    return bool(found and is_our_command(found[3], NAME))


def read(text: str, _file: str, _scope: str = "") -> HookSettings:
    """Return what the lines say."""
    found = [_LINE.fullmatch(line) for line in text.splitlines(keepends=True)]
    return HookSettings(
        off=True if "silent\n" in text else None,
        hooks=tuple(
            InstalledHook(
                event=HOOKS[one[1]],
                command=one[3],
                timeout_s=float(one[4]),
                matcher=one[2],
                is_ours=is_our_command(one[3], NAME),
            )
            for one in found
            if one
        ),
    )


def plugin() -> HookSettings:
    """Return nothing: there are no plugins."""
    return HookSettings()


def matcher(
    kind: EventKind, tools: tuple[str, ...] | None, _agents: tuple[str, ...] | None
) -> str | None:
    """Return names of tools."""
    return "|".join(tools) if tools and kind == "before-tool" else None


def review_files(_reviewer: str, _model: str) -> dict[str, str]:
    """Return nothing: there are no sub-agents."""
    return {}


def may_define(_reviewer: str) -> bool:
    """Return that there are none."""
    return False


def agent_name(_text: str) -> str:
    """Return that there are none."""
    return ""


def hook_environment(root_abs: str) -> dict[str, str]:
    """Return the variable that names the folder."""
    return {"TOY_ROOT": root_abs}


def sample(event: str, root_abs: str, session: str, file: str = "") -> bytes:
    """Return a payload."""
    tool = f"\ttype\t{file}" if event == "PreToolUse" else ""
    return f"{_OWN[event]}\t{session}\t{root_abs}{tool}\n".encode()


def is_block(_status: int | None, stdout: bytes) -> bool:
    """Return whether it is told no."""
    return stdout.startswith(b"no: ")
