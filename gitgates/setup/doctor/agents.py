"""Check that each agent calls gitgates at the events that the configuration needs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from gitgates.core import environ
from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import TOOL_EVENTS, kind_of
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.drivers.installed import is_switched_off
from gitgates.drivers.needs import agents_wanted, is_reason, policies_on
from gitgates.drivers.told_once import unread_in
from gitgates.edit import user_file
from gitgates.engine.plan.hooks import matches_agent
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS, DEFAULT_AGENT, agent_host, agent_settings
from gitgates.hosts.definitions import plugin_agent
from gitgates.hosts.settings.base import Entry, HookSettings, InstalledHook
from gitgates.setup.doctor.hooks import Subject
from gitgates.setup.install import agent_needs, agents
from gitgates.setup.install.agent_needs import entries
from gitgates.store.log import Journal, sessions
from gitgates.verbs.finding import Finding

_OURS = "gitgates"
_MATCHED = (*TOOL_EVENTS, "subagent-start", "subagent-end")
_FIX = "fix the file"


class Source(Record):
    """One settings file of an agent, or the plugin."""

    agent: str
    scope: str  # project, local, user, managed, plugin
    location: str
    path_abs: str = ""
    broken: str = ""  # that it cannot be read, and why
    settings: HookSettings = HookSettings()

    @property
    def own_hooks(self) -> tuple[InstalledHook, ...]:
        """The hooks that start gitgates."""
        return self.settings.our_hooks

    @property
    def title(self) -> str:
        """The agent's name for a person."""
        return agent_host(self.agent).TITLE

    def problem(self, what: str, fix: str) -> Finding:
        """Return a problem with it."""
        return Finding("problem", "agent", self.location, what, fix)

    def note(self, what: str, fix: str = "") -> Finding:
        """Return a note on it."""
        return Finding("note", "agent", self.location, what, fix)

    @property
    def install(self) -> str:
        """Return the command that installs the hooks here."""
        scope = "" if self.scope in ("project", "plugin") else f" --scope {self.scope}"
        return f"gitgates install-hooks --agent {self.agent}{scope}"


def find_sources(agent: str, repo: Repo) -> list[Source]:
    """Return the existing settings, nearest first, and the plugin if it is enabled."""
    sources: list[Source] = []
    real_paths: set[str] = set()
    files = agent_host(agent).settings_files(repo.root_abs, repo.env)
    for scope, path_abs in {**files, "managed": agent_settings(agent).MANAGED}.items():
        if os.path.realpath(path_abs) in real_paths or not os.path.lexists(path_abs):
            continue
        real_paths.add(os.path.realpath(path_abs))
        source = Source(agent, scope, user_file.display_path(path_abs, repo.root_abs), path_abs)
        try:
            text = user_file.read(path_abs) or ""
            settings = agent_settings(agent).read(text, source.location, scope)
            sources.append(source._replace(settings=settings))
        except GitgatesError as error:
            why = error.message.removeprefix(f"{source.location}:").lstrip()
            sources.append(source._replace(broken=f"cannot be read: {why}"))
    if plugin := _enabled_plugins(sources).get(_OURS):
        settings = agent_settings(agent).plugin()
        sources.append(Source(agent, "plugin", f"plugin {plugin}", settings=settings))
    return sources


def _by_precedence(sources: list[Source]) -> list[Source]:
    """Return the settings files in order of precedence, the highest last."""
    files = [source for source in sources if source.scope != "plugin"]
    return sorted(files, key=lambda source: agent_settings(source.agent).LOUDER.index(source.scope))


def _enabled_plugins(sources: list[Source]) -> dict[str, str]:
    """Return the plugins that are enabled in effect: name → with its marketplace."""
    enabled: dict[str, bool] = {}
    for source in _by_precedence(sources):
        enabled |= source.settings.plugins
    return {name.split("@")[0]: name for name, on in enabled.items() if on}


def check_agents(subject: Subject) -> Iterator[Finding]:
    """Find agents that do not call gitgates at each event that the configuration needs.

    An agent counts if any of its settings has gitgates hooks; if no agent counts, the default one
    does.
    """
    config, repo = subject.config, subject.repo
    sources_of = {agent: find_sources(agent, repo) for agent in AGENTS}
    used = {a: sources for a, sources in sources_of.items() if any(s.own_hooks for s in sources)}
    if config and is_reason(config) and not used:
        everything = (source for sources in sources_of.values() for source in sources)
        events = ", ".join(entry.event for entry in entries(config, DEFAULT_AGENT))
        where = os.path.relpath(agent_host(DEFAULT_AGENT).settings_files("/", {})["project"], "/")
        what = f"no coding agent runs the gates: none calls gitgates at {events}"
        fix = f"gitgates install-hooks --agent {DEFAULT_AGENT}"
        broken = [each.problem(each.broken, _FIX) for each in everything if each.broken]
        yield from broken or [Finding("note", "agent", where, what, fix)]
    for sources in used.values():
        findings = list(_check(subject, sources))
        wrong = {finding.where for finding in findings if finding.severity == "problem"}
        yield from findings
        for source in sources:
            if source.own_hooks and source.location not in wrong:
                what = f"hooks are installed{_policies(config, source.agent)}"
                yield source.note(what)._replace(severity="ok")
    yield from _unread_input(repo)


