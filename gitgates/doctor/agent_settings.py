"""What may start us from an agent, its settings and our plugin, and who reviews there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from gitgates.doctor.findings import Finding
from gitgates.engine.hooks import matches_agent
from gitgates.errors import GitgatesError
from gitgates.git.repo import Repo
from gitgates.hosts import agent_host, agent_settings
from gitgates.hosts.settings import HookSettings, InstalledHook, speaks_of_us
from gitgates.install import agent_files, own_file
from gitgates.policies.needs import agents_wanted
from gitgates.policy import WantedAgent
from gitgates.record import Record
from gitgates.types import Config

_OURS = "gitgates"


class Source(Record):
    """One settings file of an agent, or the plugin."""

    agent: str
    scope: str  # project, local, user, managed, plugin
    where: str
    broken: str = ""  # why it cannot be read
    settings: HookSettings = HookSettings()

    @property
    def heard(self) -> tuple[InstalledHook, ...]:
        """The hooks that start us."""
        return self.settings.ours

    @property
    def custom(self) -> dict[str, str]:
        """The command of others that speak of us: event → command."""
        hooks = [hook for hook in self.settings.hooks if not hook.is_ours]
        return {hook.event: hook.command for hook in hooks if speaks_of_us(hook.command)}

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
        return f"gitgates install-hooks --agent {self.agent}{scope}"

    @property
    def uninstall(self) -> str:
        """Return what takes our hooks out of here."""
        if self.scope == "plugin":
            return agent_settings(self.agent).TAKE_PLUGIN_OUT
        return self.install.replace("install-hooks", "uninstall-hooks")


def sources(agent: str, repo: Repo) -> list[Source]:
    """Return the settings that there are, nearest first, and the plugin if it is enabled."""
    found: list[Source] = []
    seen: set[str] = set()
    files = agent_host(agent).settings_files(repo.root_abs, repo.env)
    for scope, path_abs in {**files, "managed": agent_settings(agent).MANAGED}.items():
        if os.path.realpath(path_abs) in seen or not os.path.lexists(path_abs):
            continue
        seen.add(os.path.realpath(path_abs))
        source = Source(agent, scope, own_file.shown(path_abs, repo.root_abs))
        try:
            settings = agent_settings(agent).read(
                own_file.read(path_abs) or "", source.where, scope
            )
            found.append(source._replace(settings=settings))
        except GitgatesError as error:
            broken = error.message.removeprefix(f"{source.where}:")
            found.append(source._replace(broken=broken))
    if plugin := enabled_plugins(found).get(_OURS):
        settings = agent_settings(agent).plugin()
        found.append(Source(agent, "plugin", f"plugin {plugin}", settings=settings))
    return found


def by_precedence(found: list[Source]) -> list[Source]:
    """Return the settings, those that count most last; a plugin has none."""
    files = [source for source in found if source.scope != "plugin"]
    return sorted(files, key=lambda one: agent_settings(one.agent).LOUDER.index(one.scope))


def enabled_plugins(found: list[Source]) -> dict[str, str]:
    """Return the plugins that the settings which count most enable: name → with its marketplace."""
    enabled: dict[str, bool] = {}
    for source in by_precedence(found):
        enabled |= source.settings.plugins
    return {name.split("@")[0]: name for name, on in enabled.items() if on}


# The reviewer


def check_reviewer(config: Config, repo: Repo, found: list[Source]) -> Iterator[Finding]:
    """Find what is missing for a review, where our hooks are installed."""
    heard = [source for source in found if source.heard]
    wanted = agents_wanted(config)
    if not heard or not wanted:
        return
    files = agent_host(heard[0].agent).settings_files(repo.root_abs, repo.env)
    folders = {scope: os.path.dirname(path) for scope, path in files.items() if scope != "local"}
    for scope, folder_abs in folders.items():
        scopes = ("project", "local") if scope == "project" else (scope,)
        for here in [one for one in heard if one.scope in scopes][:1]:
            yield from _check_files(config, folder_abs, here)
    for agent in wanted:
        if agent.is_needed and not _is_there(agent.name, folders, found):
            yield _missing(agent, heard[0])


def _check_files(config: Config, folder_abs: str, source: Source) -> Iterator[Finding]:
    """Find files that installing would write anew."""
    try:
        wanted = agent_files.wanted(config, source.agent)
        files = agent_files.plan(folder_abs, wanted, source.agent)
    except GitgatesError as error:
        yield source.note(error.message, "mend the file")._replace(where=folder_abs)
        return
    for file in files:
        if file.state == agent_files.OLD and file.after is not None:
            where = os.path.join(os.path.dirname(source.where), file.path)
            what = "is not as the configuration and this version want it"
            yield source.note(what, source.install)._replace(where=where)


def _is_there(reviewer: str, folders: Mapping[str, str], found: list[Source]) -> bool:
    agent = found[0].agent
    names = [name for one in folders.values() for name in agent_files.agents_in(one, agent)]
    plugins = enabled_plugins(found)
    if _OURS in plugins:
        names.append(f"{_OURS}:reviewer")
    if any(matches_agent((reviewer,), name) for name in names):
        return True
    plugin, is_named, _agent = reviewer.partition(":")
    return bool(is_named) and plugin != _OURS and plugin in plugins  # what it holds is not known


def _missing(agent: WantedAgent, source: Source) -> Finding:
    name = agent.name
    client, host = agent_host(source.agent), agent_settings(source.agent)
    what = f"{client.TITLE} has no agent `{name}`: where its decision is wanted, nobody can give it"
    mend = source.install
    if source.scope in ("plugin", "managed") or not host.may_define(name):
        folder = os.path.join(client.FOLDER, host.AGENTS)
        mend = f"define it in {folder}, or name another in [tool.gitgates.review] reviewer"
    tell = source.problem if agent.is_required else source.note
    return tell(what, mend)
