"""Our hooks in a coding agent's settings, their command, and the files next to the settings.

Those files define sub-agents, such as the reviewer, and a command that starts it. A file is ours if
it has our mark with the digest of the rest, so whoever edits the file makes it theirs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping

from gitgates.core.errors import ConfigError, StateError, UsageError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.drivers.needs import agents_wanted
from gitgates.edit import user_file
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.definitions import plugin_agent
from gitgates.hosts.settings.base import Entry, bare, committed, is_our_command, unguarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.hosts.settings.json_settings import AgentSettings


DETECTED = "detected"  # instead of an agent's name: all agents that are found on this machine
_MARK = "# written by `gitgates install-hooks --agent {}`, which keeps it up to date; digest: "
_MARKED = re.compile(rf"^{_MARK.format('[a-z]+')}([0-9a-f]+)\r?\n", re.MULTILINE)

MISSING, CURRENT, OLD, EDITED, FOREIGN = "missing", "current", "old", "edited", "foreign"
DANGLING = "dangling"  # a broken link
WRITTEN = (MISSING, OLD)


def detected(root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the agents that are used here: name → evidence."""
    signs = {}
    for name in AGENTS:
        host = agent_host(name)
        project_file = host.settings_files(root_abs, env).get("project", "")
        folders = (os.path.dirname(project_file).removesuffix("/plugins"), host.home(env))
        program = shutil.which(name, path=env.get("PATH"))
        reasons = [f"its program is {program}"] if program else []
        reasons += [f"{folder} is there" for folder in folders if folder and os.path.isdir(folder)]
        if reasons:
            signs[name] = reasons[0]
    return signs


def settings_file(agent: str, scope: str, root_abs: str, env: Mapping[str, str]) -> str:
    """Return a scope's settings file.

    Raises: UsageError if the agent has no such scope; StateError if there is no home.
    """
    host = agent_host(agent)
    files, scopes = host.settings_files(root_abs, env), host.FILES.settings
    if scope not in scopes:
        raise UsageError(no_scope(agent, scope), f"Use another scope: --scope {' | '.join(scopes)}")
    if scope not in files:
        what = f"HOME is not an absolute path, so there are no settings in the scope {scope}"
        raise StateError(what, "Set it, or use another scope: --scope project")
    return files[scope]


def main_settings(agent: str, scope: str, repo: Repo) -> str:
    """Return the settings that an agent reads instead of a linked worktree's own; empty: none."""
    main_abs, folder = os.path.split(repo.common_dir_abs)
    is_linked = folder == ".git" and repo.git_dir_abs != repo.common_dir_abs
    if scope != "project" or not (is_linked and agent_settings(agent).OF_MAIN):
        return ""
    return agent_host(agent).settings_files(main_abs, repo.env)[scope]


def no_scope(agent: str, scope: str) -> str:
    """Return the message that an agent has no settings in a scope."""
    only = ", only user settings" if is_personal(agent) else ""
    return f"{agent_host(agent).TITLE} has no settings for the scope {scope}{only}"


def is_personal(agent: str) -> bool:
    """Return whether an agent has only one settings file, for all repositories."""
    return [*agent_host(agent).FILES.settings] == ["user"]


