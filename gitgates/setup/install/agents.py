"""Our hooks in the settings of a coding agent: the needed events, and the command."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping

from gitgates.core.clean import visible_line
from gitgates.core.errors import ConfigError, StateError, UsageError
from gitgates.core.lifecycle import GIT_HOOKS, HOOK_OF, kind_of
from gitgates.core.policy import Need
from gitgates.core.types import Config
from gitgates.engine.hooks import hook_at, host_limit_s
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import Entry, bare, committed, is_our_command, split, unguarded
from gitgates.session.needs import agent_hooks, agents_wanted, git_hooks, join_needs, needed_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.agent_types import ToolKind
    from gitgates.git.repo import Repo
    from gitgates.hosts.settings.base import InstalledHook
    from gitgates.hosts.settings.json_settings import AgentSettings


_AFTER_TOOL = HOOK_OF["after-tool"]
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


def entries(config: Config, agent: str) -> tuple[Entry, ...]:
    """Return the hook entries that a configuration and its policies need."""
    has_batches = agent_host(agent).has("after-batch")
    needed = []
    for need in _needs(config, agent):
        event, tools = HOOK_OF[need.kind], tools_of(need, agent)
        # No patterns mean all, and an empty list none.
        if all(names is None or split(names) for names in (tools, need.agents)):
            hook = hook_at(config, event, has_batches=has_batches)
            limit_s = host_limit_s(config, hook) + need.more_s
            limit_s = min(limit_s, agent_host(agent).SETTINGS.most_s.get(need.kind, limit_s))
            matcher = agent_settings(agent).matcher(need.kind, tools, need.agents)
            needed.append(Entry(event, math.ceil(limit_s), matcher))
    return tuple(needed)


def joined(needed: tuple[Entry, ...], installed: Iterable[InstalledHook]) -> tuple[Entry, ...]:
    """Return entries that also cover what is already installed, for other repositories."""
    by_event = {entry.event: entry for entry in needed}
    for hook in installed:
        entry = by_event.get(hook.event, Entry(hook.event, 0, hook.matcher))
        limit_s = max(entry.timeout_s, math.ceil(hook.timeout_s))
        matcher = entry.matcher if entry.matcher == hook.matcher else None
        by_event[hook.event] = Entry(hook.event, limit_s, matcher)
    return tuple(by_event.values())


def limits(config: Config, agent: str) -> list[str]:
    """Return what gates cannot do in an agent, for each hook that has gates."""
    host = agent_host(agent)
    channels = dict(host.PROTOCOL.events.values())
    limitations = []
    is_required = any(wanted.is_required for wanted in agents_wanted(config))
    if is_required and not host.PROTOCOL.hands_tokens:
        limitations.append(
            f"{host.TITLE} cannot tell an independent reviewer from the agent, although one is "
            "required; any review is accepted there"
        )
    gated = (*(hook.name for hook in config.hooks if hook.gates), *git_hooks(config))
    of_git = [point.name for point in GIT_HOOKS if point.name in gated]
    if host.NO_GIT_HOOKS and of_git:
        limitations.append(f"{', '.join(of_git)}: {host.NO_GIT_HOOKS}")
    for hook in agent_hooks(config):
        kind, no_event = kind_of(hook.name), f"{host.TITLE} has no event {hook.name}: its gates"
        if kind not in channels and hook == hook_at(config, _AFTER_TOOL, has_batches=False):
            kind = kind_of(_AFTER_TOOL)
            limitations.append(f"{no_event} run after each tool instead")
        can, limit_s = channels.get(kind), math.ceil(host_limit_s(config, hook))
        most_s = host.SETTINGS.most_s.get(kind, limit_s)
        if can is None:
            limitations.append(f"{no_event} do not run there")
        elif why := host.PROTOCOL.cannot.get(kind):
            limitations.append(f"{hook.name}: {why}")
        elif not (can.block or can.deny):
            what = f"{host.TITLE} cannot be blocked at {hook.name}: its gates only warn there"
            limitations.append(what)
        if can and most_s < limit_s:
            limitations.append(
                f"{host.TITLE} ends {hook.name} after {most_s} s, and then lets everything through;"
                f" its gates may take until {limit_s} s"
            )
    return limitations


def tools_of(need: Need, agent: str) -> tuple[str, ...] | None:
    """Return patterns of the needed tools; None: all."""
    if need.tools is None:
        return None
    names = agent_host(agent).TOOLS.names
    patterns = [*need.tools, *(name for kind in need.tool_kinds for name in names.get(kind, ()))]
    reads = [f"!{name}" for name in names.get("reads", ()) if need.but_reads]
    return tuple(dict.fromkeys((*patterns, *reads)))


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


def start(agent: str, scope: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the command of the hooks in a scope, and what is missing for it to work.

    It is the bare one where a client finds it, and never a relative. If that is missing, it
    says that nothing is checked, if a shell runs it.

    A client that was started without a virtual environment does not see its programs, so these
    do not count. Settings that a team shares get no path of this machine.
    """
    command = committed(bare(agent)) if agent_host(agent).SETTINGS.by_shell else bare(agent)
    if _find(env, in_venvs=False):
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
    candidates = (_beside(), _find(env, in_venvs=False), _find(env, in_venvs=True))
    return os.path.realpath(program) in map(os.path.realpath, filter(None, candidates))


def is_in_path(env: Mapping[str, str]) -> bool:
    """Return whether a shell finds `gitgates` now, be it by the help of a virtual environment."""
    return bool(_find(env, in_venvs=True))


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


def _needs(config: Config, agent: str) -> list[Need]:
    """Return the events of an agent that are needed, in the order of a session."""
    by_kind = {need.kind: need for need in needed_events(config)}
    host = agent_host(agent)
    if "after-batch" in by_kind and not host.has("after-batch"):
        batch = by_kind["after-batch"]
        changing: tuple[ToolKind, ...] = ("writes", "shell") if batch.tools is None else ()
        after = Need("after-tool", tools=batch.tools or (), tool_kinds=changing)
        by_kind["after-tool"] = join_needs(by_kind.get("after-tool", after), after)
    before: tuple[ToolKind, ...] = ()
    starts = host.has("session-start") and host.PROTOCOL.tells_start
    if "session-start" in by_kind and not starts:
        # The state before the first change stands for that at the start.
        before = ("writes", "shell")
    elif "after-tool" in by_kind and not host.PROTOCOL.tells_edits:
        before = ("writes",)
    if before:
        need = Need("before-tool", tools=(), tool_kinds=before)
        by_kind["before-tool"] = join_needs(by_kind.get("before-tool", need), need)
    kinds = [kind for kind in HOOK_OF if kind in by_kind and host.has(kind)]
    return [by_kind[kind] for kind in kinds]


def _beside() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "gitgates")


def _find(env: Mapping[str, str], *, in_venvs: bool) -> str:
    """Return the `gitgates` that a shell finds, with the help of a virtual environment or not."""
    folders = [
        folder
        for folder in env.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder)
        and (in_venvs or not os.path.isfile(f"{os.path.normpath(folder)}/../pyvenv.cfg"))
    ]
    return shutil.which("gitgates", path=os.pathsep.join(folders) or os.devnull) or ""
