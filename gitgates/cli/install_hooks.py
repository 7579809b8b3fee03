"""`gitgates install-hooks`: let git, or a coding agent, run the gates."""

from __future__ import annotations

from collections.abc import Mapping

import click

from gitgates.cli import agent_hooks, agent_servers
from gitgates.cli.agent_hooks import added, replace
from gitgates.core import environ, errors
from gitgates.core.errors import GitError, UsageError
from gitgates.core.types import Config
from gitgates.edit import user_file
from gitgates.engine.plan import framework_gate
from gitgates.git.repo import Git, Repo, current_folder
from gitgates.hosts import AGENTS
from gitgates.hosts.settings.base import SCOPES
from gitgates.setup.doctor.findings import survey
from gitgates.setup.doctor.twice import left_to_framework, stands_in
from gitgates.setup.install import (
    agents,
    config_hooks,
    framework,
    githooks,
    managers,
    windows_drive,
)
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

_HELP = "For more information, try --help."
_GLOBAL_HOOKS = ("pre-commit", "commit-msg", "pre-push")
_TRUST = (
    "gates run only in repositories that you have trusted\n"
    "  To trust one, in it: gitgates approve gates"
)
_OLDER_GIT = "git 2.54 and later runs these hooks; an older one, such as of an editor, runs none"


@click.command("install-hooks")
@click.option(
    "--hook-type",
    "-t",
    "hook_types",
    multiple=True,
    metavar="HOOK",
    help="Git hook to install; can be repeated. Default: all configured ones.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Install into a hooks folder shared with other repositories, and rename existing "
    "hooks that depend on their own name.",
)
@click.option(
    "--via",
    type=click.Choice(managers.VIA),
    help="Add the hooks to the configuration of this hook manager.",
)
@click.option("--pre-commit", is_flag=True, help="Same as --via pre-commit.")
@click.option(
    "--config",
    "by_config",
    is_flag=True,
    help="Write the hooks into the configuration of git, instead of files. Needs git 2.54.",
)
@click.option(
    "--global",
    "is_global",
    is_flag=True,
    help="Write pre-commit, pre-merge-commit, commit-msg and pre-push, or those of --hook-type, "
    "into your own configuration of git, for all repositories. Gates run only in those that you "
    "have trusted: gitgates approve gates.",
)
@click.option(
    "--agent",
    "agents_",
    multiple=True,
    type=click.Choice([*AGENTS, DETECTED]),
    help="Add the hooks to the settings of this coding agent; can be repeated. detected: all "
    "agents found on this machine.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="With --agent: which settings to change. project: committed with the repository. "
    "local: yours, in this repository. user: yours, in all repositories. Default: project.",
)
@click.option(
    "--print",
    "print_only",
    is_flag=True,
    help="With --agent: print the settings without writing them.",
)
@click.option(
    "--claude-md",
    is_flag=True,
    help="With --agent: also maintain a block with the rules of the gates in CLAUDE.md.",
)
@click.option(
    "--agents-md",
    is_flag=True,
    help="With --agent: also maintain a block with the rules of the gates in AGENTS.md.",
)
@click.option(
    "--mcp",
    is_flag=True,
    help="With --agent: also register `gitgates mcp` for this project.",
)
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="With --agent: if no agent hooks are configured, write the proposed ones without asking.",
)
def command(  # noqa: PLR0913 - one for each option
    hook_types: tuple[str, ...],
    *,
    force: bool,
    via: str | None,
    pre_commit: bool,
    by_config: bool,
    is_global: bool,
    agents_: tuple[str, ...],
    scope: str | None,
    print_only: bool,
    claude_md: bool,
    agents_md: bool,
    mcp: bool,
    yes: bool,
) -> int:
    """Install the configured hooks into the folder that git takes hooks from.

    An existing hook is kept as HOOK.before-gitgates and runs first. pre-merge-commit is installed
    together with pre-commit. Run it again to update the hooks.

    If another hook manager manages these hooks, it may overwrite them. With --via, the gates are
    added to the configuration of that manager; the rest of its file is left unchanged.

    With --config, git 2.54 and later takes the hooks from its configuration; with --global, from
    your own, in all repositories. If a file runs the gates as well, they run once.

    With --agent, the events that the configuration needs are added to the settings of the agent;
    the rest is left unchanged. If the configuration defines no agent hooks, those that gitgates
    init --agent proposes are offered; if git hooks run gates, the guard is installed without them.
    If it lists the gate `review`, a reviewing sub-agent and the command `/gitgates:review` are
    created as well; files not created by gitgates are never overwritten.

    Exit status 0: done. 64: unknown hook, or conflicting options. 73: another hook is in the way,
    or a hook cannot be written. 74: git uses another hooks folder, or is too old. 78: the
    configuration, or a file to change, has errors, or no hook is configured.
    """
    for_agents = {"--print": print_only, "--mcp": mcp, "--yes": yes}
    for_agents |= {"--claude-md": claude_md, "--agents-md": agents_md}
    for_files: dict[str, object] = {"--force": force, "--via": via, "--pre-commit": pre_commit}
    for_git = {"--hook-type": hook_types, "--config": by_config, "--global": is_global, **for_files}
    require_fit(for_git, {"--scope": scope, **for_agents}, agents_[0] if agents_ else None)
    if by_config or is_global:
        return install_by_config(hook_types, for_files, is_global=is_global)
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
    elif via or pre_commit:
        install_via(via or "pre-commit", repo, hook_types)
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
    """Add the hooks to the settings of agents; print the changes."""
    files = [file for file, is_wanted in rules_files.items() if is_wanted and not print_only]
    for file in files:
        agent_hooks.write_rules(repo, file, only_check=True)
    selected = agent_hooks.expand(repo, names, scope)
    for agent in selected if mcp else ():
        agent_servers.require(agent, scope)
    for agent in selected:
        agent_hooks.install(repo, agent, scope=scope, print_only=print_only, without_asking=yes)
        if mcp:
            agent_servers.register(repo, agent, print_only=print_only)
    for file in files:
        agent_hooks.write_rules(repo, file)
    for remark in windows_drive.remarks(repo.root_abs):
        click.echo(f"gitgates: {remark}", err=print_only)


