"""Our files beside an agent's settings: the reviewer, the command that starts it, the rules.

The texts of the first two are the plugin's. The command is no skill, which would be named `review`
and hide the client's own; in its folder, it has the plugin's name. A file is ours by a line in its
head with the digest of all the rest: whoever changes the file makes it theirs.

The rules of the gates are a block in the file that each session reads. An empty line is added
before it, and goes with it. What was there before us is told by the bytes around it alone: a text
that ended without a new line ends with our block without one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress

import gitgates
from gitgates.errors import ConfigError, StateError
from gitgates.hosts.claude import FOLDER
from gitgates.hosts.claude.settings import RULES_FILE
from gitgates.install import own_file
from gitgates.policies.needs import agents_wanted
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.policy import WantedAgent
    from gitgates.types import Config

AGENTS = "agents"
COMMAND = os.path.join("commands", "gitgates", "review.md")
_PLUGIN_ABS = os.path.join(os.path.dirname(os.path.abspath(gitgates.__file__)), "plugin", "claude")
_MARK = "# written by `gitgates install-hooks --agent claude`, which keeps it up to date; digest: "
_MARKED = re.compile(rf"^{re.escape(_MARK)}([0-9a-f]+)\r?\n", re.MULTILINE)
_HEAD = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^name:[ \t]*([\"']?)(.+?)\1[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_MOST_READ = 1 << 16  # bytes of an agent's file that its name is looked for in
_PLUGINS_OWN = "gitgates:reviewer"
# A file of that name would take the place of the client's own agent.
_CLIENTS_OWN = ("general-purpose", "explore", "plan", "statusline-setup", "claude")

RULES_BEGIN = "<!-- gitgates: begin -->"
RULES_END = "<!-- gitgates: end -->"

MISSING, CURRENT, OLD, EDITED, FOREIGN = "missing", "current", "old", "edited", "foreign"
WRITTEN = (MISSING, OLD)
DANGLING = "dangling"  # somebody's link, to what is not there


class AgentFile(Record):
    """One file as it is, and as it should be."""

    path: str  # relative to the folder of the settings
    before: str | None  # None: there is none
    after: str | None  # with its mark; None: it is not wanted
    state: str  # MISSING, CURRENT, OLD, EDITED, FOREIGN, DANGLING


def wanted(config: Config) -> dict[str, str]:
    """Return the files that a configuration wants to be there, with their texts."""
    texts = {}
    for agent in agents_wanted(config):
        if may_define(agent.name):
            texts[agent_path(agent.name)] = _agent(agent)
        skill = _read("skills/review/SKILL.md")
        texts[COMMAND] = skill.replace(f"`{_PLUGINS_OWN}`", f"`{agent.name}`")
    return {path: _mark(text) for path, text in texts.items()}


def agent_path(name: str) -> str:
    """Return where a file of ours defines an agent."""
    return os.path.join(AGENTS, f"{name}.md")


def may_define(reviewer: str) -> bool:
    """Return whether a file of ours can be that agent: not if it is a plugin's, or a pattern."""
    return bool(_PLAIN.fullmatch(reviewer)) and reviewer.lower() not in _CLIENTS_OWN


def plan(folder_abs: str, wanted: Mapping[str, str]) -> tuple[AgentFile, ...]:
    """Return the wanted files as they are, and others of ours that are in the same places.

    Raises: ConfigError where one of them cannot be read.
    """
    found = []
    for path in dict.fromkeys((*wanted, *_ours(folder_abs))):
        path_abs, after = os.path.join(folder_abs, path), wanted.get(path)
        text = own_file.read(path_abs)
        found.append(AgentFile(path, text, after, _state(path_abs, text, after)))
    return tuple(found)


def apply(folder_abs: str, file: AgentFile) -> None:
    """Write a file, or remove it with the folders that are empty then.

    Raises: StateError where that cannot be, or the file holds something else by now.
    """
    try:
        own_file.replace(os.path.join(folder_abs, file.path), file.before, file.after)
    except StateError as error:
        raise StateError(
            error.message,
            "This file is as it was; what was said on standard output before is done. Mend its "
            "folder, and do the same again.",
        ) from error
    folder = os.path.dirname(file.path) if file.after is None else ""
    while folder:
        own_file.remove_empty(os.path.join(folder_abs, folder))
        folder = os.path.dirname(folder)
    if file.after is None and os.path.basename(folder_abs) == FOLDER:
        own_file.remove_empty(folder_abs)


def agents_in(folder_abs: str) -> dict[str, str]:
    """Return the agents that are defined below a folder of settings: name → the file, relative."""
    found: dict[str, str] = {}
    for where_abs, folders, names in os.walk(os.path.join(folder_abs, AGENTS)):
        folders.sort()
        for name in sorted(names):
            path_abs = os.path.join(where_abs, name)
            if name.endswith(".md") and (agent := _agent_name(path_abs)):
                found.setdefault(agent, os.path.relpath(path_abs, folder_abs))
    return found


