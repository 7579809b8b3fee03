"""Our hooks in the text of Claude Code's settings: put in, brought up to date, taken out. Pure.

A hook is ours by its whole command: `gitgates agent-hook claude`, with the bare name or with an
absolute path. One that merely mentions us is somebody else's.
"""

from __future__ import annotations

import json
import os
import shlex
from functools import partial

from gitgates.engine.hooks import GATES_OWN_TIME, host_limit_s
from gitgates.errors import ConfigError
from gitgates.hosts.claude import EVENTS
from gitgates.hosts.claude.matcher import agent_matcher, is_heard, tool_matcher, tool_patterns
from gitgates.install import json_text
from gitgates.install.json_text import append, is_made_by_us, remove
from gitgates.lifecycle import HOOK_OF
from gitgates.policies.needs import needs
from gitgates.record import Record
from gitgates.types import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.install.json_text import Node
    from gitgates.policies.needs import Need
    from gitgates.types import Config

ARGUMENTS = ("agent-hook", "claude")
BARE = f"gitgates {' '.join(ARGUMENTS)}"
# In our plugin, which may be there where we are not: then nothing is to be seen of it.
PLUGIN = f"if command -v gitgates >/dev/null 2>&1; then exec {BARE}; fi"
_SPACE = f"\ufeff{json_text.SPACE}"
_WAITING = "gitgates: running the gates"
TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
AGENT_EVENTS = ("SubagentStart", "SubagentStop")


class Entry(Record):
    """One event as it stands in the settings."""

    event: str
    timeout_s: int
    matcher: str | None = None  # None: all
    on_failure: str = ""  # block: the client blocks where the hook cannot answer

    def group(self, command: str) -> dict[str, Any]:
        """Return what stands in the list of the event."""
        hook: dict[str, Any] = {"type": "command", "command": command, "timeout": self.timeout_s}
        if EVENTS[self.event][0] in GATES_OWN_TIME:
            hook["statusMessage"] = _WAITING
        if self.on_failure:
            hook["onFailure"] = self.on_failure
        matcher = {} if self.matcher is None else {"matcher": self.matcher}
        return {**matcher, "hooks": [hook]}


def entries(config: Config) -> tuple[Entry, ...]:
    """Return what a configuration, and its policies, need to hear of."""
    hooks = {hook.name: hook for hook in config.hooks}
    return tuple(
        Entry(
            event=event,
            timeout_s=_up(host_limit_s(config, hooks.get(event, Hook(name=event))) + need.more_s),
            matcher=_matcher(need),
        )
        for need in needs(config)
        if is_heard(tools_of(need)) and is_heard(need.agents)
        for event in (HOOK_OF[need.kind],)
    )


def tools_of(need: Need) -> tuple[str, ...] | None:
    """Return patterns of the tools that are to be heard of; None: all."""
    return tool_patterns(need.tools, need.tool_kinds, but_reads=need.but_reads)


def is_ours(command: object) -> bool:
    """Tell whether the command of a hook is ours."""
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


def show(wanted: tuple[Entry, ...], command: str) -> str:
    """Return the settings that hold our hooks and nothing else."""
    return json.dumps({"hooks": _table(wanted, command)}, indent=2, ensure_ascii=False) + "\n"


def put(text: str | None, wanted: tuple[Entry, ...], command: str, file: str) -> str | None:
    """Return the text with exactly these hooks of ours. None: no file.

    Raises: ConfigError where the text is no JSON, or has another shape than settings have.
    """
    if _is_current(text, wanted, command, file):
        return text
    before = None if text is None else without(text, file)
    after = before
    for entry in wanted:
        after = _put_one(after, entry, command, file)
    if after is not None and without(after, file) != before:
        raise ConfigError(
            f"{file}: our hooks could not be added so that they can be taken out again",
            f"Add them by hand; nothing was changed:\n{show(wanted, command)}",
        )
    return after


def without(text: str, file: str) -> str | None:
    """Return the text without our hooks; None where the file was made for them.

    Raises: ConfigError as `put`.
    """
    while True:
        after = _without_one(text, file)
        if after is None or after == text:
            return after
        text = after