def require_fit(
    for_git: dict[str, object], for_agents: dict[str, object], agent: str | None
) -> None:
    """Refuse options that are mutually exclusive."""
    for name, value in (for_git if agent else for_agents).items():
        if value:
            other = f"cannot be used with --agent {agent}" if agent else "requires --agent"
            raise UsageError(f"{name} {other}", _HELP)


def install(repo: Repo, hook_types: tuple[str, ...], *, force: bool) -> None:
    """Install shims and print what was done."""
    config = None if hook_types else configuration(repo)
    hooks, left_out = select(config, hook_types)
    folder = hooks_folder(repo)
    require_usable(folder, force=force)
    user_file.require_inside(repo.root_abs, folder.path_abs)
    present = managers.present(repo.root_abs, folder, hooks)
    changes = githooks.install(folder.path_abs, hooks, force=force)
    changes += config_hooks.uninstall(repo.git, config_hooks.LOCAL, hooks)
    show([(path_abs, _with_gate(path_abs, what, repo, config)) for path_abs, what in changes], repo)
    for remark in (*remarks(folder, repo), *left_out):
        click.echo(f"gitgates: {remark}")
    for manager, file in present.items():
        gates = {framework_gate(config, hook) for hook in hooks} - {""} if config else set()
        if gates and manager in managers.FRAMEWORK:
            click.echo(
                f"gitgates: {manager} is used here ({file}); gate `{min(gates)}` runs its hooks\n"
                f"  Each runs once, also after: {manager} install"
            )
            continue
        click.echo(
            f"gitgates: {manager} is used here ({file}), and may overwrite these hooks\n"
            "  To let it run the gates instead:"
            f" gitgates install-hooks --via {manager}"
        )