def _agent_name(path_abs: str) -> str:
    if not os.path.isfile(path_abs):
        return ""
    with suppress(OSError), open(path_abs, "rb") as file:
        text = file.read(_MOST_READ).decode("utf-8", "replace")
        head = _HEAD.search(text)
        named = _NAME.search(head[1]) if head else None
        return named[2].strip() if named else ""
    return ""


def _ours(folder_abs: str) -> list[str]:
    """Return where our files are that we, or another configuration, may have written."""
    try:
        names = sorted(os.listdir(os.path.join(folder_abs, AGENTS)))
    except OSError:
        names = []
    paths = [os.path.join(AGENTS, name) for name in names if name.endswith(".md")]
    return [
        path
        for path in (*paths, COMMAND)
        if os.path.isfile(os.path.join(folder_abs, path))
        and _MARK.encode() in own_file.content(os.path.join(folder_abs, path))
    ]


def _state(path_abs: str, text: str | None, wanted_text: str | None) -> str:
    is_link = os.path.islink(path_abs)
    if text is None:
        return DANGLING if is_link else MISSING
    marked = _MARKED.search(text)
    if marked is None or is_link:
        return FOREIGN
    if _digest(_MARKED.sub("", text, count=1)) != marked[1]:
        return EDITED
    is_same = wanted_text is not None and _plain(text) == wanted_text
    return CURRENT if is_same else OLD


def _agent(agent: WantedAgent) -> str:
    shown = agent.model if _PLAIN.fullmatch(agent.model) else json.dumps(agent.model)
    text = _read("agents/reviewer.md").replace("\nname: reviewer\n", f"\nname: {agent.name}\n")
    return text.replace("\nmodel: opus\n", f"\nmodel: {shown}\n")


def _mark(text: str) -> str:
    first, rest = text.split("\n", 1)
    return f"{first}\n{_MARK}{_digest(text)}\n{rest}"


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "replace")).hexdigest()[:16]


def _plain(text: str) -> str:
    # A checkout may write other line ends than we did.
    return text.replace("\r\n", "\n")


def _read(name: str) -> str:
    with open(os.path.join(_PLUGIN_ABS, *name.split("/")), encoding="utf-8", newline="") as file:
        return _plain(file.read())


# The rules


def put_rules(text: str | None, rules: str) -> str:
    """Return the text with our block: where it is already, else at the end. None: no file.

    Raises: ConfigError where only half of our block is there.
    """
    if text is None:
        return _body(rules, "\n") + "\n"
    start, end = _find_rules(text)
    if start >= 0:
        return text[:start] + _body(rules, _newline_behind(text, start)) + text[end:]
    newline = "\r\n" if "\r\n" in text else "\n"
    body = _body(rules, newline)
    if text.endswith("\n"):
        return text + newline + body + newline
    return text + newline * 2 + body


def without_rules(text: str) -> str | None:
    """Return the text without our block; None if the file was made for it.

    Raises: ConfigError as `put_rules`.
    """
    start, end = _find_rules(text)
    if start < 0:
        return text
    newline = _newline_behind(text, start)
    head, tail = text[:start], text[end:]
    if not head and tail in ("", newline):
        return None
    if not tail:
        return head.removesuffix(newline * 2)
    return head.removesuffix(newline) + tail.removeprefix(newline)


def _find_rules(text: str) -> tuple[int, int]:
    """Return where our block begins and ends; -1 if there is none.

    Raises: ConfigError where only half of it is there, or it is there twice.
    """
    begins, ends = _lines(text, RULES_BEGIN), _lines(text, RULES_END)
    if not begins and not ends:
        return -1, -1
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise ConfigError(
            f"{RULES_FILE}: nobody knows where our block is: `{RULES_BEGIN}` stands there "
            f"{len(begins)} times, and `{RULES_END}` {len(ends)} times, each on a line of its own",
            "Take the block out by hand; the file was left alone.",
        )
    return begins[0], ends[0] + len(RULES_END)


def _body(rules: str, newline: str) -> str:
    return f"{RULES_BEGIN}\n{rules.strip()}\n{RULES_END}".replace("\n", newline)


def _newline_behind(text: str, start: int) -> str:
    return "\r\n" if text.startswith("\r", start + len(RULES_BEGIN)) else "\n"


def _lines(text: str, mark: str) -> list[int]:
    """Return where a mark stands on a line of its own."""
    found = re.finditer(rf"^\ufeff?({re.escape(mark)})\r?$", text, re.MULTILINE)
    return [match.start(1) for match in found]
