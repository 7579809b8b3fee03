"""Claude Code's settings: which files, what hooks look like in them, which are ours. Pure.

A hook is ours by its whole command: `gitgates agent-hook claude`, with the bare name or with an
absolute path. One that merely mentions us is somebody else's.

A matcher of names joined by `|` is taken as it is, whole and by letter; whatever has another sign
in it is an expression that is searched for, so that ours are anchored. A pattern of ours with `!`
in front leaves a tool out, and means all others; what is named beside it is not left out.

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from difflib import get_close_matches

from gitgates.errors import StateError
from gitgates.hosts.claude import EVENTS, FOLDER, FORMER_NAMES, NAME, PROJECT, TOOL_NAMES, home
from gitgates.lifecycle import TOOL_EVENTS
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.agent_types import ToolKind

RULES_FILE = "CLAUDE.md"  # which each session reads
SCOPES = ("project", "local", "user")
FILES = {"project": "settings.json", "local": "settings.local.json", "user": "settings.json"}
MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)
# In a repository: settings and the hooks of plugins, and what defines agents.
SETTINGS_PATH = re.compile(r"(?:^|/)\.claude/settings[\w.-]*\.json$|(?:^|/)hooks/hooks\.json$")
AGENT_PATH = re.compile(r"(?:^|/)\.claude/agents/.+\.md$")
# Which settings count more, where one thing is set in several.
LOUDER = ("user", "project", "local", "managed")
NO_HOOKS = "disableAllHooks"  # a key of the settings; so are the next two
MANAGED_ONLY = "allowManagedHooksOnly"
PLUGINS = "enabledPlugins"

ARGUMENTS = ("agent-hook", NAME)
BARE = f"gitgates {' '.join(ARGUMENTS)}"
# In our plugin, which may be there where we are not: then nothing is to be seen of it.
PLUGIN = f"if command -v gitgates >/dev/null 2>&1; then exec {BARE}; fi"
_WAITING = "gitgates: running the gates"
_WAITED_FOR = ("turn-end", "subagent-end", "after-tool")
# What the client waits, where the settings say nothing.
_USUAL_S = 600.0
_USUAL_OF = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
# Where the client finds another kind, it leaves the hook out.
_KINDS: dict[str, type] = {"timeout": float, "statusMessage": str, "async": bool}
_WORDS = {float: "number", str: "text", bool: "boolean"}

_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")
_LISTED = re.compile(r"[A-Za-z0-9_\- ,|]+")
_ALL = (None, "", "*")
_OF_PLUGINS = "(.*:)?"  # a plugin's agent is named `plugin:agent`; its bare name means it, too
_BUT = "!"
_ANY_NAMES = ("Edit", "Bash", "mcp__any__tool", "any-agent")


_STOP = {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": []}
_WRITE = {"tool_name": "Write", "tool_use_id": "toolu_doctor"}
# What can be blocked, and what the client says of it beside the usual.
PROVABLE: dict[str, dict[str, Any]] = {
    "Stop": _STOP,
    "SubagentStop": {**_STOP, "agent_id": "doctor", "agent_type": "doctor"},
    "PostToolUse": {**_WRITE, "tool_response": {"type": "create"}},
    "PreToolUse": _WRITE,
    "UserPromptSubmit": {"prompt": "go"},
    "UserPromptExpansion": {"prompt": "/go", "command_name": "go", "command_args": ""},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
}
_EXIT_BLOCK = 2


class Entry(Record):
    """One hook of ours as it is to stand in the settings."""

    event: str
    timeout_s: int
    matcher: str | None = None  # None: all
    on_failure: str = ""  # block: the client blocks where the hook cannot answer

    def group(self, command: str) -> dict[str, Any]:
        """Return what stands in the list of the event."""
        hook: dict[str, Any] = {"type": "command", "command": command, "timeout": self.timeout_s}
        if EVENTS[self.event][0] in _WAITED_FOR:
            hook["statusMessage"] = _WAITING
        if self.on_failure:
            hook["onFailure"] = self.on_failure
        matcher = {} if self.matcher is None else {"matcher": self.matcher}
        return {**matcher, "hooks": [hook]}


class InstalledHook(Record):
    """One hook that is there and starts us."""

    event: str
    matcher: str | None
    timeout_s: float
    command: str
    loose: str = ""  # what it says that keeps it from blocking, and how


def settings_file(scope: str, root_abs: str, env: Mapping[str, str]) -> str:
    """Return the settings file of a scope. The folder of a person's own may be moved.

    Raises: StateError where there is no home.
    """
    if scope != "user":
        return os.path.join(root_abs, FOLDER, FILES[scope])
    if not home(env):
        raise StateError(
            "neither HOME nor CLAUDE_CONFIG_DIR is set, so that there are no settings of yours",
            "Set one, or take another scope: --scope local",
        )
    return os.path.join(os.path.abspath(home(env)), FILES[scope])


def is_ours(command: object) -> bool:
    """Return whether the command of a hook is ours."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quotation that does not end
        return False
    if len(words) != 1 + len(ARGUMENTS) or tuple(words[1:]) != ARGUMENTS:
        return False
    program = words[0]
    return program == "gitgates" or (
        os.path.isabs(program) and os.path.basename(program) == "gitgates"
    )


