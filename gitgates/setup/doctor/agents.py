"""Whether an agent calls gitgates at each event that the configuration needs, once, and in time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from gitgates.core import environ
from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import TOOL_EVENTS, kind_of
from gitgates.core.policy import WantedAgent
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.edit import user_file
from gitgates.engine.hooks import matches_agent
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS, DEFAULT_AGENT, agent_host, agent_settings
from gitgates.hosts.definitions import plugin_agent
from gitgates.hosts.settings.base import Entry, HookSettings, InstalledHook, bare, speaks_of_us
from gitgates.proc.call import which
from gitgates.session.needs import about_agents, agents_wanted, is_reason, policies_on
from gitgates.setup.doctor.findings import Subject
from gitgates.setup.install import agent_files, agents
from gitgates.setup.install.agents import entries
from gitgates.verbs.finding import Finding

_OURS = "gitgates"
_MATCHED = (*TOOL_EVENTS, "subagent-start", "subagent-end")
# The beginnings of names by which other code is loaded, or another program or repository is found.
_HARMFUL = (
    *("BASH_ENV", "DYLD_", "LD_", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONWARNINGS"),
    *("GIT_CONFIG", "GIT_DIR", "GIT_EXEC_PATH", "GIT_INDEX_FILE", "GIT_OBJECT", "GIT_WORK_TREE"),
)


def check_agents(subject: Subject) -> list[Finding]:
    """Return the findings about coding agents; none if no agent is configured or installed.

    An agent that does not call us is reported if it does elsewhere; without any, the default is.
    """
    sources_by_agent = {agent: find_sources(agent, subject.repo) for agent in AGENTS}
    used = [
        agent for agent in AGENTS if any(source.own_hooks for source in sources_by_agent[agent])
    ]
    if not used and subject.config and is_reason(subject.config):
        used = [DEFAULT_AGENT]
    return [
        finding
        for agent in AGENTS
        for finding in _check(agent, subject, sources_by_agent[agent], is_used=agent in used)
    ]


# Settings


class Source(Record):
    """One settings file of an agent, or the plugin."""

    agent: str
    scope: str  # project, local, user, managed, plugin
    location: str
    broken: str = ""  # why it cannot be read
    settings: HookSettings = HookSettings()

    @property
    def own_hooks(self) -> tuple[InstalledHook, ...]:
        """The hooks that start gitgates."""
        return self.settings.our_hooks

    @property
    def custom(self) -> dict[str, str]:
        """The custom commands that mention gitgates: event → command."""
        hooks = [hook for hook in self.settings.hooks if not hook.is_ours]
        return {hook.event: hook.command for hook in hooks if speaks_of_us(hook.command)}

    def problem(self, what: str, fix: str = "") -> Finding:
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

    @property
    def uninstall(self) -> str:
        """Return the command that uninstalls the hooks here."""
        if self.scope == "plugin":
            return agent_settings(self.agent).TAKE_PLUGIN_OUT
        return self.install.replace("install-hooks", "uninstall-hooks")


def find_sources(agent: str, repo: Repo) -> list[Source]:
    """Return the settings that there are, nearest first, and the plugin if it is enabled."""
    sources: list[Source] = []
    real_paths: set[str] = set()
    files = agent_host(agent).settings_files(repo.root_abs, repo.env)
    for scope, path_abs in {**files, "managed": agent_settings(agent).MANAGED}.items():
        if os.path.realpath(path_abs) in real_paths or not os.path.lexists(path_abs):
            continue
        real_paths.add(os.path.realpath(path_abs))
        source = Source(agent, scope, user_file.display_path(path_abs, repo.root_abs))
        try:
            settings = agent_settings(agent).read(
                user_file.read(path_abs) or "", source.location, scope
            )
            sources.append(source._replace(settings=settings))
        except GitgatesError as error:
            broken = error.message.removeprefix(f"{source.location}:").lstrip()
            sources.append(source._replace(broken=broken))
    if plugin := enabled_plugins(sources).get(_OURS):
        settings = agent_settings(agent).plugin()
        sources.append(Source(agent, "plugin", f"plugin {plugin}", settings=settings))
    return sources


def by_precedence(sources: list[Source]) -> list[Source]:
    """Return the settings in order of precedence, the highest last; a plugin has none."""
    files = [source for source in sources if source.scope != "plugin"]
    return sorted(files, key=lambda source: agent_settings(source.agent).LOUDER.index(source.scope))


def enabled_plugins(sources: list[Source]) -> dict[str, str]:
    """Return the plugins that the settings enable in effect: name → with its marketplace."""
    enabled: dict[str, bool] = {}
    for source in by_precedence(sources):
        enabled |= source.settings.plugins
    return {name.split("@")[0]: name for name, on in enabled.items() if on}


# Hooks


def _check(agent: str, subject: Subject, sources: list[Source], *, is_used: bool) -> list[Finding]:
    config, env = subject.config, subject.repo.env
    needed = entries(config, agent) if config and is_used else ()
    with_hooks = [source for source in sources if source.own_hooks]
    if not needed and not with_hooks:
        return []
    findings = [*_switches(sources), *_environment(sources, env, is_ours=bool(with_hooks))]
    if needed or config is None:
        findings += _missing(agent, needed, sources, config)
    if config:
        findings += [finding for source in with_hooks for finding in _check_source(source, needed)]
    findings += _duplicates(with_hooks)
    findings += check_wanted_agents(config, subject.repo, sources) if config else []
    trouble = {finding.where for finding in findings if finding.severity == "problem"}
    for source in with_hooks:
        program = list(_program(source, env))
        if not program and source.location not in trouble:
            what = f"hooks are installed{_policies(config, agent)}"
            program = [source.problem(what)._replace(severity="ok")]
        findings += program
    return findings


def _switches(sources: list[Source]) -> Iterator[Finding]:
    """Find what keeps the client from running hooks."""
    switches = [source for source in by_precedence(sources) if source.settings.off is not None]
    if switches and switches[-1].settings.off:
        deciding, host = switches[-1], agent_host(switches[-1].agent)
        what = f"`{host.OFF.key}` is {host.OFF.value}: {host.TITLE} runs no hooks"
        yield deciding.problem(what, f"take `{host.OFF.key}` out of it")
    for source in sources:
        if source.broken:
            yield source.problem(f"cannot be read: {source.broken}", "fix the file")
        for what, fix in source.settings.troubles.items():
            yield source.problem(what, fix)


def _environment(
    sources: list[Source], env: Mapping[str, str], *, is_ours: bool
) -> Iterator[Finding]:
    """Find variables in the `env` of the settings that switch gitgates off or hide it.

    Settings of higher precedence may restore it. Nothing is started with it.
    """
    merged_env = {k: v for source in by_precedence(sources) for k, v in source.settings.env.items()}
    for source in sources:
        effective = {k: v for k, v in source.settings.env.items() if merged_env.get(k) == v}
        if environ.is_off(effective):
            what = "its `env` sets GITGATES=0: hooks run no gates"
            yield source.problem(what, "remove GITGATES from its `env`")
        for gate, name in environ.skipped_gates(effective).items():
            what = f"its `env` sets {name}: hooks skip gate `{gate}`"
            yield source.note(what, f"remove {name} from its `env`")
        harmful = sorted(name for name in effective if name.startswith(_HARMFUL))
        if harmful and is_ours:
            names = ", ".join(harmful)
            what = f"its `env` sets {names}: other code may run instead of the gitgates hooks"
            # Many projects set it for their own tests.
            report = source.note if harmful == ["PYTHONPATH"] else source.problem
            yield report(what, f"remove {names} from its `env`")
        if "PATH" in effective and is_ours and (what := _path_trouble(effective["PATH"], env)):
            yield source.problem(f"its `env` sets PATH, {what}", "remove PATH from it")


def _path_trouble(path: str, env: Mapping[str, str]) -> str:
    try:
        program = which("gitgates", path)
    except OSError:
        return "which does not contain `gitgates`"
    is_ours = agents.is_known(program, env)
    return "" if is_ours else f"where `gitgates` is {program}, not this one"


def _policies(config: Config | None, agent: str) -> str:
    """Return which policies are on in an agent, which it has no event for, and which are off."""
    if config is None:
        return ""
    enabled, host = policies_on(config), agent_host(agent)
    served = [name for name, kinds in enabled.items() if any(map(host.has, kinds))]
    others = {
        "without an event there": [name for name in enabled if name not in served],
        "off": [name for name in about_agents() if name not in enabled],
    }
    exceptions = "".join(f"; {why}: {', '.join(names)}" for why, names in others.items() if names)
    return f", for {', '.join(served)}{exceptions}" if served else exceptions


def _missing(
    agent: str, needed: tuple[Entry, ...], sources: list[Source], config: Config | None
) -> Iterator[Finding]:
    """Find needed events without a hook of ours."""
    own_hooks = {hook.event for source in sources for hook in source.own_hooks}
    custom = {
        event: (source, command) for source in sources for event, command in source.custom.items()
    }
    missing = [entry.event for entry in needed if entry.event not in own_hooks]
    for event in missing:
        if event in custom:
            yield _custom(event, *custom[event])
    lacking = [event for event in missing if event not in custom]
    kinds = {kind_of(event) for event in lacking}
    events = ", ".join(lacking)
    policies = policies_on(config).items() if config else ()
    harmed = ", ".join(
        name for name, kinds_of_policy in policies if kinds.intersection(kinds_of_policy)
    )
    writable = [source for source in sources if source.own_hooks and source.scope != "managed"]
    if events and writable:
        what = f"does not call gitgates at {events} (for {harmed})"
        yield writable[0].problem(what, writable[0].install)
    elif events and not any(source.broken for source in sources):  # else it is to be fixed before
        location = os.path.relpath(agent_host(agent).settings_files("/", {})["project"], "/")
        title = agent_host(agent).TITLE
        what = f"{title} runs none of the gates: it does not call gitgates at {events}"
        yield Finding("problem", "agent", location, what, _install(agent))


def _custom(event: str, source: Source, command: str) -> Finding:
    """Compare a custom command with the one of install-hooks."""
    usual = bare(source.agent)
    _before, is_called, after = command.partition(usual)
    if is_called and not after.strip():
        return source.note(f"a custom hook at {event} mentions gitgates: not checked")
    what = f"runs `{command}` at {event}, where install-hooks writes `{usual}`"
    if is_called:
        what += f": `{after.strip()}` may hide its answer"
    return source.problem(what, f"remove that hook, then: {source.install}")


def _check_source(source: Source, needed: tuple[Entry, ...]) -> Iterator[Finding]:
    """Find hooks that miss a tool or an agent, end before the gates do, or are not needed."""
    expected = {entry.event: entry for entry in needed}
    title = agent_host(source.agent).TITLE
    for hook in source.own_hooks:
        entry = expected.get(hook.event)
        if entry is None:
            continue
        fine = (None, "", "*", entry.matcher)
        if kind_of(hook.event) in _MATCHED and hook.matcher not in fine:
            what = f"its matcher at {hook.event} is `{hook.matcher}`"
            what = f"{what}, where install-hooks writes `{entry.matcher or '*'}`"
            yield source.problem(what, source.install)
        if hook.loose:
            yield source.problem(
                f"calls gitgates at {hook.event}, but {hook.loose}", source.install
            )
        elif hook.timeout_s < entry.timeout_s:
            what = (
                f"{title} ends {hook.event} after {hook.timeout_s:g} s, and then lets everything "
                "through;"
                f" the gates may take until {entry.timeout_s} s"
            )
            instead = f"{source.uninstall}; then: {_install(source.agent)}"
            yield source.problem(what, instead if source.scope == "plugin" else source.install)
    idle = [hook.event for hook in source.own_hooks if hook.event not in expected]
    if idle and source.scope in ("project", "local"):  # others serve more than this repository
        what = f"calls gitgates at {', '.join(dict.fromkeys(idle))}, which is not needed"
        yield source.note(what, source.install if needed else source.uninstall)


def _duplicates(sources: list[Source]) -> Iterator[Finding]:
    """Find events at which we are called by more than one source, or more than once by one."""
    first: dict[str, Source] = {}
    for source in sources:
        events = [hook.event for hook in source.own_hooks]
        both: dict[str, list[str]] = {}
        for event in dict.fromkeys(events):
            both.setdefault(first.setdefault(event, source).location, []).append(event)
        for other in sources:
            if other is not source and other.location in both:
                yield _both(source, other, both[other.location])
        again = sorted({event for event in events if events.count(event) > 1})
        if again:
            what = f"calls gitgates more than once at {', '.join(again)}"
            yield source.problem(what, source.install)._replace(check="twice")


def _both(source: Source, other: Source, events: list[str]) -> Finding:
    """Describe two sources. The same command in two settings files runs once (client 2.1.329)."""
    what = f"installed twice: {other.location} also calls gitgates at {', '.join(events)}"
    finding = source.problem(what, source.uninstall)._replace(check="twice")
    commands = {hook.event: hook.command for hook in source.own_hooks}
    is_same = "plugin" not in (source.scope, other.scope) and all(
        hook.command == commands.get(hook.event, hook.command) for hook in other.own_hooks
    )
    if not (is_same and agent_host(source.agent).SETTINGS.runs_once):
        return finding
    title = agent_host(source.agent).TITLE
    same = f"; {title} runs identical commands once, with the timeout of one of them"
    return finding._replace(severity="note", what=what + same)


def _install(agent: str) -> str:
    return f"gitgates install-hooks --agent {agent}"


def _program(source: Source, env: Mapping[str, str]) -> Iterator[Finding]:
    """Find problems of the programs that our hooks start; nothing is started."""
    commands = (hook.command for hook in source.own_hooks)
    for program in dict.fromkeys(agents.program_of(call, source.agent) for call in commands):
        if program is None:
            what, _, fix = agents.start(source.agent, "project", env)[1].partition("\n  ")
            report = source.note if agents.is_in_path(env) else source.problem
            if what:
                yield report(what, fix)
        elif not os.access(program, os.X_OK):
            yield source.problem(f"its program {program} is missing", source.install)
        elif not agents.is_known(program, env):
            what = f"its program {program} is not the gitgates of this machine"
            yield source.problem(what, source.install)


# Agents that policies work with


def check_wanted_agents(config: Config, repo: Repo, sources: list[Source]) -> Iterator[Finding]:
    """Find missing agents that a policy needs, where gitgates hooks are installed."""
    own_hooks = [source for source in sources if source.own_hooks]
    needed = agents_wanted(config)
    if not own_hooks or not needed:
        return
    found_in = agent_host(own_hooks[0].agent).scopes(repo.root_abs, repo.env)
    folders = {scope: folder for scope, folder in found_in.items() if scope != "local"}
    for scope, folder_abs in folders.items():
        scopes = ("project", "local") if scope == "project" else (scope,)
        for source in [source for source in own_hooks if source.scope in scopes][:1]:
            yield from _check_files(config, folder_abs, source, repo)
    for agent in needed:
        is_defined = _is_defined(agent.name, folders, sources) or _has_file(
            agent.name, sources, repo
        )
        if agent.is_needed and not is_defined:
            yield _missing_agent(agent, own_hooks[0])


def _check_files(config: Config, folder_abs: str, source: Source, repo: Repo) -> Iterator[Finding]:
    """Find files that install-hooks would update."""
    try:
        texts = agent_files.needed_texts(config, source.agent)
        files = agent_files.plan(folder_abs, texts, source.agent)
    except GitgatesError as error:
        yield source.note(error.message, "fix the file")._replace(where=folder_abs)
        return
    for file in files:
        if file.state == agent_files.OLD and file.after is not None:
            location = user_file.display_path(os.path.join(folder_abs, file.path), repo.root_abs)
            what = "is out of date"
            yield source.note(what, source.install)._replace(where=location)


def _is_defined(subagent: str, folders: Mapping[str, str], sources: list[Source]) -> bool:
    agent = sources[0].agent
    names = [
        name for folder_abs in folders.values() for name in agent_files.agents_in(folder_abs, agent)
    ]
    plugins = enabled_plugins(sources)
    if _OURS in plugins:
        names.append(f"{_OURS}:{plugin_agent()}")
    if any(matches_agent((subagent,), name) for name in names):
        return True
    plugin, is_named, _agent = subagent.partition(":")
    return bool(is_named) and plugin != _OURS and plugin in plugins  # its content is unknown


def _has_file(name: str, sources: list[Source], repo: Repo) -> bool:
    """Return whether a file of that name defines it, for hosts that we write no such files for."""
    client, host = agent_host(sources[0].agent), agent_settings(sources[0].agent)
    files = client.agent_files(name, client.folders_of(repo.root_abs, repo.env))
    return not host.AGENTS and any(map(os.path.isfile, files))


def _missing_agent(agent: WantedAgent, source: Source) -> Finding:
    name = agent.name
    client, host = agent_host(source.agent), agent_settings(source.agent)
    what = f"{client.TITLE} has no agent `{name}`, so nobody can give its decision"
    fix = source.install
    if source.scope in ("plugin", "managed") or not host.may_define(name):
        folder = os.path.join(client.FILES.folder, host.AGENTS)
        fix = f"define it in {folder}, or name another in {agent.setting}"
    report = source.problem if agent.is_required else source.note
    return report(what, fix)
