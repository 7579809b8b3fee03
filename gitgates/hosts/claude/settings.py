"""Claude Code's settings: our hooks put into their text and taken out, and what they say. Pure.

A matcher of names joined by `|` is taken as it is, whole and by letter; whatever has another sign
in it is an expression that is searched for, so that ours are anchored.

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.resources import files

from gitgates import json_text
from gitgates.hosts.claude import EVENTS, NAME, PROJECT
from gitgates.hosts.settings import (
    Entry,
    HookSettings,
    InstalledHook,
    bare,
    expression,
    is_our_command,
    left_out,
    split,
)
from gitgates.lifecycle import GATES_OWN_TIME, TOOL_EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gitgates.json_text import Node
    from gitgates.lifecycle import EventKind

_SUPPORT = {"darwin": "/Library/Application Support/ClaudeCode"}.get(sys.platform)
MANAGED = f"{_SUPPORT or '/etc/claude-code'}/managed-settings.json"
# In a repository: settings and the hooks of plugins, and what defines agents.
SETTINGS_PATH = re.compile(r"(?:^|/)\.claude/settings[\w.-]*\.json$|(?:^|/)hooks/hooks\.json$")
AGENT_PATH = re.compile(r"(?:^|/)\.claude/agents/.+\.md$")
# Which settings count more, where one thing is set in several.
LOUDER: tuple[str, ...] = ("user", "project", "local", "managed")
OFF = "disableAllHooks"  # a key of the settings
_MANAGED_ONLY = "allowManagedHooksOnly"

BARE = bare(NAME)
# In our plugin, which may be there where we are not: then nothing is to be seen of it.
PLUGIN = f"if command -v gitgates >/dev/null 2>&1; then exec {BARE}; fi"
TAKE_PLUGIN_OUT = "in Claude Code: /plugin uninstall gitgates"
_WAITING = "gitgates: running the gates"
# What the client waits, where the settings say nothing.
_USUAL_S = 600.0
_USUAL_OF = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
# What may stand in a hook of ours and its group: where the client finds another type, it leaves it
# out, and with `if`, `async` or another shell, it may not run it, or not wait for it.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "command", "matcher", "statusMessage"), (str,)),
    "timeout": (int, float),
}
_AS_IF_NOT_SAID = (None, False, "", "bash")

_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")
_OF_PLUGINS = "(.*:)?"  # a plugin's agent is named `plugin:agent`; its bare name means it, too

AGENTS = "agents"  # the folder of sub-agents, beside the settings
# No skill, which would be named `review` and hide the client's own; it has the plugin's name.
_COMMAND = "commands/gitgates/review.md"
_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
# A file of that name would take the place of the client's own agent.
_CLIENTS_OWN = ("general-purpose", "explore", "plan", "statusline-setup", "claude")
_HEAD = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^name:[ \t]*([\"']?)(.+?)\1[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE)

_STOP = {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": []}
_WRITE = {"tool_name": "Write", "tool_use_id": "toolu_doctor"}
# What can be blocked, and what the client says of it beside the usual.
_SAMPLES: dict[str, dict[str, Any]] = {
    "Stop": _STOP,
    "SubagentStop": {**_STOP, "agent_id": "doctor", "agent_type": "doctor"},
    "PostToolUse": {**_WRITE, "tool_response": {"type": "create"}},
    "PreToolUse": _WRITE,
    "UserPromptSubmit": {"prompt": "go"},
    "UserPromptExpansion": {"prompt": "/go", "command_name": "go", "command_args": ""},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
}
PROVABLE = tuple(_SAMPLES)
_EXIT_BLOCK = 2


# Our hooks in a text


def add(text: str | None, wanted: tuple[Entry, ...], command: str, file: str) -> str | None:
    """Return the text with our hooks appended. None: no file.

    Raises: ConfigError if the text is no JSON, or has another shape than settings have.
    """
    if text is None:
        table = {entry.event: [group_of(entry, command)] for entry in wanted}
        return json.dumps({"hooks": table}, indent=2, ensure_ascii=False) + "\n"
    for entry in wanted:
        _parse(text, file)
        text = json_text.insert(text, ("hooks", entry.event), [group_of(entry, command)], file)
    return text


def remove(text: str, file: str) -> str | None:
    """Return the text without our hooks; None if the file was made for them.

    Raises: ConfigError as `add`.
    """
    while True:
        after = _without_one(text, _parse(text, file))
        if after is None or after == text:
            return after
        text = after


def group_of(entry: Entry, command: str) -> dict[str, Any]:
    """Return the entry for the list of an event."""
    hook: dict[str, Any] = {"type": "command", "command": command, "timeout": entry.timeout_s}
    if EVENTS[entry.event][0] in GATES_OWN_TIME:
        hook["statusMessage"] = _WAITING
    matcher = {} if entry.matcher is None else {"matcher": entry.matcher}
    return {**matcher, "hooks": [hook]}


def _without_one(text: str, root: Node | None) -> str | None:
    """Remove one hook of ours, and containers that it leaves empty."""
    hooks = root.get("hooks") if root else None
    if root is None or hooks is None:
        return text
    for at, event in enumerate(hooks.parts):
        for nth, group in enumerate(event.parts):
            listed = group.get("hooks")
            for index, handler in enumerate(listed.items if listed else ()):
                if listed and _is_removable(handler.value):
                    # Somebody may have written more into the group than we do.
                    is_plain = {member.key for member in group.members} <= {"matcher", "hooks"}
                    if len(listed.parts) > 1 or not is_plain:
                        return json_text.remove(text, listed, index)
                    path = [(root, root.parts.index(hooks)), (hooks, at), (event, nth)]
                    return json_text.prune(text, path)
    return text


def _is_removable(hook: Any) -> bool:  # noqa: ANN401 - any JSON
    is_plain = isinstance(hook, dict) and hook.get("args") is None
    return is_plain and hook.get("type") == "command" and is_our_command(hook.get("command"), NAME)


def _parse(text: str, file: str) -> Node | None:
    """Return the settings; None if the file is empty.

    Raises: ConfigError if they are no JSON, or their `hooks` is nothing that holds hooks.
    """
    if not text.strip(json_text.SPACE):
        return None
    root = json_text.parse(text, file)
    json_text.require(root, dict, "the file", file)
    if (hooks := root.get("hooks")) is not None:
        json_text.require(hooks, dict, "`hooks`", file)
        for event in hooks.parts:
            key = event.key.encode("utf-8", "replace").decode()
            json_text.require(event, list, f"`hooks.{key}`", file)
    return root


# What settings say


def read(text: str, file: str, scope: str = "") -> HookSettings:
    """Parse a settings file.

    Raises: ConfigError as `add`.
    """
    root = _parse(text, file)
    table = root.value if root else {}
    troubles = {}
    if scope == "managed" and table.get(_MANAGED_ONLY) is True:
        what = f"`{_MANAGED_ONLY}` is true: Claude Code runs no hooks but those of this file"
        troubles[what] = "ask whoever manages this machine"
    return HookSettings(
        hooks=tuple(_hook(*one) for one in _handlers(table.get("hooks", {}))),
        off=bool(table[OFF]) if OFF in table else None,
        troubles=troubles,
        env={key: str(value) for key, value in _table(table, "env").items()},
        plugins={name: bool(value) for name, value in _table(table, "enabledPlugins").items()},
    )


def plugin() -> HookSettings:
    """Return what our plugin says; its command hides that we are missing: the one inside of it."""
    found = read(_packaged("hooks/hooks.json"), "hooks.json")
    return found._replace(hooks=tuple(hook._replace(command=BARE) for hook in found.hooks))


def _handlers(hooks: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each hook of settings: its event, its group, and itself."""
    for event, groups in hooks.items():
        for group in groups:
            found = group.get("hooks") if isinstance(group, dict) else None
            for one in found if isinstance(found, list) else ():
                if isinstance(one, dict):
                    yield event, group, one


