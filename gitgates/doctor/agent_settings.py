"""What may start us from Claude Code, its settings and our plugin, and who reviews there."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import gitgates
from gitgates.doctor.findings import Finding
from gitgates.engine.hooks import matches_agent
from gitgates.errors import GitgatesError
from gitgates.hosts.claude import FOLDER
from gitgates.hosts.claude import settings as client
from gitgates.hosts.claude.settings import installed_hooks, parse_hook, unrecognised_hooks
from gitgates.install import agent_files, own_file
from gitgates.install.agents import parse_settings
from gitgates.policies.needs import agents_wanted
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.git.repo import Repo
    from gitgates.hosts.claude.settings import InstalledHook
    from gitgates.policy import WantedAgent
    from gitgates.types import Config

_OURS = "gitgates"


class Source(Record):
    """One settings file, or the plugin."""

    scope: str  # project, local, user, managed, plugin
    where: str
    broken: str = ""  # why it cannot be read
    heard: tuple[InstalledHook, ...] = ()
    custom: tuple[tuple[str, str], ...] = ()  # event and command of others that speak of us
    settings: Mapping[str, Any] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Return what the client adds to the environment of hooks for it."""
        table = self.settings.get("env")
        return {k: str(v) for k, v in table.items()} if isinstance(table, dict) else {}

    def problem(self, what: str, mend: str = "") -> Finding:
        """Return a problem with it."""
        return Finding("problem", "agent", self.where, what, mend)

    def note(self, what: str, mend: str = "") -> Finding:
        """Return something to know of it."""
        return Finding("note", "agent", self.where, what, mend)

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


def environment(found: list[Source]) -> dict[str, str]:
    """Return what the settings add to the environment of hooks."""
    return {k: v for source in _by_precedence(found) for k, v in source.environment.items()}


def effective_source(found: list[Source], key: str) -> Source | None:
    """Return the settings whose word on a key counts; None if none has one."""
    return next((one for one in reversed(_by_precedence(found)) if key in one.settings), None)


def read_source(scope: str, path_abs: str, root_abs: str) -> Source:
    """Read one settings file."""
    source = Source(scope, own_file.shown(path_abs, root_abs))
    try:
        root = parse_settings(own_file.read(path_abs) or "", source.where)
    except GitgatesError as error:
        return source._replace(broken=error.message.removeprefix(f"{source.where}:"))
    settings = root.value if root else {}
    hooks = settings.get("hooks", {})
    return source._replace(
        heard=installed_hooks(hooks), custom=unrecognised_hooks(hooks), settings=settings
    )


def _files(repo: Repo, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for scope in client.SCOPES:
        try:
            yield scope, client.settings_file(scope, repo.root_abs, env)
        except GitgatesError:
            continue  # without a home, nobody has settings there
    yield from (("managed", path_abs) for path_abs in client.MANAGED)


def _by_precedence(found: list[Source]) -> list[Source]:
    """Return the settings, those that count most last; a plugin has none."""
    files = [source for source in found if source.scope in client.LOUDER]
    return sorted(files, key=lambda source: client.LOUDER.index(source.scope))


def enabled_plugins(found: list[Source]) -> dict[str, str]:
    """Return the plugins that the settings which count most enable: name → with its marketplace."""
    enabled: dict[str, bool] = {}
    for source in _by_precedence(found):
        table = source.settings.get(client.PLUGINS)
        if isinstance(table, dict):
            enabled |= {name: bool(value) for name, value in table.items()}
    return {name.split("@")[0]: name for name, on in enabled.items() if on}


def _plugin(found: list[Source]) -> list[Source]:
    """Return our plugin, if it is enabled."""
    name = enabled_plugins(found).get(_OURS)
    if name is None:
        return []
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    with open(os.path.join(package_abs, "plugin/claude/hooks/hooks.json"), "rb") as file:
        hooks = json.loads(file.read())["hooks"]
    # Its command hides that we are missing; the check is about the one inside of it.
    heard = [
        parse_hook(event, group, {**one, "command": client.BARE})
        for event, group, one in client.handlers(hooks)
    ]
    return [Source("plugin", f"plugin {name}", heard=tuple(heard))]


# The reviewer


def check_reviewer(config: Config, repo: Repo, found: list[Source]) -> Iterator[Finding]:
    """Find what is missing for a review, where our hooks are installed."""
    heard = [source for source in found if source.heard]
    wanted = agents_wanted(config)
    if not heard or not wanted:
        return
    folders = {"project": os.path.join(repo.root_abs, FOLDER)}
    with suppress(GitgatesError):  # without a home, nobody has any agents there
        settings_abs = client.settings_file("user", repo.root_abs, repo.env)
        folders["user"] = os.path.dirname(settings_abs)
    for scope, folder_abs in folders.items():
        scopes = ("project", "local") if scope == "project" else (scope,)
        here = next((one for one in heard if one.scope in scopes), None)
        if here:
            yield from _check_files(config, folder_abs, here)
    for agent in wanted:
        if agent.is_needed and not _is_there(agent.name, folders, found):
            yield _missing(agent, heard[0])


def _check_files(config: Config, folder_abs: str, source: Source) -> Iterator[Finding]:
    """Find files that installing would write anew."""
    try:
        files = agent_files.plan(folder_abs, agent_files.wanted(config))
    except GitgatesError as error:
        yield Finding("note", "agent", folder_abs, error.message, "mend the file")
        return
    for file in files:
        if file.state == agent_files.OLD and file.after is not None:
            where = os.path.join(os.path.dirname(source.where), file.path)
            what = "is not as the configuration and this version want it"
            yield Finding("note", "agent", where, what, source.install)


def _is_there(reviewer: str, folders: Mapping[str, str], found: list[Source]) -> bool:
    names = [name for folder_abs in folders.values() for name in agent_files.agents_in(folder_abs)]
    plugins = enabled_plugins(found)
    if _OURS in plugins:
        names.append(f"{_OURS}:reviewer")
    if any(matches_agent((reviewer,), name) for name in names):
        return True
    plugin, is_named, _agent = reviewer.partition(":")
    return bool(is_named) and plugin != _OURS and plugin in plugins  # what it holds is not known


def _missing(agent: WantedAgent, source: Source) -> Finding:
    name = agent.name
    what = f"Claude Code has no agent `{name}`: where its decision is wanted, nobody can give it"
    mend = source.install
    if source.scope in ("plugin", "managed") or not agent_files.may_define(name):
        folder = os.path.join(FOLDER, agent_files.AGENTS)
        mend = f"define it in {folder}, or name another in [tool.gitgates.review] reviewer"
    tell = source.problem if agent.is_required else source.note
    return tell(what, mend)
