"""`install-hooks --agent` and `uninstall-hooks --agent`, also for `gitgates mcp`."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable

import click

from gitgates.config.load import load
from gitgates.core import environ
from gitgates.core.errors import ConfigError, GitgatesError, UsageError
from gitgates.core.types import Config
from gitgates.drivers.needs import agents_wanted, gates_on, is_reason
from gitgates.edit import blocks, user_file
from gitgates.edit.user_file import display_path
from gitgates.features.gates.rules import rules_text
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS, agent_host, agent_servers, agent_settings
from gitgates.hosts.settings.base import SCOPES, HookSettings
from gitgates.setup.install import agent_needs, agents
from gitgates.setup.install.agents import AgentFile
from gitgates.verbs.repository import WRITE_A_GATE, configuration

_RULES = "the rules of the gates"
_SERVER = "the entries of the gitgates server"
_PROGRAM = "gitgates"  # by its bare name: a team shares the file
_LEFT = "was edited after gitgates wrote it; left unchanged"
_NO_AGENT_HOOKS = (
    "gitgates: the configuration defines no agent hooks: {} gets only the guard, and no gates "
    "run when it stops\n  To add gates: gitgates init --agent {}"
)
_CHANGES = {
    agents.MISSING: "written",
    agents.OLD: "updated",
    agents.CURRENT: "already exists",
    agents.EDITED: _LEFT,
    agents.FOREIGN: "already exists, was not created by gitgates, and is used unchanged",
    agents.DANGLING: "is a broken symbolic link; left unchanged",
}


def install(
    repo: Repo,
    agent: str,
    *,
    scope: str,
    print_only: bool,
    without_asking: bool,
) -> None:
    """Write the hooks into the settings of a scope, and the files for reviews; print changes."""
    config = load(repo.root_abs) or Config()
    start, missing = agents.start(agent, scope, environ.read(), repo.root_abs)
    if not is_reason(config):
        may_ask = not (without_asking or print_only)
        has_some = bool(agent_needs.entries(config, agent))
        _add_hooks(repo, agent, may_ask=may_ask, yes=without_asking, has_some=has_some)
        config = configuration(repo)
    entries = agent_needs.entries(config, agent)
    settings, host = agent_settings(agent), agent_host(agent)
    path_abs = agents.settings_file(agent, scope, repo.root_abs, environ.read())
    folder_abs = agent_host(agent).scopes(repo.root_abs, environ.read())[scope]
    name = display_path(path_abs, repo.root_abs)
    texts, remarks = _select_files(config, agent, folder_abs, repo)
    files = agents.plan_files(folder_abs, texts, agent)
    if print_only:
        click.echo(settings.add(None, entries, start, name), nl=False)
        for path, text in texts.items():
            file = display_path(os.path.join(folder_abs, path), repo.root_abs)
            click.echo(f"\n{file}:\n\n{text}", nl=False)
        return
    _require_inside(repo, scope, path_abs, *_files_to_write(folder_abs, files))
    before = user_file.read(path_abs)
    present = settings.read(before, name).our_hooks if before else ()
    _require_none_hidden(repo, agent, path_abs, before)
    entries = agent_needs.joined(entries, present) if agents.is_personal(agent) else entries
    after = agents.put(before, entries, start, host=settings, file=name)
    how = added((entry.event for entry in entries), before=bool(present))
    replace(repo, path_abs, before, after, what="gitgates hooks", how=how)
    _write_files(folder_abs, files, repo)
    for remark in remarks:
        click.echo(remark)
    hidden = agents.hidden(agent, repo.root_abs, environ.read())
    for what in (*agent_needs.limits(config, agent), *hidden):
        click.echo(f"gitgates: {what}")
    for what in settings.read(after or "", name, scope).troubles:
        click.echo(f"gitgates: {name}: {what}")
    _report_trust(repo, agent, scope)
    if missing:
        click.echo(f"gitgates: {missing}")
    if scope == "user":
        _report_scope(agent)
    click.echo("next: gitgates doctor --prove")
    for gate in gates_on(config):
        click.echo(
            f"gitgates: if {host.TITLE} asks before it runs commands, allow these in its "
            "permissions:"
            f" {settings.PERMITS.format(f'gitgates {gate}')}"
        )


def _report_trust(repo: Repo, agent: str, scope: str) -> None:
    """Print where a client gets its hooks from, and what it needs to run them."""
    host = agent_host(agent)
    if main := agents.main_settings(agent, scope, repo):
        click.echo(
            f"gitgates: {host.TITLE} runs the hooks of {main} in all worktrees\n"
            "  Install there as well, or commit these hooks and check them out there"
        )
    settings = agent_settings(agent)
    if settings.needs_trust(scope):
        click.echo(
            f"gitgates: {host.TITLE} runs these hooks only once they are trusted\n"
            f"  {settings.TRUST}"
        )
    if sandbox := settings.SANDBOX:
        click.echo(
            f"gitgates: the sandbox of {host.TITLE} does not let `gitgates review done` and other "
            f"verbs write into .git\n  To allow it: {sandbox} {shlex.quote(repo.state_abs)}"
        )


def _report_scope(agent: str) -> None:
    others = " or ".join(scope for scope in agent_host(agent).FILES.settings if scope != "user")
    in_scopes = f" in the scope {others}" if others else ""
    click.echo(
        "gitgates: these settings apply to all your projects, and contain what this repository "
        "needs\n  If other repositories need more, install there"
        f"{in_scopes}"
    )


def expand(repo: Repo, names: tuple[str, ...], scope: str) -> list[str]:
    """Return the named agents, each once; print the detected ones.

    A detected agent without settings for the scope is left out.

    Raises: UsageError if none is left.
    """
    if agents.DETECTED not in names:
        return [*dict.fromkeys(names)]
    selected = dict.fromkeys(name for name in names if name != agents.DETECTED)
    for name, why in agents.detected(repo.root_abs, environ.read()).items():
        click.echo(f"{agent_host(name).TITLE}: {why}")
        if scope in agent_host(name).FILES.settings or name in selected:
            selected[name] = None
            continue
        click.echo(
            f"gitgates: {agents.no_scope(name, scope)}: skipped\n  Install there as well:"
            f" gitgates install-hooks --agent {name} --scope user"
        )
    if not selected:
        raise UsageError(
            "no coding agent found, neither a program nor a settings folder",
            f"Specify one: --agent {' | '.join(AGENTS)}",
        )
    return [*selected]


def write_rules(repo: Repo, file: str, *, only_check: bool = False) -> None:
    """Keep the rules of the gates in a block of a file that agents read.

    Raises: GitgatesError if the block cannot be written.
    """
    path_abs = os.path.join(repo.root_abs, file)
    user_file.require_inside(repo.root_abs, path_abs)
    before = user_file.read(path_abs)
    text = "" if only_check else rules_text(configuration(repo))
    after = blocks.put_rules(before, text, file)
    if not only_check:
        replace(repo, path_abs, before, after, what=_RULES, how="written")


def _add_hooks(repo: Repo, agent: str, *, may_ask: bool, yes: bool, has_some: bool) -> None:
    """Configure what `gitgates init --agent` proposes, if the person agrees.

    Raises: ConfigError if nobody can be asked, or the answer is no; `has_some`: not then, because
    some hooks need no configuration.
    """
    if has_some and not yes and not (may_ask and sys.stdin.isatty()):
        click.echo(_NO_AGENT_HOOKS.format(agent_host(agent).TITLE, agent))
        return
    # Cold: most have configured their hooks, and need no tomlkit.
    from gitgates.cli.init import finish
    from gitgates.config.edit import difference
    from gitgates.setup.discover.propose import propose_agent

    edit = propose_agent(repo.root_abs, repo.env)
    if not edit.adds and not has_some:
        what = "the configuration defines no agent hooks, and no check was found to propose"
        raise ConfigError(what, WRITE_A_GATE)
    proposal = difference(edit).decode("utf-8", "surrogateescape")
    yes, is_asked = yes and edit.adds, edit.adds and may_ask and sys.stdin.isatty()
    if is_asked:
        click.echo(f"The configuration defines no agent hooks. Proposed:\n\n{proposal}")
    if yes or (is_asked and click.confirm(f"Write this to {edit.file}?", default=True)):
        finish(repo.root_abs, edit, dry_run=False)
        return
    if has_some:
        click.echo(_NO_AGENT_HOOKS.format(agent_host(agent).TITLE, agent))
        return
    what = "" if is_asked else f"\n  Proposed:\n\n{proposal}"
    raise ConfigError(
        f"the configuration defines no agent hooks{what}",
        f"To write it: gitgates init --agent {agent}\n  To write and install it:"
        f" gitgates install-hooks --agent {agent} --yes",
    )


def _require_none_hidden(repo: Repo, agent: str, path_abs: str, before: str | None) -> None:
    """Refuse to write settings that would stop others' hooks from running.

    Raises: ConfigError if there are any.
    """
    host = agent_host(agent)
    if not host.FILES.older_settings:
        return
    older_abs = os.path.join(os.path.dirname(path_abs), host.FILES.older_settings)
    older, newer = display_path(older_abs, repo.root_abs), display_path(path_abs, repo.root_abs)
    entries = agent_needs.entries(configuration(repo), agent)
    text = user_file.read(older_abs) or ""
    if events := agent_settings(agent).hidden(text, before, entries, older):
        raise ConfigError(
            f"{older}: has hooks at {', '.join(events)}, which {host.TITLE} no longer runs if "
            f"{newer} has some at the same event",
            f"Move its `hooks` to {newer} first; nothing was changed.",
        )


def uninstall(repo: Repo, agent: str, scope: str) -> None:
    """Remove the hooks from the settings of a scope, the written files and the block of rules."""
    path_abs = agents.settings_file(agent, scope, repo.root_abs, environ.read())
    folder_abs = agent_host(agent).scopes(repo.root_abs, environ.read())[scope]
    name = display_path(path_abs, repo.root_abs)
    files = agents.plan_files(folder_abs, {}, agent)
    _require_inside(repo, scope, path_abs, *_files_to_write(folder_abs, files))
    before = user_file.read(path_abs)
    after = None if before is None else agent_settings(agent).remove(before, name)
    if after == before:
        click.echo(f"{name}: no gitgates hooks")
    else:
        replace(repo, path_abs, before, after, what="gitgates hooks", how="removed")
    others = {
        other_scope: other_abs
        for other_scope, other_abs in installed(agent, repo).items()
        if other_scope != scope
    }
    folders = agent_host(agent).scopes(repo.root_abs, environ.read())
    if folder_abs not in map(folders.get, others):  # else those need them, too
        _write_files(folder_abs, files, repo)
    if scope != "user":
        user_file.remove_empty(os.path.dirname(path_abs))
        user_file.remove_empty(folder_abs)
        user_file.remove_empty(os.path.dirname(folder_abs))  # if they are in a folder of it
    for other_scope, other_abs in others.items():
        click.echo(
            f"gitgates: hooks remain in {display_path(other_abs, repo.root_abs)}\n"
            f"  To remove them: gitgates uninstall-hooks --agent {agent} --scope {other_scope}"
        )
    if not others:
        _remove_rules(repo, agent)


def installed(agent: str, repo: Repo) -> dict[str, str]:
    """Return the settings that contain gitgates hooks: scope → file."""
    files = agent_host(agent).settings_files(repo.root_abs, environ.read())
    return {
        scope: path_abs
        for scope, path_abs in files.items()
        if read_settings(agent, path_abs).our_hooks
    }


def read_settings(agent: str, path_abs: str) -> HookSettings:
    """Return the hooks of a settings file; none if it cannot be read."""
    try:
        return agent_settings(agent).read(user_file.read(path_abs) or "", path_abs)
    except GitgatesError:
        return HookSettings()  # the question was only whether it has our hooks


def _require_inside(repo: Repo, scope: str, *paths_abs: str) -> None:
    """Refuse links that lead out of the repository, before anything is written through one.

    A person's own settings may well be a link to somewhere else.
    """
    if scope != "user":
        user_file.require_inside(repo.root_abs, *paths_abs)


def _files_to_write(folder_abs: str, files: tuple[AgentFile, ...]) -> list[str]:
    """Return the files to write."""
    return [os.path.join(folder_abs, file.path) for file in files if file.state in agents.WRITTEN]


def _select_files(
    config: Config, agent: str, folder_abs: str, repo: Repo
) -> tuple[dict[str, str], list[str]]:
    """Return the configured files in a folder, and messages about sub-agents."""
    texts, host = agents.needed_texts(config, agent), agent_settings(agent)
    existing = agents.agents_in(folder_abs, agent) if texts else {}
    remarks = []
    for subagent in agents_wanted(config) if texts else ():
        path = f"{host.AGENTS}/{subagent.name}.md"
        existing_path = existing.get(subagent.name, path)
        if existing_path != path:
            texts.pop(path, None)
            shown_path = display_path(os.path.join(folder_abs, existing_path), repo.root_abs)
            remarks.append(
                f"{shown_path}: defines the agent `{subagent.name}`, and is used unchanged"
            )
        elif not host.may_define(subagent.name):
            remarks.append(
                f"gitgates: no file written for the reviewer `{subagent.name}`: a plugin, or "
                f"{agent_host(agent).TITLE} itself, must provide it"
            )
    return texts, remarks


def _write_files(folder_abs: str, files: tuple[AgentFile, ...], repo: Repo) -> None:
    """Write missing and outdated files, remove unwanted ones; print changes.

    Raises: StateError if a file cannot be written.
    """
    for file in files:
        is_wanted = file.after is not None
        if file.state == agents.OLD or (is_wanted and file.state == agents.MISSING):
            agents.write_file(folder_abs, file)
        elif not is_wanted and file.state != agents.EDITED:
            continue
        change = _CHANGES[file.state] if is_wanted or file.state != agents.OLD else "removed"
        click.echo(f"{display_path(os.path.join(folder_abs, file.path), repo.root_abs)}: {change}")


def _remove_rules(repo: Repo, agent: str) -> None:
    """Remove our block from the files that no agent with our hooks reads any more."""
    still_read = {AGENTS[name].rules for name in AGENTS if installed(name, repo)}
    for file in {AGENTS[name].rules: None for name in (agent, *AGENTS)}:
        path_abs = os.path.join(repo.root_abs, file)
        if file in still_read or blocks.RULES.encode() not in user_file.content(path_abs):
            continue
        before = user_file.read(path_abs)
        after = None if before is None else blocks.without(before, file)
        if after != before:
            user_file.require_inside(repo.root_abs, path_abs)
            replace(repo, path_abs, before, after, what=_RULES, how="removed")


def replace(
    repo: Repo, path_abs: str, before: str | None, after: str | None, *, what: str, how: str
) -> None:
    """Replace a file if that changes it; print whether it did."""
    outcome = f"{what} are already up to date"
    if after != before:
        user_file.replace(path_abs, before, after)
        outcome = f"removed; it contained only {what}" if after is None else f"{what} were {how}"
    click.echo(f"{display_path(path_abs, repo.root_abs)}: {outcome}")


def added(hooks: Iterable[str], *, before: bool) -> str:
    """Return whether hooks were added or updated, and which; `before`: the file had some."""
    return f"{'updated' if before else 'added'}: {', '.join(hooks)}"


def require_server(agent: str, scope: str) -> None:
    """Check that the server can be registered, before anything is written.

    Raises: UsageError.
    """
    servers = agent_servers(agent)
    if servers is None:
        raise UsageError(f"{agent_host(agent).TITLE} has no file to register a server in")
    if scope != SCOPES[0]:
        raise UsageError(
            f"--mcp registers the server for the project, and cannot be used with --scope {scope}",
            f"Instead, run: {servers.OTHER_SCOPES.format(scope=scope)}",
        )


def register_server(repo: Repo, agent: str, *, print_only: bool) -> None:
    """Register the server and print the changes, or only print what would be written."""
    servers = agent_servers(agent)
    if servers is None:
        return
    if print_only:
        click.echo(f"\n{servers.FILE}:\n\n{servers.add(None, _PROGRAM, servers.FILE)}", nl=False)
        return
    path_abs = os.path.join(repo.root_abs, servers.FILE)
    user_file.require_inside(repo.root_abs, path_abs)
    before = user_file.read(path_abs)
    after = servers.add(before, _PROGRAM, servers.FILE)
    replace(repo, path_abs, before, after, what=_SERVER, how="added")
    if importlib.util.find_spec("mcp") is None:
        click.echo(
            "gitgates: `gitgates mcp` needs a package that is not installed\n"
            "  Install it: pip install 'gitgates[mcp]'"
        )


def remove_server(repo: Repo, agent: str) -> None:
    """Unregister the server, and print that it was removed."""
    servers = agent_servers(agent)
    if servers is None:
        return
    path_abs = os.path.join(repo.root_abs, servers.FILE)
    before = user_file.read(path_abs)
    after = None if before is None else servers.remove(before, servers.FILE)
    if after != before:
        user_file.require_inside(repo.root_abs, path_abs)
        replace(repo, path_abs, before, after, what=_SERVER, how="removed")