def handlers(hooks: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each hook of settings: its event, its group, and itself."""
    for event, groups in hooks.items():
        for group in groups:
            found = group.get("hooks") if isinstance(group, dict) else None
            for one in found if isinstance(found, list) else ():
                if isinstance(one, dict):
                    yield event, group, one


def installed_hooks(hooks: dict[str, Any]) -> tuple[InstalledHook, ...]:
    """Return the hooks that start us."""
    return tuple(parse_hook(*one) for one in handlers(hooks) if _calls_us(one[2]))


def unrecognised_hooks(hooks: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return event and command of each hook that speaks of us, rightly or misspelt, but is none."""
    commands = ((event, one, _command_line(one)) for event, _group, one in handlers(hooks))
    return tuple(
        (event, line) for event, one, line in commands if not _calls_us(one) and _speaks_of_us(line)
    )


def parse_hook(event: str, group: dict[str, Any], handler: dict[str, Any]) -> InstalledHook:
    """Return what a hook of ours says."""
    matcher, timeout = group.get("matcher"), handler.get("timeout")
    known = float(timeout) if isinstance(timeout, int | float) else None
    return InstalledHook(
        event=event,
        matcher=matcher if isinstance(matcher, str) else None,
        timeout_s=_USUAL_OF.get(event, _USUAL_S) if known is None else known,
        command=str(handler["command"]),
        loose=_why_not_awaited(group, handler),
    )


def hook_environment(root_abs: str) -> dict[str, str]:
    """Return what the client sets for its hooks where a session is started in a folder."""
    return {PROJECT: root_abs}


def sample(event: str, root_abs: str, session: str, file: str = "") -> bytes:
    """Return the payload of an event in a session that is begun in a folder, about a file of it."""
    payload = {
        "session_id": session,
        "transcript_path": os.path.join(os.path.dirname(root_abs), "none.jsonl"),
        "cwd": root_abs,
        "hook_event_name": event,
        "prompt_id": "gitgates-doctor-prompt",
        "permission_mode": "default",
        "source": "startup",
        **PROVABLE.get(event, {}),
    }
    if "tool_name" in payload:
        payload["tool_input"] = {"file_path": os.path.join(root_abs, file), "content": "done\n"}
    return json.dumps(payload).encode()


def is_block(exit_status: int | None, stdout: bytes) -> bool:
    """Return whether the client would block for this answer, whoever it is from."""
    if exit_status == _EXIT_BLOCK:
        return True
    try:
        answer = json.loads(stdout)
    except ValueError:
        return False
    if not isinstance(answer, dict):
        return False
    own = answer.get("hookSpecificOutput")
    denies = isinstance(own, dict) and own.get("permissionDecision") == "deny"
    return denies or answer.get("decision") == "block" or answer.get("continue") is False


def event_matcher(
    event: str, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
) -> str | None:
    """Return the matcher of an event; None: all, or nothing to match there."""
    kind = EVENTS[event][0]
    if kind in TOOL_EVENTS:
        return tool_matcher(tools)
    return agent_matcher(agents) if kind in ("subagent-start", "subagent-end") else None


def _command_line(handler: dict[str, Any]) -> str:
    """Return the command of a hook with its arguments, which may be a list of their own."""
    args = handler.get("args")
    words = [handler.get("command"), *(args if isinstance(args, list) else ())]
    return " ".join(word for word in words if isinstance(word, str))


def _speaks_of_us(command: str) -> bool:
    program = os.path.basename(command.partition(" ")[0])
    return (
        "gitgates" in command
        or ARGUMENTS[0] in command
        or bool(get_close_matches(program, ("gitgates",), cutoff=0.8))
    )


def _calls_us(handler: dict[str, Any]) -> bool:
    command = handler.get("command")
    if handler.get("type") != "command" or "args" in handler:
        return False
    return command == PLUGIN or is_ours(command)


def _why_not_awaited(group: dict[str, Any], handler: dict[str, Any]) -> str:
    """Return why the client would not wait for a hook, or not run it."""
    if handler.get("async") is True:
        return "its `async` is true: Claude Code does not wait for it"
    if handler.get("if"):
        return "it has an `if`: Claude Code may not run it"
    if handler.get("shell") not in (None, "bash"):
        return f"its `shell` is {json.dumps(handler['shell'])}: it was not made for that"
    if not isinstance(group.get("matcher", ""), str):
        return "its `matcher` is no text: Claude Code leaves it out"
    for key, kind in _KINDS.items():
        value = handler.get(key, kind())
        number = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if not isinstance(value, kind) and not number:
            return f"its `{key}` is no {_WORDS[kind]}: Claude Code leaves it out"
    return ""


def matches_any(patterns: tuple[str, ...] | None) -> bool:
    """Return whether any name fits: no patterns mean all, and an empty list none."""
    return patterns is None or bool(_parts(patterns))


def tool_patterns(
    patterns: tuple[str, ...] | None, kinds: tuple[ToolKind, ...], *, but_reads: bool
) -> tuple[str, ...] | None:
    """Return patterns for tools that are named, of some kinds, or (`but_reads`) all but readers."""
    if patterns is None:
        return None
    named = [*patterns, *(name for kind in kinds for name in TOOL_NAMES[kind])]
    left_out = [f"{_BUT}{name}" for name in TOOL_NAMES["reads"] if but_reads]
    return tuple(dict.fromkeys((*named, *left_out)))


def tool_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these tools through (names, `A|B`, globs, `!A`); None: all."""
    parts = _parts(patterns or ())
    if patterns is None or "*" in parts:
        return None
    if any(part.startswith(_BUT) for part in parts):
        left_out = _left_out(parts)
        return f"^(?!(?:{'|'.join(map(_expression, left_out))})$)" if left_out else None
    if all(_PLAIN.fullmatch(part) for part in parts):
        return "|".join(parts)
    return f"^({'|'.join(map(_expression, parts))})$"


def agent_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these agents through, those of plugins as well; None: all."""
    parts = _parts(patterns or ())
    if patterns is None or "*" in parts:
        return None
    return f"^{_OF_PLUGINS}({'|'.join(map(_expression, parts))})$"


def lets_through(matcher: str | None, name: str) -> bool:
    """Return whether the client calls a hook with this matcher for a name."""
    if matcher in _ALL:
        return True
    text = matcher or ""
    if _LISTED.fullmatch(text):
        listed = [part.strip() for part in re.split(r"[|,]", text)]
        return name in listed or FORMER_NAMES.get(name) in listed
    try:
        return re.search(text, name) is not None
    except re.error:
        return False


def samples(patterns: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return names that fit the patterns: one for each, or any names at all where all do."""
    if patterns is None:
        return _ANY_NAMES
    parts = _parts(patterns)
    named = [part for part in parts if not part.startswith(_BUT)]
    if named != parts:
        left_out = _left_out(parts)
        named += [n for n in _ANY_NAMES if not any(_fits(part, n) for part in left_out)]
    return tuple(dict.fromkeys(part.replace("*", "x").replace("?", "x") for part in named))


def _parts(patterns: tuple[str, ...]) -> list[str]:
    parts = [part.strip() for pattern in patterns for part in pattern.split("|")]
    return list(dict.fromkeys(part for part in parts if part))


def _left_out(parts: list[str]) -> list[str]:
    """Return what is left out in the end: not what is named as well."""
    named = [part for part in parts if not part.startswith(_BUT)]
    but = [part.removeprefix(_BUT) for part in parts if part.startswith(_BUT)]
    return [name for name in but if not any(_fits(part, name) for part in named)]


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(_expression(part), name) is not None


def _expression(part: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in part)