def _policies(config: Config | None, agent: str) -> str:
    """Return the policies that an agent has an event for; the others are off in it."""
    kinds_of = policies_on(config) if config else {}
    names = [name for name, kinds in kinds_of.items() if any(map(agent_host(agent).has, kinds))]
    return f", for {', '.join(names)}" if names else ""


def _check(subject: Subject, sources: list[Source]) -> Iterator[Finding]:
    """Find what is wrong with an agent that calls gitgates somewhere."""
    config, repo = subject.config, subject.repo
    with_hooks = [source for source in sources if source.own_hooks]
    first = with_hooks[0]
    yield from _disabled(sources, repo)
    for source in with_hooks:
        yield from _program(source, repo)
        yield from _trust(source, repo)
    start_only = agent_host(first.agent).FILES.start_only
    if subject.folder != "." and all(source.scope in start_only for source in with_hooks):
        yield first.note(
            f"{first.title} runs no hooks if it is started here, in `{subject.folder}`: it reads "
            "these settings only in the folder that it is started in",
            f"cd {shlex.quote(repo.root_abs)}, and start it there",
        )
    if config is None:
        return
    needed = entries(config, first.agent)
    called = {hook.event for source in with_hooks for hook in source.own_hooks}
    if missing := [entry.event for entry in needed if entry.event not in called]:
        source = next((s for s in with_hooks if s.scope != "managed"), first)
        yield source.problem(f"does not call gitgates at {', '.join(missing)}", source.install)
    for source in with_hooks:
        yield from _outdated(source, needed)
    yield from _subagents(config, repo, sources)
    if needed:
        yield from map(first.note, agent_needs.limits(config, first.agent))
        # A problem if the ignored settings are the ones with our hooks.
        report = first.problem if first.scope == "user" else first.note
        fix = f"gitgates install-hooks --agent {first.agent}"
        hidden = agents.hidden(first.agent, repo.root_abs, repo.env)
        yield from (report(what, fix) for what in hidden)


def _disabled(sources: list[Source], repo: Repo) -> Iterator[Finding]:
    """Find settings that cannot be read, or that disable the client's hooks or the gates."""
    files = _by_precedence(sources)
    off = [source for source in files if source.settings.off is not None][-1:]
    env = {name: value for source in files for name, value in source.settings.env.items()}
    host = agent_host(sources[0].agent)
    what = f"`{host.OFF.key}` is {host.OFF.value}: {host.TITLE} runs no hooks"
    fix = f"take `{host.OFF.key}` out of it"
    for source in sources:
        if source.broken:
            yield source.problem(source.broken, _FIX)
        if source in off and source.settings.off:
            yield source.problem(what, fix)
        for trouble, cure in source.settings.troubles.items():
            yield source.problem(trouble, cure)
        effective = {k: v for k, v in source.settings.env.items() if env[k] == v}
        if environ.is_off(effective):
            reason = "its `env` sets GITGATES=0: hooks run no gates"
            yield source.problem(reason, "remove GITGATES from its `env`")
    scopes = {source.scope for source in sources if source.own_hooks}
    for path_abs, scope in host.switch_files(repo.root_abs, repo.env).items():
        # A project's switch applies only to the project's hooks.
        if not (scope == "project" and scopes == {"user"}) and is_switched_off(host.NAME, path_abs):
            location = user_file.display_path(path_abs, repo.root_abs)
            yield Finding("problem", "agent", location, what, fix)


def _outdated(source: Source, needed: tuple[Entry, ...]) -> Iterator[Finding]:
    """Find hooks that miss a tool, may be skipped, or time out too early."""
    expected = {entry.event: entry for entry in needed}
    for hook in source.own_hooks:
        at, fix = hook.event, source.install
        entry = expected.get(at, Entry(at, 0, hook.matcher))
        if kind_of(at) in _MATCHED and hook.matcher not in (None, "", "*", entry.matcher):
            writes = f"where install-hooks writes `{entry.matcher or '*'}`"
            yield source.problem(f"its matcher at {at} is `{hook.matcher}`, {writes}", fix)
        if hook.loose:
            yield source.problem(f"calls gitgates at {at}, but {hook.loose}", fix)
        elif hook.timeout_s < entry.timeout_s:
            what = (
                f"{source.title} ends {at} after {hook.timeout_s:g} s, and then lets everything "
                f"through; the gates may take until {entry.timeout_s} s"
            )
            take_out = f"{agent_settings(source.agent).TAKE_PLUGIN_OUT}; then: "
            yield source.problem(what, f"{take_out if source.scope == 'plugin' else ''}{fix}")


