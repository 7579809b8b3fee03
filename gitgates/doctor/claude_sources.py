"""Everything that may start us from Claude Code: the settings files, and our plugin."""

from __future__ import annotations

import json
import os
from difflib import get_close_matches

import gitgates
from gitgates.errors import GitgatesError
from gitgates.install import agents, own_file
from gitgates.install.claude import ARGUMENTS, BARE, PLUGIN, is_ours, parse_settings
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.git.repo import Repo

MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)
# Which settings count more, where one thing is set in several.
_LOUDER = ("user", "project", "local", "managed")
# What the client waits, where the settings say nothing.
_USUAL_S = 600.0
_USUAL_OF = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
# Where the client finds another kind, it leaves the hook out.
_KINDS: dict[str, type] = {"timeout": float, "statusMessage": str, "async": bool}
_WORDS = {float: "number", str: "text", bool: "boolean"}


class Heard(Record):
    """One hook that starts us."""

    event: str
    matcher: str | None
    timeout_s: float
    command: str
    loose: str = ""  # what it says that keeps it from blocking, and how


class Source(Record):
    """One settings file, or the plugin."""

    scope: str  # project, local, user, managed, plugin
    where: str
    broken: str = ""  # why it cannot be read
    heard: tuple[Heard, ...] = ()
    custom: tuple[tuple[str, str], ...] = ()  # event and command of others that speak of us
    settings: Mapping[str, Any] = {}

    @property
    def install(self) -> str:
        """Return the command that writes our hooks here."""
        scope = "" if self.scope in ("project", "plugin") else f" --scope {self.scope}"
        return f"gitgates install-hooks --agent claude{scope}"

    @property
    def uninstall(self) -> str:
        """Return what takes our hooks out of here."""
        if self.scope == "plugin":
            return "in Claude Code: /plugin uninstall gitgates"
        return self.install.replace("install-hooks", "uninstall-hooks")


def sources(repo: Repo, env: Mapping[str, str]) -> list[Source]:
    """Return the settings that there are, nearest first, and the plugin where it is enabled."""
    found: list[Source] = []
    seen: set[str] = set()
    for scope, path_abs in _files(repo, env):
        if os.path.realpath(path_abs) not in seen and os.path.lexists(path_abs):
            seen.add(os.path.realpath(path_abs))
            found.append(read_source(scope, path_abs, repo.root_abs))
    return found + _plugin(found)


def environment(found: list[Source], env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of hooks: the client adds what the settings set."""
    theirs = dict(env)
    for source in _by_weight(found):
        table = source.settings.get("env")
        theirs |= {k: str(v) for k, v in table.items()} if isinstance(table, dict) else {}
    return theirs


def loudest(found: list[Source], key: str) -> Source | None:
    """Return the settings whose word on a key counts; None where none has one."""
    return next((one for one in reversed(_by_weight(found)) if key in one.settings), None)


def read_source(scope: str, path_abs: str, root_abs: str) -> Source:
    """Read one settings file."""
    path = os.path.relpath(path_abs, root_abs)
    source = Source(scope, path_abs if path.startswith("..") else path)
    try:
        root = parse_settings(own_file.read(path_abs) or "", source.where)
    except GitgatesError as error:
        return source._replace(broken=error.message.removeprefix(f"{source.where}:"))
    settings = root.value if root else {}
    hooks = list(_handlers(settings.get("hooks", {})))
    return source._replace(
        heard=tuple(_heard(event, group, one) for event, group, one in hooks if _calls_us(one)),
        custom=tuple(
            (event, command)
            for event, _group, one in hooks
            if not _calls_us(one) and _speaks_of_us(command := _command_line(one))
        ),
        settings=settings,
    )


def _files(repo: Repo, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for scope in agents.SCOPES:
        try:
            yield scope, agents.settings_file(scope, repo.root_abs, env)
        except GitgatesError:
            continue  # without a home, nobody has settings there
    yield from (("managed", path_abs) for path_abs in MANAGED)


def _by_weight(found: list[Source]) -> list[Source]:
    """Return the settings, those that count most last; a plugin has none."""
    files = [source for source in found if source.scope in _LOUDER]
    return sorted(files, key=lambda source: _LOUDER.index(source.scope))


def enabled_plugins(found: list[Source]) -> dict[str, str]:
    """Return the plugins that the settings which count most enable: name → with its marketplace."""
    enabled: dict[str, bool] = {}
    for source in _by_weight(found):
        table = source.settings.get("enabledPlugins")
        if isinstance(table, dict):
            enabled |= {name: bool(value) for name, value in table.items()}
    return {name.split("@")[0]: name for name, on in enabled.items() if on}


def _plugin(found: list[Source]) -> list[Source]:
    """Return our plugin, if it is enabled."""
    name = enabled_plugins(found).get("gitgates")
    if name is None:
        return []
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    with open(os.path.join(package_abs, "plugin/claude/hooks/hooks.json"), "rb") as file:
        hooks = json.loads(file.read())["hooks"]
    # Its command hides that we are missing; the check is about the one inside of it.
    heard = [
        _heard(event, group, {**one, "command": BARE}) for event, group, one in _handlers(hooks)
    ]
    return [Source("plugin", f"plugin {name}", heard=tuple(heard))]


def _handlers(hooks: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for event, groups in hooks.items():
        for group in groups:
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for one in handlers if isinstance(handlers, list) else ():
                if isinstance(one, dict):
                    yield event, group, one


def _command_line(handler: dict[str, Any]) -> str:
    """Return the command of a hook with its arguments, which may be a list of their own."""
    args = handler.get("args")
    words = [handler.get("command"), *(args if isinstance(args, list) else ())]
    return " ".join(word for word in words if isinstance(word, str))


def _speaks_of_us(command: str) -> bool:
    """Tell whether a command names us, rightly or misspelt."""
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


def _heard(event: str, group: dict[str, Any], handler: dict[str, Any]) -> Heard:
    matcher, timeout = group.get("matcher"), handler.get("timeout")
    known = float(timeout) if isinstance(timeout, int | float) else None
    return Heard(
        event=event,
        matcher=matcher if isinstance(matcher, str) else None,
        timeout_s=_USUAL_OF.get(event, _USUAL_S) if known is None else known,
        command=str(handler["command"]),
        loose=_loose(group, handler),
    )


def _loose(group: dict[str, Any], handler: dict[str, Any]) -> str:
    """Return why the client would not wait for a hook, or not run it. Tried with 2.1.329."""
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