def _with_gate(path_abs: str, what: str, repo: Repo, config: Config | None) -> str:
    """Return what was done with a hook, also where a gate runs in place of the previous one."""
    text = stands_in(path_abs, repo.root_abs, config) if config else ""
    return (
        what.replace(" runs first", f" is kept, but not run: {text.partition(': ')[2]}")
        if text
        else what
    )


def install_via(manager: str, repo: Repo, hook_types: tuple[str, ...]) -> None:
    """Add the entry to the file of another hook manager; print the changes.

    Raises: GitError where core.hooksPath is set, which pre-commit does not work with.
    """
    config = None if hook_types else configuration(repo)
    hooks, left_out = select(config, hook_types, manager)
    folder = hooks_folder(repo)
    if folder.scope and manager == "pre-commit":
        raise GitError(
            f"{setting(folder)}: pre-commit refuses to install hooks while this is set",
            f"Unset it: {unset_command(folder)}",
        )
    changes = managers.additions(manager, hooks, repo.root_abs, folder)
    user_file.require_inside(
        repo.root_abs, *(f"{repo.root_abs}/{change.file}" for change in changes)
    )
    for change in changes:
        how = added(change.hooks, before=bool(managers.hooks_in(change.before or "")))
        path_abs = f"{repo.root_abs}/{change.file}"
        replace(repo, path_abs, change.before, change.after, what="gitgates hooks", how=how)
    # Ours and the manager's would both run the gates.
    show(githooks.uninstall(folder.path_abs, hooks), repo)
    show(config_hooks.uninstall(repo.git, config_hooks.LOCAL, hooks), repo)
    if manager == "pre-commit":
        click.echo(framework.run_pre_commit("install", hooks, repo.env))
    if config and manager in managers.FRAMEWORK:
        worktree = survey(repo).current
        left_out += tuple(
            filter(None, (left_to_framework(worktree, hook, config) for hook in hooks))
        )
    for remark in dict.fromkeys([*left_out, *windows_drive.remarks(repo.root_abs)]):
        click.echo(f"gitgates: {remark}")
    if not agents.is_in_path(repo.env):
        click.echo(f"gitgates: {agents.not_in_path()}")
    if manager != "pre-commit":
        click.echo(f"next: {managers.next_command(manager, hooks, changes[0].file)}")


def install_by_config(
    hook_types: tuple[str, ...], for_files: dict[str, object], *, is_global: bool
) -> int:
    """Write the hooks into the configuration of git; print what was done.

    Raises: UsageError for options of hooks in files.
    """
    for name, value in for_files.items():
        if value:
            option = "--global" if is_global else "--config"
            raise UsageError(f"{name} cannot be used with {option}", _HELP)
    if is_global:
        git = Git(current_folder(), environ.read())
        hooks, left_out = select(None, hook_types or _GLOBAL_HOOKS)
        for section, what in config_hooks.install(git, config_hooks.GLOBAL, hooks):
            click.echo(f"{section}: {what}")
        left_out.append(_TRUST)
    else:
        repo = current_repo()
        hooks, left_out = select(None if hook_types else configuration(repo), hook_types)
        folder = hooks_folder(repo)
        show(config_hooks.install(repo.git, config_hooks.LOCAL, hooks), repo)
        if not folder.is_shared:
            show(githooks.uninstall(folder.path_abs, hooks), repo)
    for remark in (_OLDER_GIT, *left_out):
        click.echo(f"gitgates: {remark}")
    return errors.OK


def show(changes: list[tuple[str, str]], repo: Repo) -> None:
    """Print what was done, each hook's path as short as it can be."""
    for path_abs, what in changes:
        click.echo(f"{user_file.display_path(path_abs, repo.root_abs)}: {what}")
