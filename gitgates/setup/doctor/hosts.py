"""What differs from agent to agent: trust, limits of events, agents that do not call gitgates."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from gitgates.core.errors import GitgatesError
from gitgates.edit import user_file
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import HookSettings
from gitgates.session.facts import UnreadEntry
from gitgates.session.installed import is_switched_off
from gitgates.session.journal import KINDS, of_kind
from gitgates.session.needs import needed_events
from gitgates.setup.doctor.agents import Source, find_sources
from gitgates.setup.doctor.findings import Subject
from gitgates.setup.install.agents import detected, hidden, is_personal, limits, main_settings
from gitgates.store.log import Journal, sessions
from gitgates.verbs.finding import Finding

_MOST_SESSIONS = 50


def check_hosts(subject: Subject) -> Iterator[Finding]:
    """Return the findings about agents that have gitgates hooks, and about those that could."""
    sources_by_agent = {agent: find_sources(agent, subject.repo) for agent in AGENTS}
    with_hooks = {
        agent: [source for source in sources if source.own_hooks]
        for agent, sources in sources_by_agent.items()
    }
    for sources in with_hooks.values():
        for source in sources:
            yield from _trust(source, subject)
            yield from _off(source, subject)
        yield from _elsewhere(sources, subject)
    yield from _unread(subject)
    config = subject.config
    if config is None or not needed_events(config):
        return
    for agent, sources in with_hooks.items():
        for what in limits(config, agent) if sources else ():
            yield sources[0].note(what)
        for what in hidden(agent, subject.repo.root_abs, subject.repo.env) if sources else ():
            is_ours = sources[0].scope == "user"  # the settings that are ignored
            yield sources[0].problem(what, _install(agent)) if is_ours else sources[0].note(what)
    if any(with_hooks.values()):
        yield from _others(subject, with_hooks)


def _unread(subject: Subject) -> Iterator[Finding]:
    """Find input of hooks, in the last sessions, in the format of no known agent."""
    texts: dict[str, str] = {}
    for path_abs in reversed(sessions(subject.repo.state_abs)[-_MOST_SESSIONS:]):
        if f'"{KINDS[UnreadEntry]}"'.encode() in user_file.content(path_abs):
            facts = Journal(path_abs).read()
            texts |= {str(entry["text"]): path_abs for entry in of_kind(facts, UnreadEntry)}
    for text, path_abs in texts.items():
        what, fix = text.removeprefix("gitgates: ").rsplit(". ", 1)
        yield Finding(
            "note", "agent", user_file.display_path(path_abs, subject.repo.root_abs), what, fix
        )


def _trust(source: Source, subject: Subject) -> Iterator[Finding]:
    """Find hooks that the client does not run before a person trusts them, or never here."""
    host, settings, repo = agent_host(source.agent), agent_settings(source.agent), subject.repo
    path_abs = host.settings_files(repo.root_abs, repo.env).get(source.scope, "")
    if main_abs := main_settings(source.agent, source.scope, repo):
        path_abs = main_abs
        if [*_read(source, main_abs).our_hooks] != [*source.own_hooks]:
            what = (
                f"{host.TITLE} runs the hooks of {main_abs} instead, and the gitgates hooks "
                "there differ"
            )
            folder_abs = os.path.dirname(repo.common_dir_abs)
            yield source.problem(what, f"cd {shlex.quote(folder_abs)} && {source.install}")
            return
    if not settings.needs_trust(source.scope):
        return
    file = settings.trust_file(repo.env)
    text = user_file.content(file).decode("utf-8", "replace") if file else ""
    settings_text = user_file.content(path_abs).decode("utf-8", "replace")
    trusted = settings.is_trusted(text, path_abs, settings_text) if file else None
    if trusted is None:
        yield source.note(
            f"{host.TITLE} runs these hooks only once they are trusted", settings.TRUST
        )
    elif not trusted:
        what = f"{host.TITLE} does not trust these hooks, and does not run them"
        yield source.problem(what, settings.TRUST)


def _off(source: Source, subject: Subject) -> Iterator[Finding]:
    """Find other files that switch all hooks off."""
    host, repo = agent_host(source.agent), subject.repo
    for path_abs, scope in host.switch_files(repo.root_abs, repo.env).items():
        if scope == "project" and source.scope == "user":
            continue  # it applies to the hooks of the project alone
        if is_switched_off(source.agent, path_abs):
            location = user_file.display_path(path_abs, repo.root_abs)
            of = "of this project" if scope == "project" else "of yours, in any project,"
            what = f"`{host.OFF.key}` is {host.OFF.value}: {host.TITLE} runs no hooks {of}"
            yield source.problem(what, f"take `{host.OFF.key}` out of it")._replace(where=location)


def _elsewhere(sources: list[Source], subject: Subject) -> Iterator[Finding]:
    """Find hooks that a client does not run if it is started in the current folder."""
    source = next(iter(sources), None)
    if source is None or subject.folder == ".":
        return
    host, root_abs = agent_host(source.agent), subject.repo.root_abs
    if any(other.scope not in host.FILES.start_only for other in sources):
        return
    others = [scope for scope in host.FILES.settings if scope not in host.FILES.start_only]
    yield source.note(
        f"{host.TITLE} runs no hooks if it is started here, in `{subject.folder}`: it reads these "
        "settings only in the folder that it is started in",
        f"cd {shlex.quote(root_abs)}, and start it there\n"
        f"or: gitgates install-hooks --agent {source.agent} --scope {others[0]}",
    )


def _read(source: Source, path_abs: str) -> HookSettings:
    try:
        text = user_file.read(path_abs) or ""
        return agent_settings(source.agent).read(text, path_abs, source.scope)
    except GitgatesError:
        return HookSettings()


def _others(subject: Subject, with_hooks: dict[str, list[Source]]) -> Iterator[Finding]:
    """Find agents that are here, and do not call us, or only by another agent's settings."""
    repo = subject.repo
    for agent, why in detected(repo.root_abs, repo.env).items():
        if not with_hooks[agent]:
            what = f"{agent_host(agent).TITLE} is here ({why}), and runs none of the gates"
            if of_others := [source.location for source in _run_by(agent, with_hooks)]:
                what = (
                    f"{agent_host(agent).TITLE} is here ({why}), and runs the hooks of "
                    f"{of_others[0]}, whose answers it does not fully understand"
                )
            yield Finding("note", "agent", repo.root_abs, what, _install(agent))


def _install(agent: str) -> str:
    scope = " --scope user" if is_personal(agent) else ""
    return f"gitgates install-hooks --agent {agent}{scope}"


def _run_by(agent: str, with_hooks: dict[str, list[Source]]) -> list[Source]:
    """Return the settings of a project that an agent runs, though they are another's."""
    runners = {
        other: [runner for runner, *_ in agent_host(other).SETTINGS.run_by] for other in with_hooks
    }
    sources = [
        source for other in with_hooks if agent in runners[other] for source in with_hooks[other]
    ]
    return [source for source in sources if source.scope in ("project", "local")]
