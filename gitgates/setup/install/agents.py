"""Our hooks in the settings of a coding agent: the files, and the command."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping

from gitgates.core.clean import visible_line
from gitgates.core.errors import ConfigError, StateError, UsageError
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import Entry, bare, committed, is_our_command, unguarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.hosts.settings.json_settings import AgentSettings


DETECTED = "detected"  # in place of an agent's name: those that are detected on this machine


def detected(root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the agents that are used here: name → what shows that."""
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
    """Return the settings file of a scope.

    Raises: UsageError if the agent has none of that scope; StateError if there is no home.
    """
    host = agent_host(agent)
    files, scopes = host.settings_files(root_abs, env), host.FILES.settings
    if scope not in scopes:
        raise UsageError(no_scope(agent, scope), f"Use another scope: --scope {' | '.join(scopes)}")
    if scope not in files:
        others, home = " | ".join(files), visible_line(env.get("HOME", ""))
        set_to = f"`{home}`, which is not an absolute path" if home else "not set"
        raise StateError(
            f"HOME is {set_to}, so there are no settings for the scope {scope}",
            f"Set it, or use another scope: --scope {others}" if others else "Set it.",
        )
    return files[scope]


def main_settings(agent: str, scope: str, repo: Repo) -> str:
    """Return the settings that an agent takes for those of a linked worktree; empty: its own."""
    main_abs, folder = os.path.split(repo.common_dir_abs)
    is_linked = folder == ".git" and repo.git_dir_abs != repo.common_dir_abs
    if scope != "project" or not (is_linked and agent_settings(agent).OF_MAIN):
        return ""
    return agent_host(agent).settings_files(main_abs, repo.env)[scope]


def no_scope(agent: str, scope: str) -> str:
    """Return the message that an agent has no settings of a scope."""
    only = ", only user settings" if is_personal(agent) else ""
    return f"{agent_host(agent).TITLE} has no settings for the scope {scope}{only}"


def is_personal(agent: str) -> bool:
    """Return whether an agent has one settings file for all repositories of a person."""
    return [*agent_host(agent).FILES.settings] == ["user"]


def folder(agent: str, scope: str, root_abs: str, env: Mapping[str, str]) -> str:
    """Return the folder that contains a scope's settings and the files for reviews."""
    return agent_host(agent).scopes(root_abs, env)[scope]


def hidden(agent: str, root_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return the settings that a client ignores because of closer ones."""
    host = agent_host(agent)
    files = [*filter(os.path.exists, host.settings_files(root_abs, env).values())]
    ignored = files[1:] if host.SETTINGS.hides else []
    return [f"{host.TITLE} reads {files[0]}, not {path}" for path in ignored]


def start(agent: str, scope: str, env: Mapping[str, str], root_abs: str = "") -> tuple[str, str]:
    """Return the command of the hooks in a scope, and what is missing for it to work.

    It is the bare one where a client finds it, and never a relative. If that is missing, it
    says that nothing is checked, if a shell runs it.

    A client that was started elsewhere sees no program of an activated virtual environment, or of
    the repository, so these do not count. Settings that a team shares get no path of this machine.
    """
    command = committed(bare(agent)) if agent_host(agent).SETTINGS.by_shell else bare(agent)
    if _find(env, root_abs, env.get("VIRTUAL_ENV", "")):
        return command, ""
    beside = _beside()
    # JSON cannot hold a path that is not valid UTF-8.
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
    """Return the program that a gitgates command names by its path; None for the bare name."""
    program = shlex.split(unguarded(command))[0] if is_our_command(command, agent) else ""
    return program if os.path.isabs(program) else None


def is_known(program: str, env: Mapping[str, str]) -> bool:
    """Return whether a program is this gitgates, or the one that a person's own PATH finds."""
    candidates = (_beside(), _find(env, env.get("VIRTUAL_ENV", "")), _find(env))
    return os.path.realpath(program) in map(os.path.realpath, filter(None, candidates))


def is_in_path(env: Mapping[str, str]) -> bool:
    """Return whether a shell finds `gitgates` now, be it by the help of a virtual environment."""
    return bool(_find(env))


def put(
    text: str | None, needed: tuple[Entry, ...], command: str, *, host: AgentSettings, file: str
) -> str | None:
    """Return the text with exactly these gitgates hooks. None: no file.

    Raises: ConfigError if the text cannot be read, or they could not be taken out again.
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
    """Return the `gitgates` that a shell finds, without those below some folders."""
    below = tuple(f"{os.path.realpath(folder)}/" for folder in left_out if folder)
    folders = [
        folder
        for folder in env.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder) and not f"{os.path.realpath(folder)}/".startswith(below)
    ]
    return shutil.which("gitgates", path=os.pathsep.join(folders) or os.devnull) or ""