def ours_in(root: Node | None) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return each hook of ours in settings: its event, its group and itself, as plain values."""
    return [
        (event.key, group.value, handler.value)
        for event in (_events(root) if root else ())
        for group in event.items
        for handler in (group.get("hooks") or group).items
        if _is_our_handler(handler)
    ]


def parse_settings(text: str, file: str) -> Node | None:
    """Return the settings; None where the file is empty.

    Raises: ConfigError where they are no JSON, or their `hooks` is nothing that holds hooks.
    """
    if not text.strip(_SPACE):
        return None
    root = json_text.parse(text, file)
    require = partial(_require, text=text, file=file)
    require(root, "object", "the file")
    if (hooks := root.get("hooks")) is not None:
        require(hooks, "object", "`hooks`")
        for event in hooks.members:
            key = event.key.encode("utf-8", "replace").decode()
            require(event, "array", f"`hooks.{key}`")
    return root


def _put_one(text: str | None, entry: Entry, command: str, file: str) -> str:
    group = entry.group(command)
    if text is None:
        return show((entry,), command)
    root = parse_settings(text, file)
    if root is None:
        return json_text.append_to_nothing(text, {"hooks": {entry.event: [group]}})
    hooks = root.get("hooks")
    if hooks is None:
        return append(text, root, root, {entry.event: [group]}, key="hooks")
    event = hooks.get(entry.event)
    if event is None:
        return append(text, root, hooks, [group], key=entry.event)
    return append(text, root, event, group)


def _without_one(text: str, file: str) -> str | None:
    """Take out one hook of ours, and what holds nothing else and is ours, too."""
    root = parse_settings(text, file)
    hooks = root.get("hooks") if root else None
    if root is None or hooks is None:
        return text
    for at, event in enumerate(hooks.members):
        for nth, group in enumerate(event.items):
            handlers = group.get("hooks")
            for index, handler in enumerate(handlers.items if handlers else ()):
                if handlers and _is_our_handler(handler):
                    alone = len(handlers.items) == 1 and _is_plain_group(group)
                    if not alone:
                        return remove(text, handlers, index)
                    if len(event.items) > 1 or not is_made_by_us(text, event):
                        return remove(text, event, nth)
                    return _without_event(text, root, hooks, at)
    return text


def _without_event(text: str, root: Node, hooks: Node, at: int) -> str | None:
    if len(hooks.members) > 1 or not is_made_by_us(text, hooks):
        return remove(text, hooks, at)
    if len(root.members) > 1 or not is_made_by_us(text, root):
        return remove(text, root, [member.key for member in root.members].index("hooks"))
    head, tail = text[: root.start], text[root.end :]
    if not head:
        return None
    newline = next((sign for sign in ("\r\n", "\r", "\n") if head.endswith(sign)), "")
    return head.removesuffix(newline) + tail


def _is_current(text: str | None, wanted: tuple[Entry, ...], command: str, file: str) -> bool:
    root = parse_settings(text, file) if text else None
    found = sorted((event, json.dumps(group)) for event, group, _handler in ours_in(root))
    needed = sorted((one.event, json.dumps(one.group(command))) for one in wanted)
    return text is not None and found == needed


def _is_our_handler(handler: Node) -> bool:
    kind, command = handler.get("type"), handler.get("command")
    named = kind is not None and kind.value == "command" and handler.get("args") is None
    return named and command is not None and is_ours(command.value)


def _is_plain_group(group: Node) -> bool:
    """Tell whether nobody has written more into a group than we do."""
    return {member.key for member in group.members} <= {"matcher", "hooks"}


def _events(root: Node) -> tuple[Node, ...]:
    hooks = root.get("hooks")
    return hooks.members if hooks else ()


def _table(wanted: tuple[Entry, ...], command: str) -> dict[str, Any]:
    return {entry.event: [entry.group(command)] for entry in wanted}


def _matcher(need: Need) -> str | None:
    if HOOK_OF[need.kind] in TOOL_EVENTS:
        return tool_matcher(tools_of(need))
    return agent_matcher(need.agents) if HOOK_OF[need.kind] in AGENT_EVENTS else None


def _require(node: Node, kind: str, what: str, *, text: str, file: str) -> None:
    if node.kind != kind:
        got = node.kind or text[node.start : node.end]
        raise ConfigError(
            f"{file}:{json_text.place(text, node.start)}: {what} is {_a(got)}, expected {_a(kind)}",
            "Mend it first; nothing was changed.",
        )


def _a(kind: str) -> str:
    if kind in ("null", "true", "false"):
        return kind
    return f"an {kind}" if kind[0] in "ao" else f"a {kind}"


def _up(seconds: float) -> int:
    return -int(-seconds // 1)
