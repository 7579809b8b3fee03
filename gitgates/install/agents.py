"""Our hooks in the settings of a coding agent: where they are, what starts us from there, the text.

The editing is pure: hooks are put into a text, brought up to date, and taken out again.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from functools import partial

from gitgates.engine.hooks import host_limit_s
from gitgates.errors import ConfigError
from gitgates.hosts.claude.settings import (
    ARGUMENTS,
    BARE,
    PLUGIN,
    Entry,
    event_matcher,
    handlers,
    is_ours,
    matches_any,
    tool_patterns,
)
from gitgates.install import json_text
from gitgates.install.json_text import append
from gitgates.lifecycle import HOOK_OF
from gitgates.policies.needs import needs
from gitgates.proc.call import which
from gitgates.types import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.install.json_text import Node
    from gitgates.policy import Need
    from gitgates.types import Config

_SPACE = f"\ufeff{json_text.SPACE}"


def entries(config: Config) -> tuple[Entry, ...]:
    """Return what a configuration, and its policies, need to hear of."""
    hooks = {hook.name: hook for hook in config.hooks}
    return tuple(
        Entry(
            event=event,
            timeout_s=_up(host_limit_s(config, hooks.get(event, Hook(name=event))) + need.more_s),
            matcher=event_matcher(event, tools_of(need), need.agents),
        )
        for need in needs(config)
        if matches_any(tools_of(need)) and matches_any(need.agents)
        for event in (HOOK_OF[need.kind],)
    )


def tools_of(need: Need) -> tuple[str, ...] | None:
    """Return patterns of the tools that are to be heard of; None: all."""
    return tool_patterns(need.tools, need.tool_kinds, but_reads=need.but_reads)


def start(scope: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the command of our hooks in a scope, and what is missing for it to work.

    It is the bare one where a client finds it, and never a relative.

    A client that was started without a virtual environment does not see its programs, so that these
    do not count. Settings that a team shares get no path of this machine.
    """
    if _find(env, in_venvs=False):
        return BARE, ""
    beside = _beside()
    is_there = os.access(beside, os.X_OK) and _is_text(beside)
    if scope == "project" or not is_there:
        return BARE, _missing(beside if is_there else "")
    return shlex.join((beside, *ARGUMENTS)), ""


def program_of(command: str) -> str | None:
    """Return the program that a command of ours names by its path; None for the bare name."""
    return None if command in (BARE, PLUGIN) else shlex.split(command)[0]


def is_known(program: str, env: Mapping[str, str]) -> bool:
    """Return whether a program is this gitgates, or the one that a person's own PATH finds."""
    known = (_beside(), _find(env, in_venvs=False), _find(env, in_venvs=True))
    return os.path.realpath(program) in {os.path.realpath(one) for one in known if one}


def is_in_path(env: Mapping[str, str]) -> bool:
    """Return whether a shell finds `gitgates` now, be it by the help of a virtual environment."""
    return bool(_find(env, in_venvs=True))


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
    """Return the text without our hooks; None if the file was made for them.

    Raises: ConfigError as `put`.
    """
    while True:
        after = _without_one(text, file)
        if after is None or after == text:
            return after
        text = after


def ours_in(root: Node | None) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return each hook of ours in settings: its event, its group and itself, as plain values."""
    found = handlers(root.value.get("hooks", {})) if root else ()
    return [(event, group, handler) for event, group, handler in found if _is_our(handler)]


def parse_settings(text: str, file: str) -> Node | None:
    """Return the settings; None if the file is empty.

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
            listed = group.get("hooks")
            for index, handler in enumerate(listed.items if listed else ()):
                if listed and _is_our(handler.value):
                    if len(listed.items) > 1 or not _is_plain_group(group):
                        return json_text.remove(text, listed, index)
                    path = [(root, root.members.index(hooks)), (hooks, at), (event, nth)]
                    return json_text.prune(text, path)
    return text


def _is_current(text: str | None, wanted: tuple[Entry, ...], command: str, file: str) -> bool:
    root = parse_settings(text, file) if text else None
    found = sorted((event, json.dumps(group)) for event, group, _handler in ours_in(root))
    needed = sorted((one.event, json.dumps(one.group(command))) for one in wanted)
    return text is not None and found == needed


def _is_our(handler: Any) -> bool:  # noqa: ANN401 - any JSON
    is_plain = isinstance(handler, dict) and handler.get("args") is None
    return is_plain and handler.get("type") == "command" and is_ours(handler.get("command"))


def _is_plain_group(group: Node) -> bool:
    """Return whether nobody has written more into a group than we do."""
    return {member.key for member in group.members} <= {"matcher", "hooks"}


def _table(wanted: tuple[Entry, ...], command: str) -> dict[str, Any]:
    return {entry.event: [entry.group(command)] for entry in wanted}


def _require(node: Node, kind: str, what: str, *, text: str, file: str) -> None:
    if node.kind != kind:
        got = node.kind or text[node.start : node.end]
        where = f"{file}:{json_text.line_and_column(text, node.start)}"
        raise ConfigError(
            f"{where}: {what} is {_a(got)}, expected {_a(kind)}",
            "Mend it first; nothing was changed.",
        )


def _a(kind: str) -> str:
    if kind in ("null", "true", "false"):
        return kind
    return f"an {kind}" if kind[0] in "ao" else f"a {kind}"


def _up(seconds: float) -> int:
    return -int(-seconds // 1)


def _beside() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "gitgates")


def _find(env: Mapping[str, str], *, in_venvs: bool) -> str:
    """Return the `gitgates` that a shell finds, with the help of a virtual environment or not."""
    folders = [
        name for name in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(name)
    ]
    folders = [name for name in folders if in_venvs or not _is_in_venv(name)]
    try:
        return which("gitgates", os.pathsep.join(folders)) if folders else ""
    except OSError:
        return ""


def _is_text(path: str) -> bool:
    """Return whether JSON can hold a path: one that is no UTF-8, it cannot."""
    return path.encode("utf-8", "replace").decode() == path


def _is_in_venv(folder: str) -> bool:
    return os.path.isfile(os.path.join(os.path.dirname(os.path.normpath(folder)), "pyvenv.cfg"))


def _missing(where: str) -> str:
    known = f" (only {where}, which is found in its virtual environment alone)" if where else ""
    return (
        f"there is no `gitgates` in the PATH, where these hooks look for it{known}\n"
        "  Put it there, for example with: pipx install gitgates"
    )
