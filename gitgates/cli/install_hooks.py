"""`gitgates install-hooks`: let git, or a coding agent, run the gates."""

from __future__ import annotations

from collections.abc import Mapping

import click

from gitgates.cli import agent_hooks, agent_servers
from gitgates.cli.agent_hooks import added, replace
from gitgates.core import errors
from gitgates.core.errors import GitError, UsageError
from gitgates.core.types import Config
from gitgates.edit import user_file
from gitgates.engine.plan import framework_gate
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS
from gitgates.hosts.settings.base import SCOPES
from gitgates.setup.doctor.findings import survey
from gitgates.setup.doctor.twice import left_to_framework, stands_in
from gitgates.setup.install import agents, framework, githooks, managers
from gitgates.setup.install.agents import DETECTED
from gitgates.setup.install.hookspath import (
    hooks_folder,
    remarks,
    require_usable,
    setting,
    unset_command,
)
from gitgates.setup.install.selection import select
from gitgates.verbs.repository import configuration, current_repo


@click.command("install-hooks")
@click.option(
    "--hook-type",
    "-t",
    "hook_types",
    multiple=True,
    metavar="HOOK",
    help="A hook of git to install; may be given again. Default: all that are configured.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Install into a hooks folder that other repositories share, and keep a hook under another "
    "name that asks for its own.",
)
@click.option(
    "--via",
    type=click.Choice(managers.VIA),
    help="Let this hook manager run them: add our hooks to its own file.",
)
@click.option("--pre-commit", is_flag=True, help="The same as --via pre-commit.")
@click.option(
    "--agent",
    "agents_",
    multiple=True,
    type=click.Choice([*AGENTS, DETECTED]),
    help="Let this coding agent run them: add our hooks to its settings; may be given again. "
    "detected: those whose program or folder is here.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="With --agent: whose settings. project: shared with the repository. local: yours, here. "
    "user: yours, everywhere. Default: project.",
)
@click.option("--print", "print_only", is_flag=True, help="With --agent: print it, write nothing.")
@click.option(
    "--claude-md",
    is_flag=True,
    help="With --agent: keep the rules of the gates in a block of CLAUDE.md, too.",
)
@click.option(
    "--agents-md",
    is_flag=True,
    help="With --agent: keep the rules of the gates in a block of AGENTS.md, too.",
)
@click.option(
    "--mcp",
    is_flag=True,
    help="With --agent: register `gitgates mcp` for this project, too.",
)
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="With --agent: configure what is proposed where no hook of an agent is, without asking.",
)
def command(  # noqa: PLR0913 - one for each option
    hook_types: tuple[str, ...],
    *,
    force: bool,
    via: str | None,
    pre_commit: bool,
    agents_: tuple[str, ...],
    scope: str | None,
    print_only: bool,
    claude_md: bool,
    agents_md: bool,
    mcp: bool,
    yes: bool,
) -> int:
    """Install the configured hooks into the folder that git takes hooks from.

    A hook that is there already is kept as HOOK.before-gitgates and runs first. With pre-commit,
    pre-merge-commit is installed, too. Done again, it brings the hooks up to date.

    Where another hook manager writes these hooks, it may write them anew without ours. With --via,
    its own file gets an entry that runs the gates; every other byte of it stays as it is.

    For an agent, its settings get the events that the configuration needs; all else in them stays
    as it is, byte for byte. Where it has no hook of an agent, those that gitgates init --agent
    proposes are offered; where git's hooks run gates, the guard is installed without them, too.
    Where it lists the gate `review`, a sub-agent that reviews and the command `/gitgates:review`
    are written beside them, and never over a file that is not ours.

    Exit status 0: done. 64: no such hook, or options that do not go together. 73: a hook is in the
    way, or cannot be written. 74: git looks for hooks elsewhere. 78: the configuration, or a file
    that is to be changed, has problems, or no hook is named.
    """
    for_agents = {"--print": print_only, "--mcp": mcp, "--yes": yes}
    for_agents |= {"--claude-md": claude_md, "--agents-md": agents_md}
    require_fit(
        {"--hook-type": hook_types, "--force": force, "--via": via, "--pre-commit": pre_commit},
        {"--scope": scope, **for_agents},
        agents_[0] if agents_ else None,
    )
    via = via or ("pre-commit" if pre_commit else None)
    repo = current_repo()
    if agents_:
        install_for_agents(
            repo,
            agents_,
            scope=scope or SCOPES[0],
            print_only=print_only,
            rules_files={"CLAUDE.md": claude_md, "AGENTS.md": agents_md},
            mcp=mcp,
            yes=yes,
        )
    elif via:
        install_via(via, repo, hook_types)
    else:
        install(repo, hook_types, force=force)
    return errors.OK


