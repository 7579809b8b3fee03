"""Claude Code as a host: its events, its tools, its protocol and its transcripts. Pure.

One JSON object comes on standard input, and one, or nothing, goes to standard output.

Reading is tolerant: a field that is missing or of another type counts as not said, and only what is
no JSON object at all is refused. Whatever is answered goes with exit status 0, because 2 means
"block" there, and everything else "the hook is broken, go on".

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import os

from gitgates.agent_types import BackgroundTask, Channels, Payload, Replacement, ToolCall
from gitgates.hosts import BadPayload
from gitgates.hosts.capabilities import express, reaches_agent
from gitgates.lean_json import dumps, loads
from gitgates.types import BLOCK, STOP, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.agent_types import ToolKind
    from gitgates.lifecycle import EventKind
    from gitgates.types import Level

NAME = "claude"
TITLE = "Claude Code"
SETTINGS = "gitgates.hosts.claude.settings"
SERVERS = "gitgates.hosts.claude.mcp"
FOLDER = ".claude"  # of a project, and of a person's own
RULES_FILE = "CLAUDE.md"  # which each session reads
# (name, who sets it, what it does): what we read, for the documentation
VARIABLES = (
    ("CLAUDE_PROJECT_DIR", "claude", "where the agent's session was started"),
    ("CLAUDE_CONFIG_DIR", "you", "where Claude Code's settings of your own are: not ~/.claude"),
    ("CLAUDE_PLUGIN_ROOT", "claude", "where the plugin lies whose hook this is"),
    ("CLAUDE_CODE_SESSION_ID", "claude", "the session of the agent that runs a command"),
    ("CLAUDECODE", "claude", "tells that an agent runs a command, and not a person"),
    ("CLAUDE_CODE_SESSION_ATTENDED", "claude", "0: nobody is there to permit a tool call"),
)
PROJECT, _CONFIG, _PLUGIN, _SESSION, _CALLER, _ATTENDED = (
    name for name, _by, _meaning in VARIABLES
)
# What an event is, and what it can be answered with. The configuration calls them as Claude does.
EVENTS: dict[str, tuple[EventKind, Channels]] = {
    "SessionStart": ("session-start", Channels(context=True)),
    "UserPromptSubmit": (
        "prompt",
        Channels(block=True, stop=True, context=True, reason_to_person=True),
    ),
    "UserPromptExpansion": (
        "prompt-expansion",
        Channels(block=True, stop=True, context=True, reason_to_person=True),
    ),
    "PreToolUse": ("before-tool", Channels(deny=True, ask=True, stop=True, context=True)),
    "PostToolUse": ("after-tool", Channels(block=True, stop=True, context=True)),
    "PostToolUseFailure": ("tool-failed", Channels(context=True)),
    "SubagentStart": ("subagent-start", Channels(context=True)),
    # It ignores a stop, and loses a block that stands beside one.
    "SubagentStop": ("subagent-end", Channels(block=True)),
    "Stop": ("turn-end", Channels(block=True, stop=True)),
    "StopFailure": ("turn-failed", Channels()),
    "PreCompact": ("before-compact", Channels(block=True)),
    "PostCompact": ("after-compact", Channels()),
    "SessionEnd": ("session-end", Channels()),
}
TOOL_NAMES: dict[ToolKind, tuple[str, ...]] = {
    "writes": ("Edit", "Write", "NotebookEdit"),  # the file that they name
    "reads": ("Read", "Grep", "Glob"),
    "shell": ("Bash", "PowerShell"),
    "agent": ("Agent",),
    "skill": ("Skill",),
    "report": ("ReportFindings",),
    "ours": ("mcp__gitgates__*",),
    "harmless": (
        *("LSP", "WebFetch", "WebSearch", "ToolSearch", "ListMcpResourcesTool"),
        *("ReadMcpResourceTool", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
        *("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
        *("ScheduleWakeup", "CronCreate", "CronDelete", "CronList"),
    ),
}
# The names that tools had in other versions; patterns with one of them mean the new one, too.
FORMER_NAMES = {"Agent": "Task"}
TOOLS: dict[str, ToolKind] = {
    **{name: kind for kind, names in TOOL_NAMES.items() for name in names},
    "MultiEdit": "writes",
    "LS": "reads",
    "NotebookRead": "reads",
    "Task": "agent",
    "SlashCommand": "skill",
}

_OURS = "mcp__gitgates__"
_LONGEST = 10_000  # of one text; the client puts what is longer into a file
_CUT = " […]"
_BOM = b"\xef\xbb\xbf"
# The client hands its hooks everything that it has itself. Source: recorded from the client.
# Another agent would take the session for its own, or refuse to start inside of one.
OF_A_SESSION = (_CALLER, _SESSION, "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_ENV_FILE")
SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_ENV_FILE",
)
_TOOL_USE = "tool_use"  # stands in each line of a transcript that a call of a tool is in
_NOT_OURS = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
# In which fields of `tool_input` a tool names the file that it works on.
_PATH_FIELDS = ("file_path", "notebook_path")
# What the client itself puts in place of a prompt when a background task has something to say.
_PSEUDO_PREFIXES = ("<task-notification>",)
_PSEUDO_SOURCES = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
_SCHEDULERS = ("ScheduleWakeup", "CronCreate")


def home(env: Mapping[str, str]) -> str:
    """Return the folder of a person's own settings and agents; empty if there is none."""
    own = env.get("HOME")
    return env.get(_CONFIG) or (f"{own}/{FOLDER}" if own else "")