def hidden(agent: str, root_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return messages about settings that a client ignores because of nearer ones."""
    host = agent_host(agent)
    files = [*filter(os.path.exists, host.settings_files(root_abs, env).values())]
    ignored = files[1:] if host.SETTINGS.hides else []
    return [f"{host.TITLE} reads {files[0]}, not {path}" for path in ignored]


def start(agent: str, scope: str, env: Mapping[str, str], root_abs: str = "") -> tuple[str, str]:
    """Return the command of the hooks in a scope, and what is missing for it to work, or "".

    It is the bare command if a client finds it. If a shell runs the hooks and the program is
    missing, the command says that nothing is checked.

    Programs in an activated virtual environment or in the repository do not count, because a client
    that is started elsewhere does not find them. Shared settings get no path of this machine.
    """
    command = committed(bare(agent)) if agent_host(agent).SETTINGS.by_shell else bare(agent)
    if _find(env, root_abs, env.get("VIRTUAL_ENV", "")):
        return command, ""
    beside = _beside()
    # JSON cannot contain a path that is not valid UTF-8.
    is_text = beside.encode("utf-8", "replace").decode() == beside
    is_usable = os.access(beside, os.X_OK) and is_text
    if scope != "project" and is_usable:
        return f"{shlex.quote(beside)}{bare(agent).removeprefix('gitgates')}", ""
    hint = f" (only {beside}, which is found only in its virtual environment)" if is_usable else ""
    return command, not_in_path(hint)


def not_in_path(hint: str = "") -> str:
    """Return the message that `gitgates` was not found in PATH; `hint`: where it is."""
    return (
        f"`gitgates` was not found in PATH, where these hooks look for it{hint}\n"
        "  To install it there, in a clone of gitgates: uv tool install ."
    )


def program_of(command: str, agent: str) -> str | None:
    """Return the path of the program in a gitgates command; None for the bare name."""
    program = shlex.split(unguarded(command))[0] if is_our_command(command, agent) else ""
    return program if os.path.isabs(program) else None


def is_known(program: str, env: Mapping[str, str]) -> bool:
    """Return whether a program is this gitgates, or the one in PATH."""
    candidates = (_beside(), _find(env, env.get("VIRTUAL_ENV", "")), _find(env))
    return os.path.realpath(program) in map(os.path.realpath, filter(None, candidates))


def is_in_path(env: Mapping[str, str]) -> bool:
    """Return whether a shell finds `gitgates` now, even if in a virtual environment."""
    return bool(_find(env))


def put(
    text: str | None, needed: tuple[Entry, ...], command: str, *, host: AgentSettings, file: str
) -> str | None:
    """Return the settings with exactly these gitgates hooks. None: no file.

    Raises: ConfigError if the text cannot be parsed, or the hooks could not be removed again.
    """
    before = None if text is None else host.remove(text, file)
    after = host.add(before, needed, command, file)
    if after is not None and host.remove(after, file) != before:
        by_hand = host.add(None, needed, command, file)
        what = f"{file}: hooks cannot be added in a way that can be undone"
        raise ConfigError(what, f"Add them by hand; nothing was changed:\n{by_hand}")
    return text if host.is_same(text, after, file) else after


def _beside() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "gitgates")


def _find(env: Mapping[str, str], *left_out: str) -> str:
    """Return the `gitgates` that a shell finds outside of some folders; empty if there is none."""
    below = tuple(f"{os.path.realpath(folder)}/" for folder in left_out if folder)
    absolute = filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep))
    folders = [path for path in absolute if not f"{os.path.realpath(path)}/".startswith(below)]
    return shutil.which("gitgates", path=os.pathsep.join(folders) or os.devnull) or ""


# Files next to the settings


class AgentFile(Record):
    """A sub-agent's or a command's file: its current and its expected text."""

    path: str  # relative to the settings folder
    before: str | None  # None: it does not exist
    after: str | None  # with its mark; None: it is not needed
    state: str  # MISSING, CURRENT, OLD, EDITED, FOREIGN, DANGLING


def needed_texts(config: Config, agent: str) -> dict[str, str]:
    """Return the files that a configuration needs: path → text."""
    define = agent_settings(agent).agent_definitions
    files = [define(subagent.name, subagent.model) for subagent in agents_wanted(config)]
    return {path: _mark(text, agent) for texts in files for path, text in texts.items()}


def plan_files(folder_abs: str, texts: Mapping[str, str], agent: str) -> tuple[AgentFile, ...]:
    """Return the needed files, and other gitgates files in the same folders, with their states.

    Raises: ConfigError if one of them cannot be read.
    """
    files = []
    for path in dict.fromkeys((*texts, *_ours(folder_abs, agent))):
        path_abs, after = os.path.join(folder_abs, path), texts.get(path)
        text = user_file.read(path_abs)
        files.append(AgentFile(path, text, after, _state(path_abs, text, after)))
    return tuple(files)


def write_file(folder_abs: str, file: AgentFile) -> None:
    """Write a file, or remove it with folders that become empty.

    Raises: StateError if that fails, or the file has changed meanwhile.
    """
    try:
        user_file.replace(os.path.join(folder_abs, file.path), file.before, file.after)
    except StateError as error:
        hint = "It was not changed; the changes above were made. Fix its folder, and try again."
        raise StateError(error.message, hint) from error
    folder = os.path.dirname(file.path)
    while folder and file.after is None:
        user_file.remove_empty(os.path.join(folder_abs, folder))
        folder = os.path.dirname(folder)


def agents_in(folder_abs: str, agent: str) -> dict[str, str]:
    """Return the sub-agents that are defined below a settings folder: name → file."""
    host = agent_settings(agent)
    definitions: dict[str, str] = {}
    for path in _below(folder_abs, agent):
        text = user_file.content(os.path.join(folder_abs, path)).decode("utf-8", "replace")
        if name := host.agent_name(text):
            definitions.setdefault(name, path)
    return definitions


def _below(folder_abs: str, agent: str) -> list[str]:
    """Return the files of sub-agents, relative to the settings folder."""
    folder = agent_settings(agent).AGENTS
    walked = os.walk(os.path.join(folder_abs, folder)) if folder else ()
    paths = [os.path.join(parent, name) for parent, _folders, names in walked for name in names]
    definitions = [os.path.relpath(path, folder_abs) for path in paths if path.endswith(".md")]
    return sorted(definitions, key=lambda path: (path.count("/"), path))


def _ours(folder_abs: str, agent: str) -> list[str]:
    """Return the existing files that gitgates has written."""
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
    # A checkout may change line endings.
    return text.replace("\r\n", "\n")
