"""A coding agent's settings as JSON: add hooks to their text, and remove them. Pure.

Events contain groups, and groups contain hooks, as in Claude Code: `{"hooks": {EVENT: [{"matcher":
…, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`. A host declares differences.

A matcher with only names and `|` must equal a tool's whole name; with any other character, it is a
regular expression that is searched for, so ours are anchored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from gitgates import __version__
from gitgates.core.lifecycle import HOOK_OF, HOOK_POINTS, TOOL_EVENTS
from gitgates.core.types import WARN, Verdict
from gitgates.edit import json_text
from gitgates.hosts.settings.base import (
    Entry,
    HookSettings,
    InstalledHook,
    committed,
    expression,
    guarded,
    is_our_command,
    left_out,
    of_any_version,
    saying,
    split,
    unguarded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.core.lifecycle import EventKind
    from gitgates.edit.json_text import Node
    from gitgates.hosts.agent import AgentHost

_MISSING = (
    "gitgates is not installed here: none of the gates of this repository run. {}"
    f"uv tool install . (or: pipx install .) in a clone of gitgates {__version__}"
)
_TO_AGENT = _MISSING.format("Tell the person that nothing is checked, and ask whether to run: ")
_TO_PERSON = _MISSING.format("To install it: ")
_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")
_OF_PLUGINS = "(.*:)?"  # a plugin's agent is named `plugin:agent`, or by its bare name


class AgentSettings:
    """A coding agent's settings: add, remove and read hooks.

    A module for another format has a subclass, `Settings`.
    """

    MANAGED = ""  # the machine's settings; empty: there are none
    # The scopes in order of precedence, the highest last.
    LOUDER: tuple[str, ...] = ("user", "project", "local", "managed")
    AGENTS = ""  # the folder of sub-agents, next to the settings; empty: there are none
    AGENT_PATH = re.compile(r"(?!)")  # of a repository's files that define a sub-agent
    TAKE_PLUGIN_OUT = ""  # how a person removes the plugin
    PERMITS = "{}"  # the permission for all commands that begin with {}
    # How to start it so that commands may write into a folder in .git; empty: they always may.
    SANDBOX = ""
    TRUST = ""  # what a person must do before the client runs our hooks; empty: nothing
    FREE: tuple[str, ...] = ("user",)  # the scopes whose hooks need no trust
    OF_MAIN = False  # whether a linked worktree uses the main worktree's hooks, not its own

    def __init__(self, host: AgentHost) -> None:
        self.host = host

    @property
    def SETTINGS_PATH(self) -> re.Pattern[str]:  # noqa: N802 - a constant of each host
        """The files in a repository that may contain hooks."""
        files = [file for scope, file in self.host.FILES.settings.items() if scope != "user"]
        files += [self.host.FILES.older_settings] if self.host.FILES.older_settings else []
        within = [f"{re.escape(self.host.FILES.folder)}/{re.escape(file)}" for file in files]
        return re.compile(rf"(?:^|/)(?:{'|'.join(within)})$" if within else r"(?!)")

    # Our hooks in a text

    def add(
        self, text: str | None, entries: tuple[Entry, ...], command: str, file: str
    ) -> str | None:
        """Return the text with the hooks appended. `text`: None if there is no file.

        Raises: ConfigError if the text cannot be parsed, or does not have the form of settings.
        """
        groups = {self.own_event(entry.event): self.group_of(entry, command) for entry in entries}
        if text is None:
            table: dict[str, Any] = {event: [group] for event, group in groups.items()}
            for key in reversed(self.host.SETTINGS.events_at):
                table = {key: table}
            table = {**self.host.SETTINGS.head, **table}
            return json.dumps(table, indent=2, ensure_ascii=False) + "\n"
        for event, group in groups.items():
            self._parse(text, file)
            text = json_text.insert(text, (*self.host.SETTINGS.events_at, event), [group], file)
        return text

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without the hooks; None if the file was created for them.

        Raises: ConfigError as `add`.
        """
        while True:
            after = self._without_one(text, self._parse(text, file))
            if after is None or after == text:
                return after
            text = after

    def hidden(
        self, older: str, text: str | None, entries: tuple[Entry, ...], file: str
    ) -> list[str]:
        """Return the events whose hooks in older settings no longer run once these are installed.

        Raises: ConfigError as `add`. `older`: the text of `file`.
        """
        root = json_text.parse(older, file) if older.strip(json_text.SPACE) else None
        hooks = root.get("hooks") if root else None
        installed = {hook.event for hook in self.read(text or "", file).hooks}
        added = {self.own_event(entry.event) for entry in entries if entry.event not in installed}
        return [
            event.key
            for event in (hooks.parts if hooks else ())
            if event.parts and event.key in added
        ]

    def is_same(self, text: str | None, after: str | None, file: str) -> bool:
        """Return whether a text has the same gitgates hooks as the changed one.

        Raises: ConfigError as `add`.
        """
        installed, needed = (
            Counter(
                hook._replace(command=of_any_version(hook.command))
                for hook in self.read(settings or "", file).our_hooks
            )
            for settings in (text, after)
        )
        return installed == needed

    def group_of(self, entry: Entry, command: str) -> dict[str, Any]:
        """Return the item for an event's list."""
        kind = HOOK_POINTS[entry.event].kind
        is_committed = command == committed(unguarded(command))
        otherwise = self._said_instead(kind) if is_committed else ""
        if self.host.SETTINGS.guarded:
            command = guarded(unguarded(command), always=True, otherwise=otherwise)
        elif is_committed:
            command = committed(unguarded(command), otherwise)
        hook = {
            "type": "command",
            "command": command,
            "timeout": entry.timeout_s * self.host.SETTINGS.times.per_second,
        }
        matcher = {} if entry.matcher is None else {"matcher": entry.matcher}
        hook = {**hook, **self.host.SETTINGS.handler, **self.more_of(kind)}
        return {**hook, **matcher} if self.host.SETTINGS.flat else {**matcher, "hooks": [hook]}

    def _said_instead(self, kind: EventKind) -> str:
        """Return the command for a missing gitgates: it says that nothing is checked; or "".

        It answers in the client's form, to the agent at a session's start, and to the person there
        and at each turn's end.
        """
        beginning = "session-start" if self.host.has("session-start") else "prompt"
        if kind not in (beginning, "turn-end"):
            return ""
        payload = self.host.payload_of({"hook_event_name": self.host.own_event(kind)}, {})
        to_agent = _TO_AGENT if kind == beginning else ""
        answer = self.host.encode(payload, Verdict(WARN, to_agent, _TO_PERSON)).decode()
        return saying(answer) if answer else ""

    def more_of(self, _kind: EventKind) -> dict[str, Any]:
        """Return more keys of an event's hook."""
        return {}

    def own_event(self, event: str) -> str:
        """Return the client's name for an event in the configuration."""
        return self.host.own_event(HOOK_POINTS[event].kind)

    def _without_one(self, text: str, root: Node | None) -> str | None:
        """Remove one of our hooks, and containers that become empty."""
        path: list[tuple[Node, int]] = []
        for key in self.host.SETTINGS.events_at:
            below = root.get(key) if root else None
            if root is None or below is None:
                return text
            path.append((root, root.parts.index(below)))
            root = below
        for at, event in enumerate(root.parts if root else ()):
            for nth, group in enumerate(event.parts if isinstance(event.value, list) else ()):
                if root and self.host.SETTINGS.flat and self._is_removable(group.value):
                    return self._pruned(text, [*path, (root, at), (event, nth)])
                hooks = group.get("hooks")
                for index, handler in enumerate(hooks.items if hooks else ()):
                    if root and hooks and self._is_removable(handler.value):
                        # Somebody may have added keys to the group.
                        is_plain = {member.key for member in group.members} <= {"matcher", "hooks"}
                        if len(hooks.parts) > 1 or not is_plain:
                            return json_text.remove(text, hooks, index)
                        return self._pruned(text, [*path, (root, at), (event, nth)])
        return text

    def _pruned(self, text: str, path: list[tuple[Node, int]]) -> str | None:
        after = json_text.prune(text, path)
        head = json.dumps(self.host.SETTINGS.head, indent=2, ensure_ascii=False)
        return None if self.host.SETTINGS.head and after == f"{head}\n" else after

    def _is_removable(self, hook: Any) -> bool:  # noqa: ANN401 - any JSON
        is_plain = isinstance(hook, dict) and hook.get("args") is None
        is_command = is_plain and hook.get("type") == "command"
        return is_command and is_our_command(hook.get("command"), self.host.NAME)

    def _parse(self, text: str, file: str) -> Node | None:
        """Return the settings; None if the file is empty.

        Raises: ConfigError if they are not valid JSON, or a key for hooks has another type.
        """
        if not text.strip(json_text.SPACE):
            return None
        root = json_text.parse(text, file)
        json_text.require(root, dict, "the file", file)
        table, name = root, ""
        for key in self.host.SETTINGS.events_at:
            below, name = table.get(key), f"{name}.{key}" if name else key
            if below is None:
                return root
            json_text.require(below, dict, f"`{name}`", file)
            table = below
        for event in table.parts:
            key = (event.key or "").encode("utf-8", "replace").decode()
            if name or event.key in self.host.PROTOCOL.events:  # other settings may be at the top
                json_text.require(event, list, f"`{name}.{key}`" if name else f"`{key}`", file)
        return root

    # Reading

    def read(self, text: str, file: str, _scope: str = "") -> HookSettings:
        """Parse a settings file.

        Raises: ConfigError as `add`.
        """
        root = self._parse(text, file)
        return self.settings_of(root.value if root else {})

    def settings_of(self, table: dict[str, Any]) -> HookSettings:
        """Return the hooks in a settings file's table."""
        events = table
        for key in self.host.SETTINGS.events_at:
            events = events.get(key, {})
        handlers = _handlers(events, flat=self.host.SETTINGS.flat)
        hooks = tuple(self.hook_of(event, group, handler) for event, group, handler in handlers)
        return HookSettings(hooks=hooks, off=self._is_off(table))

    def is_off(self, text: str, file: str) -> bool | None:
        """Return whether a file of `switch_files` disables all hooks; None: unspecified.

        Raises: ConfigError if it cannot be read.
        """
        root = json_text.parse(text, file) if text.strip(json_text.SPACE) else None
        return self._is_off(root.value if root else {})

    def _is_off(self, table: Any) -> bool | None:  # noqa: ANN401 - any JSON
        for name in filter(None, (self.host.OFF.key, *self.host.OFF.former)):
            value = table
            for key in name.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                return bool(value) is (self.host.OFF.value == "true")
        return None

    def hook_of(self, event: str, group: dict[str, Any], handler: dict[str, Any]) -> InstalledHook:
        """Return a hook."""
        matcher, timeout, command = map((group | handler).get, ("matcher", "timeout", "command"))
        args = handler.get("args")
        words = [command, *(args if isinstance(args, list) else ())]
        kind = self.host.PROTOCOL.events[event][0] if event in self.host.PROTOCOL.events else ""
        return InstalledHook(
            event=HOOK_OF.get(kind, event),
            command=" ".join(word for word in words if isinstance(word, str)),
            timeout_s=timeout / self.host.SETTINGS.times.per_second
            if isinstance(timeout, int | float)
            else self.host.SETTINGS.times.usual_s,
            matcher=matcher if isinstance(matcher, str) else None,
            is_ours=self._is_removable(handler),
        )

    # Trust

    def needs_trust(self, scope: str) -> bool:
        """Return whether a person must trust a scope's hooks before the client runs them."""
        return bool(self.TRUST) and scope not in self.FREE

    def trust_file(self, _env: Mapping[str, str]) -> str:
        """Return the client's file with trusted hooks or folders; empty if it is unknown."""
        return ""

    def is_trusted(self, _trusted: str, _settings_abs: str, _text: str) -> bool | None:
        """Return whether that file's text makes the client run our hooks; None: unknown."""
        return None

    def plugin(self) -> HookSettings:
        """Return our plugin's hooks."""
        return HookSettings()

    # Matchers

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return an event's matcher; None for all, or if it has no matcher."""
        if kind in TOOL_EVENTS:
            matcher = tool_matcher(self._own_names(tools))
            return (
                f"{matcher}.*"
                if matcher and matcher.startswith("^(?!") and self.host.SETTINGS.whole
                else matcher
            )
        return agent_matcher(agents) if kind in ("subagent-start", "subagent-end") else None

    def _own_names(self, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return patterns, with the client's own names for the tools that they select."""
        if patterns is None:
            return None
        names = []
        for part in split(patterns):
            name = part.removeprefix("!")
            tools = [tool for tool in self.host.tools if name in self.host.other_names_of(tool)]
            names += [part, *(part.replace(name, tool) for tool in tools)]
        return tuple(dict.fromkeys(names))

    # Sub-agents, and the command that starts one: our files next to the settings

    def agent_definitions(self, _name: str, _model: str) -> dict[str, str]:
        """Return the files for reviews: path relative to the settings → text."""
        return {}

    def may_define(self, _name: str) -> bool:
        """Return whether a gitgates file can define that sub-agent."""
        return False

    def agent_name(self, _text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if there is none."""
        return ""

    # Trying what is installed

    def sample(self, event: str, root_abs: str, session: str, file: str = "") -> bytes:
        """Return a sample payload of an event in a session in a folder, with a file in it."""
        kind, path_abs = HOOK_POINTS[event].kind, f"{root_abs}/{file}"
        return json.dumps(self.host.sample(kind, root_abs, session, path_abs)).encode()


Settings = AgentSettings


def _handlers(
    hooks: dict[str, Any], *, flat: bool
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each hook in settings: its event, its group, and the hook."""
    for event, groups in hooks.items():
        for group in groups if isinstance(groups, list) else ():
            handlers = [group] if flat else group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                if isinstance(handler, dict):
                    yield event, group, handler


def tool_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher for tools (names, `A|B`, globs, `!A`); None: all."""
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
    """Return the matcher for agents, including those in plugins; None: all."""
    parts = split(patterns or ())
    if patterns is None or "*" in parts:
        return None
    return f"^{_OF_PLUGINS}({'|'.join(map(expression, parts))})$"