def session_of(env: Mapping[str, str]) -> str:
    """Return the session of the agent that runs a command; empty if none does."""
    return env.get(_SESSION, "")


def is_caller(env: Mapping[str, str]) -> bool:
    """Return whether an agent runs a command, and not a person."""
    return bool(env.get(_SESSION) or env.get(_CALLER))


def settings_files(root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a project, or a person, may have: scope → file, nearest first."""
    found = {
        "project": f"{root_abs}/{FOLDER}/settings.json",
        "local": f"{root_abs}/{FOLDER}/settings.local.json",
    }
    own = home(env)
    return {**found, "user": f"{os.path.abspath(own)}/settings.json"} if own else found


def agent_files(name: str, folders: Iterable[str]) -> list[str]:
    """Return the files that define a sub-agent, in folders of a project or of a person's own."""
    return [f"{folder}/agents/{name}.md" for folder in folders]


def skill_files(name: str, folders: Iterable[str]) -> list[str]:
    """Return the files that define a skill, or a command of that name."""
    files = ("skills/{}/SKILL.md", "commands/{}.md")
    return [f"{folder}/{file.format(name)}" for folder in folders for file in files]


def folders_of(root_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return the folders that agents and skills are defined in: projects', and a person's own."""
    projects = dict.fromkeys((root_abs, env.get(PROJECT) or root_abs))
    return [*(f"{folder}/{FOLDER}" for folder in projects), home(env)]


def plugin_of(env: Mapping[str, str]) -> str:
    """Return the folder of the plugin that has started us; empty if none has."""
    return env.get(_PLUGIN, "")


def decode(data: bytes, env: Mapping[str, str]) -> Payload:
    """Parse a payload.

    Raises: BadPayload where it is no JSON object.
    """
    if not data.strip():
        raise BadPayload("nothing came on standard input")
    try:
        found = loads(data.removeprefix(_BOM).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadPayload(f"a JSON object was expected, not {type(found).__name__}")
    tool_input = found.get("tool_input")
    inside = tool_input if isinstance(tool_input, dict) else {}
    response = found.get("tool_response")
    event = _text(found, "hook_event_name")
    kind, can = EVENTS.get(event, ("", Channels()))
    tool = _text(found, "tool_name")
    tool_kind = _tool_kind(tool)
    prompt, source = _text(found, "prompt"), _text(found, "source")
    return Payload(
        host=NAME,
        event=event,
        kind=kind,
        can=can,
        session=_text(found, "session_id"),
        prompt_id=_text(found, "prompt_id"),
        cwd_abs=_path(found, "cwd"),
        project_abs=env.get(PROJECT, ""),
        agent_id=_text(found, "agent_id"),
        agent_type=_text(found, "agent_type"),
        mode=_text(found, "permission_mode"),
        attended=env.get(_ATTENDED) != "0",
        tool=tool,
        tool_was=FORMER_NAMES.get(tool, ""),
        tool_kind=tool_kind,
        tool_use_id=_text(found, "tool_use_id"),
        paths=tuple(path for name in _PATH_FIELDS if (path := _path(inside, name))),
        command=_text(inside, "command"),
        tool_input=inside if tool_kind in ("shell", "ours") else {},
        edits=_edits(inside),
        failed=isinstance(response, dict) and response.get("success") is False,
        skill=_text(inside, "skill") or _text(found, "command_name"),
        prompt=prompt,
        source=source,
        automatic=prompt.lstrip().startswith(_PSEUDO_PREFIXES) or source in _PSEUDO_SOURCES,
        scheduled=_scheduled(found, inside),
        last_message=_text(found, "last_assistant_message"),
        transcript_abs=_path(found, "transcript_path"),
        again=found.get("stop_hook_active") is True,
        background=_tasks(found.get("background_tasks")),
    )


def encode(payload: Payload, verdict: Verdict) -> bytes:
    """Return what the client receives: one JSON object, or nothing."""
    if verdict.as_before is not None:
        return verdict.as_before.encode("ascii", "replace")
    level, _why = express(payload, verdict.level)
    to_agent, person = _cut(verdict.to_agent), _cut(verdict.to_person)
    reason = to_agent or person or "gitgates refused this."
    body: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if level == STOP:
        body |= {"continue": False, "stopReason": person or reason}
    if permission := _permission(payload, verdict, level):
        own |= {"permissionDecision": permission, "permissionDecisionReason": reason}
    elif level == BLOCK:
        body |= {"decision": "block", "reason": reason}
    elif to_agent and reaches_agent(payload.can, level):
        own["additionalContext"] = to_agent
    elif to_agent and level != STOP and verdict.level:
        person = person or to_agent  # nobody else would hear of it
    said = {"command": verdict.command, "caller": verdict.caller}
    if (changed := {name: text for name, text in said.items() if text}) and level < BLOCK:
        # Without a decision, so that its permission is asked for as ever. It replaces all of it.
        own["updatedInput"] = {**payload.tool_input, **changed}
    if own:
        body["hookSpecificOutput"] = {"hookEventName": payload.event, **own}
    if person:
        body["systemMessage"] = person
    return dumps(body).encode("ascii") if body else b""


def _permission(payload: Payload, verdict: Verdict, level: Level) -> str:
    """Return what is decided of a tool call; empty: nothing."""
    if level >= BLOCK and payload.can.deny:
        return "deny"
    return "ask" if level < BLOCK and verdict.ask and payload.can.ask else ""


def calls_in(line: bytes) -> list[ToolCall]:
    """Return the calls of tools in one line of a transcript.

    By their structure: a text that mentions one is none. What is no JSON is a call of nobody knows
    what; whatever else is not understood is passed over, because the format is not promised.
    """
    if _TOOL_USE.encode() not in line:
        return []
    try:
        record = loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return [ToolCall()]
    try:
        said = record["message"]["content"] if record.get("type") == "assistant" else []
        return [_call(one) for one in said if one["type"] == _TOOL_USE]
    except _NOT_OURS:
        return []


def conversation_start_in(head: bytes) -> float:
    """Return when the conversation began, since the epoch, by its first lines; 0: not told."""
    for line in head.split(b"\n"):
        try:
            stamp = _stamp(loads(line).get("timestamp", ""))
        except (*_NOT_OURS, UnicodeDecodeError):
            continue
        if stamp:
            return stamp
    return 0.0


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    # Half of a surrogate pair is no text.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _path(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        # A file name need not be text: the host may send its bytes, or what Python makes of them.
        return os.fsdecode(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return os.fsdecode(value.encode("utf-8", "replace"))


def _edits(tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
    if "content" in tool_input:
        return (Replacement(new=_text(tool_input, "content"), whole=True),)
    several = tool_input.get("edits")
    tables = several if isinstance(several, list) else [tool_input]
    return tuple(
        Replacement(
            old=_text(table, "old_string"),
            new=_text(table, "new_string"),
            everywhere=table.get("replace_all") is True,
        )
        for table in tables
        if isinstance(table, dict) and "old_string" in table
    )


def _tasks(value: object) -> tuple[BackgroundTask, ...]:
    if not isinstance(value, list):
        return ()
    tables = [item for item in value if isinstance(item, dict)]
    return tuple(BackgroundTask(_text(table, "type"), _text(table, "status")) for table in tables)


def _tool_kind(tool: str) -> ToolKind:
    if tool.startswith(_OURS):
        return "ours"
    return TOOLS.get(tool, "other" if tool else "")


def _scheduled(found: dict[str, Any], tool_input: dict[str, Any]) -> tuple[str, ...]:
    """Return the prompts that a tool, or the end of a turn, schedules."""
    crons = found.get("session_crons")
    tables = [item for item in crons if isinstance(item, dict)] if isinstance(crons, list) else []
    if found.get("tool_name") in _SCHEDULERS:
        tables.append(tool_input)
    texts = (_text(table, "prompt").strip() for table in tables)
    return tuple(text for text in texts if text)


def _cut(text: str) -> str:
    """Return a text that the client takes whole. It counts as JavaScript does."""
    if not text:
        return ""
    from gitgates.clean import plain  # most events are answered with nothing

    text = plain(text.encode("utf-8", "replace"))  # a file's name may be no text
    if len(text) <= _LONGEST // 2:
        return text
    units = text.encode("utf-16-le", "replace")  # two bytes for each that JavaScript counts
    if len(units) <= _LONGEST * 2:
        return text
    return units[: (_LONGEST - len(_CUT)) * 2].decode("utf-16-le", "ignore") + _CUT


def _call(one: dict[str, Any]) -> ToolCall:
    said = one["input"] if isinstance(one.get("input"), dict) else {}
    return ToolCall(
        kind=TOOLS.get(str(one["name"]), "other"),
        path=str(said.get("file_path") or said.get("notebook_path") or ""),
        command=str(said.get("command", "")),
    )


def _stamp(text: object) -> float:
    """Return a time since the epoch; 0 if unknown."""
    from datetime import datetime  # only where a transcript is read at all

    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