def _hook(event: str, group: dict[str, Any], handler: dict[str, Any]) -> InstalledHook:
    matcher, timeout, command = (
        group.get("matcher"),
        handler.get("timeout"),
        handler.get("command"),
    )
    args = handler.get("args")
    words = [command, *(args if isinstance(args, list) else ())]
    is_plain = handler.get("type") == "command" and "args" not in handler
    return InstalledHook(
        event=event,
        command=" ".join(word for word in words if isinstance(word, str)),
        timeout_s=float(timeout)
        if isinstance(timeout, int | float)
        else _USUAL_OF.get(event, _USUAL_S),
        matcher=matcher if isinstance(matcher, str) else None,
        is_ours=is_plain and (command == PLUGIN or is_our_command(command, NAME)),
        loose=_why_not_awaited(group, handler),
    )


def _why_not_awaited(group: dict[str, Any], handler: dict[str, Any]) -> str:
    """Return what keeps the client from running a hook, or from waiting for it."""
    for key, value in {**handler, "matcher": group.get("matcher", "")}.items():
        types = _TYPES.get(key)
        if type(value) not in types if types else value not in _AS_IF_NOT_SAID:
            shown = json.dumps(value)
            return f"its `{key}` is {shown}: Claude Code may leave it out, or not wait for it"
    return ""