def install_for_agents(  # noqa: PLR0913 - one for each option
    repo: Repo,
    names: tuple[str, ...],
    *,
    scope: str,
    print_only: bool,
    rules_files: Mapping[str, bool],
    mcp: bool,
    yes: bool,
) -> None:
    """Add our hooks to the settings of agents; print what was done."""
    files = [file for file, is_wanted in rules_files.items() if is_wanted and not print_only]
    for file in files:
        agent_hooks.write_rules(repo, file, only_check=True)
    wanted = agent_hooks.expand(repo, names, scope)
    for agent in wanted if mcp else ():
        agent_servers.require(agent, scope)
    for agent in wanted:
        agent_hooks.install(repo, agent, scope=scope, print_only=print_only, without_asking=yes)
        if mcp:
            agent_servers.register(repo, agent, print_only=print_only)
    for file in files:
        agent_hooks.write_rules(repo, file)


def require_fit(
    for_git: dict[str, object], for_agents: dict[str, object], agent: str | None
) -> None:
    """Refuse options that exclude each other."""
    for name, value in (for_git if agent else for_agents).items():
        if value:
            other = f"does not go with --agent {agent}" if agent else "goes with --agent only"
            raise UsageError(f"{name} {other}", "See the list of options: --help")


def install(repo: Repo, hook_types: tuple[str, ...], *, force: bool) -> None:
    """Install shims and print what was done."""
    config = None if hook_types else configuration(repo)
    hooks, left_out = select(config, hook_types)
    folder = hooks_folder(repo)
    require_usable(folder, force=force)
    user_file.require_inside(repo.root_abs, folder.path_abs)
    found = managers.present(repo.root_abs, folder, hooks)
    done = githooks.install(folder.path_abs, hooks, force=force)
    show([(path_abs, _with_gate(path_abs, what, repo, config)) for path_abs, what in done], repo)
    for remark in (*remarks(folder, repo), *left_out):
        click.echo(f"gitgates: {remark}")
    for manager, file in found.items():
        gates = {framework_gate(config, hook) for hook in hooks} - {""} if config else set()
        if gates and manager in managers.FRAMEWORK:
            click.echo(
                f"gitgates: {manager} is used here ({file}); gate `{min(gates)}` runs its hooks\n"
                f"  Each runs once, also after: {manager} install"
            )
            continue
        click.echo(
            f"gitgates: {manager} is used here ({file}), and may write its hooks over ours\n"
            f"  Let it run the gates instead: gitgates install-hooks --via {manager}"
        )


def _with_gate(path_abs: str, what: str, repo: Repo, config: Config | None) -> str:
    """Return what was done with a hook, also where a gate runs in place of the previous one."""
    text = stands_in(path_abs, repo.root_abs, config) if config else ""
    return (
        what.replace(" runs first", f" is kept, and not run: {text.partition(': ')[2]}")
        if text
        else what
    )


def install_via(manager: str, repo: Repo, hook_types: tuple[str, ...]) -> None:
    """Add our entry to the file of another hook manager; print what was done.

    Raises: GitError where core.hooksPath is set, which pre-commit does not work with.
    """
    config = None if hook_types else configuration(repo)
    hooks, left_out = select(config, hook_types, manager)
    folder = hooks_folder(repo)
    if folder.scope and manager == "pre-commit":
        raise GitError(
            f"{setting(folder)}: pre-commit installs nothing while that is set",
            f"Unset it: {unset_command(folder)}",
        )
    changes = managers.additions(manager, hooks, repo.root_abs, folder)
    user_file.require_inside(repo.root_abs, *(f"{repo.root_abs}/{one.file}" for one in changes))
    for change in changes:
        how = added(change.hooks, before=bool(managers.hooks_in(change.before or "")))
        path_abs = f"{repo.root_abs}/{change.file}"
        replace(repo, path_abs, change.before, change.after, what="our hooks", how=how)
    # Ours and the manager's would both run the gates.
    show(githooks.uninstall(folder.path_abs, hooks), repo)
    if manager == "pre-commit":
        click.echo(framework.run_pre_commit("install", hooks, repo.env))
    if config and manager in managers.FRAMEWORK:
        here = survey(repo).here
        left_out += tuple(filter(None, (left_to_framework(here, hook, config) for hook in hooks)))
    for one in dict.fromkeys(left_out):
        click.echo(f"gitgates: {one}")
    if not agents.is_in_path(repo.env):
        click.echo(f"gitgates: {agents.not_in_path()}")
    if manager != "pre-commit":
        click.echo(f"next: {managers.next_command(manager, hooks, changes[0].file)}")


def show(done: list[tuple[str, str]], repo: Repo) -> None:
    """Print what was done, each hook's path as short as it can be."""
    for path_abs, what in done:
        click.echo(f"{user_file.shown(path_abs, repo.root_abs)}: {what}")
