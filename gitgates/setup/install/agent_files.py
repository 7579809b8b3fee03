"""The files next to an agent's settings: the reviewer, and the command that starts it.

Their texts are the host's. A file is ours by a line in its head with the digest of all the rest:
whoever changes the file makes it theirs.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.edit import user_file
from gitgates.hosts import agent_settings
from gitgates.hosts.definitions import plugin_agent
from gitgates.session.needs import agents_wanted

_MARK = "# written by `gitgates install-hooks --agent {}`, which keeps it up to date; digest: "
_MARKED = re.compile(rf"^{_MARK.format('[a-z]+')}([0-9a-f]+)\r?\n", re.MULTILINE)

MISSING, CURRENT, OLD, EDITED, FOREIGN = "missing", "current", "old", "edited", "foreign"
DANGLING = "dangling"  # somebody's link, to what does not exist
WRITTEN = (MISSING, OLD)


class AgentFile(Record):
    """One file: its present and its expected text."""

    path: str  # relative to the folder of the settings
    before: str | None  # None: there is none
    after: str | None  # with its mark; None: it is not needed
    state: str  # MISSING, CURRENT, OLD, EDITED, FOREIGN, DANGLING


def needed_texts(config: Config, agent: str) -> dict[str, str]:
    """Return the files that a configuration needs, with their texts."""
    define = agent_settings(agent).agent_definitions
    files = [define(subagent.name, subagent.model) for subagent in agents_wanted(config)]
    return {path: _mark(text, agent) for texts in files for path, text in texts.items()}


def plan(folder_abs: str, texts: Mapping[str, str], agent: str) -> tuple[AgentFile, ...]:
    """Return the state of the needed files, and of other gitgates files in the same folders.

    Raises: ConfigError if one of them cannot be read.
    """
    files = []
    for path in dict.fromkeys((*texts, *_ours(folder_abs, agent))):
        path_abs, after = os.path.join(folder_abs, path), texts.get(path)
        text = user_file.read(path_abs)
        files.append(AgentFile(path, text, after, _state(path_abs, text, after)))
    return tuple(files)


def apply(folder_abs: str, file: AgentFile) -> None:
    """Write a file, or remove it with the folders that are empty then.

    Raises: StateError if that cannot be, or the file holds something else by now.
    """
    try:
        user_file.replace(os.path.join(folder_abs, file.path), file.before, file.after)
    except StateError as error:
        unchanged = "This file was not changed; the changes reported before were made."
        raise StateError(error.message, f"{unchanged} Fix its folder, and try again.") from error
    folder = os.path.dirname(file.path)
    while folder and file.after is None:
        user_file.remove_empty(os.path.join(folder_abs, folder))
        folder = os.path.dirname(folder)


def agents_in(folder_abs: str, agent: str) -> dict[str, str]:
    """Return the sub-agents that are defined below a folder of settings: name → the file."""
    host = agent_settings(agent)
    definitions: dict[str, str] = {}
    for path in _below(folder_abs, agent):
        text = user_file.content(os.path.join(folder_abs, path)).decode("utf-8", "replace")
        if name := host.agent_name(text):
            definitions.setdefault(name, path)
    return definitions


def _below(folder_abs: str, agent: str) -> list[str]:
    """Return the files of sub-agents, relative to the folder of the settings."""
    folder = agent_settings(agent).AGENTS
    walked = os.walk(os.path.join(folder_abs, folder)) if folder else ()
    paths = [os.path.join(parent, name) for parent, _folders, names in walked for name in names]
    definitions = [os.path.relpath(path, folder_abs) for path in paths if path.endswith(".md")]
    return sorted(definitions, key=lambda path: (path.count("/"), path))


def _ours(folder_abs: str, agent: str) -> list[str]:
    """Return where our files are that we, or another configuration, may have written."""
    mark, usual = _MARK.format(agent).encode(), agent_settings(agent).agent_definitions
    paths = (*_below(folder_abs, agent), *usual(plugin_agent(), ""))
    return [path for path in paths if mark in user_file.content(os.path.join(folder_abs, path))]


def _state(path_abs: str, text: str | None, expected: str | None) -> str:
    is_link = os.path.islink(path_abs)
    if text is None:
        return DANGLING if is_link else MISSING
    marked = _MARKED.search(text)
    if marked is None or is_link:
        return FOREIGN
    if _digest(_MARKED.sub("", text, count=1)) != marked[1]:
        return EDITED
    return CURRENT if _plain(text) == expected else OLD


def _mark(text: str, agent: str) -> str:
    first, rest = text.split("\n", 1)
    return f"{first}\n{_MARK.format(agent)}{_digest(text)}\n{rest}"


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "replace")).hexdigest()[:16]


def _plain(text: str) -> str:
    # A checkout may write other line ends than we did.
    return text.replace("\r\n", "\n")