def _program(source: Source, repo: Repo) -> Iterator[Finding]:
    """Find hooks whose program is missing or not this gitgates; nothing is started."""
    commands = (hook.command for hook in source.own_hooks)
    for program in dict.fromkeys(agents.program_of(call, source.agent) for call in commands):
        if program is None:
            missing = agents.start(source.agent, "project", repo.env, repo.root_abs)[1]
            what, _, fix = missing.partition("\n  ")
            report = source.note if agents.is_in_path(repo.env) else source.problem
            yield from [report(what, fix)] if what else []
        elif not os.access(program, os.X_OK):
            yield source.problem(f"its program {program} is missing", source.install)
        elif not agents.is_known(program, repo.env):
            what = f"its program {program} is not the gitgates of this machine"
            yield source.problem(what, source.install)


def _trust(source: Source, repo: Repo) -> Iterator[Finding]:
    """Find hooks that the client does not run until a person trusts them."""
    settings = agent_settings(source.agent)
    if not settings.needs_trust(source.scope):
        return
    main_abs = agents.main_settings(source.agent, source.scope, repo)
    path_abs, file = main_abs or source.path_abs, settings.trust_file(repo.env)
    content = user_file.content(path_abs)
    if content != user_file.content(source.path_abs):
        what = f"{source.title} runs the hooks of {main_abs} instead, and that file differs"
        folder_abs = shlex.quote(os.path.dirname(repo.common_dir_abs))
        yield source.problem(what, f"cd {folder_abs} && {source.install}")
        return
    text, settings_text = (
        each.decode("utf-8", "replace") for each in (user_file.content(file), content)
    )
    trusted = settings.is_trusted(text, path_abs, settings_text) if file else None
    if trusted is None:
        what = f"{source.title} runs these hooks only once they are trusted"
        yield source.note(what, settings.TRUST)
    elif not trusted:
        what = f"{source.title} does not trust these hooks, and does not run them"
        yield source.problem(what, settings.TRUST)


def _subagents(config: Config, repo: Repo, sources: list[Source]) -> Iterator[Finding]:
    """Find missing or outdated sub-agents that a policy needs."""
    source = next(source for source in sources if source.own_hooks)
    client, host = agent_host(source.agent), agent_settings(source.agent)
    texts = agents.needed_texts(config, source.agent)
    plugins = _enabled_plugins(sources)
    names = [f"{_OURS}:{plugin_agent()}"] if _OURS in plugins else []
    for scope, folder_abs in client.scopes(repo.root_abs, repo.env).items():
        names += agents.agents_in(folder_abs, source.agent)
        files = agents.plan_files(folder_abs, texts, source.agent) if scope == source.scope else ()
        for file in files:
            if file.state == agents.OLD and file.after is not None:
                path_abs = os.path.join(folder_abs, file.path)
                location = user_file.display_path(path_abs, repo.root_abs)
                yield source.note("is out of date", source.install)._replace(where=location)
    for agent in agents_wanted(config):
        plugin, is_named, _agent = agent.name.partition(":")
        is_others = bool(is_named) and plugin in {*plugins} - {_OURS}  # it may contain the agent
        paths = client.agent_files(agent.name, client.folders_of(repo.root_abs, repo.env))
        is_defined = any(matches_agent((agent.name,), name) for name in names) or is_others
        is_defined |= not host.AGENTS and any(map(os.path.isfile, paths))
        if agent.is_needed and not is_defined:
            fix = source.install
            if source.scope in ("plugin", "managed") or not host.may_define(agent.name):
                folder = os.path.join(client.FILES.folder, host.AGENTS)
                fix = f"define it in {folder}, or name another in {agent.setting}"
            what = f"{client.TITLE} has no agent `{agent.name}`, so nobody can give its decision"
            yield (source.problem if agent.is_required else source.note)(what, fix)


def _unread_input(repo: Repo) -> Iterator[Finding]:
    """Find hook input in the last sessions that has no known agent's format."""
    texts: dict[str, str] = {}
    for path_abs in reversed(sessions(repo.state_abs)[-50:]):
        if b'"unread"' in user_file.content(path_abs):
            texts |= dict.fromkeys(unread_in(Journal(path_abs).read()), path_abs)
    for text, path_abs in texts.items():
        what, fix = text.removeprefix("gitgates: ").rsplit(". ", 1)
        location = user_file.display_path(path_abs, repo.root_abs)
        yield Finding("note", "agent", location, what, fix)