def _table(table: dict[str, Any], key: str) -> dict[str, Any]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


# Matchers


def matcher(
    kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
) -> str | None:
    """Return the matcher of an event; None for all, or if it has no matcher."""
    if kind in TOOL_EVENTS:
        return tool_matcher(tools)
    return agent_matcher(agents) if kind in ("subagent-start", "subagent-end") else None


def tool_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these tools through (names, `A|B`, globs, `!A`); None: all."""
    parts = split(patterns or ())
    if patterns is None or "*" in parts:
        return None
    if any(part.startswith("!") for part in parts):
        but = left_out(parts)
        return f"^(?!(?:{'|'.join(map(expression, but))})$)" if but else None
    if all(_PLAIN.fullmatch(part) for part in parts):
        return "|".join(parts)
    return f"^({'|'.join(map(expression, parts))})$"


def agent_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these agents through, those of plugins as well; None: all."""
    parts = split(patterns or ())
    if patterns is None or "*" in parts:
        return None
    return f"^{_OF_PLUGINS}({'|'.join(map(expression, parts))})$"


# The reviewer, and the command that starts it: files of ours beside the settings


def review_files(reviewer: str, model: str) -> dict[str, str]:
    """Return the files for reviews: path → text. They are our plugin's."""
    shown = model if _AGENT_NAME.fullmatch(model) else json.dumps(model)
    agent = _packaged("agents/reviewer.md").replace("\nmodel: opus\n", f"\nmodel: {shown}\n")
    agent = agent.replace("\nname: reviewer\n", f"\nname: {reviewer}\n")
    command = _packaged("skills/review/SKILL.md").replace("`gitgates:reviewer`", f"`{reviewer}`")
    own = {f"{AGENTS}/{reviewer}.md": agent} if may_define(reviewer) else {}
    return {**own, _COMMAND: command}


def may_define(reviewer: str) -> bool:
    """Return whether a file of ours can be that agent: not if it is a plugin's, or a pattern."""
    return bool(_AGENT_NAME.fullmatch(reviewer)) and reviewer.lower() not in _CLIENTS_OWN


def agent_name(text: str) -> str:
    """Return the name of the sub-agent that a file defines; empty if none."""
    head = _HEAD.search(text)
    named = _NAMED.search(head[1]) if head else None
    return named[2].strip() if named else ""


def _packaged(name: str) -> str:
    """Return the text of a file of our plugin. A checkout may write other line ends than we did."""
    return files("gitgates").joinpath("plugin", "claude", name).read_text("utf-8")


# To try what is installed


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
        **_SAMPLES.get(event, {}),
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
