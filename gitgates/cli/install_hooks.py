"""`gitgates install-hooks`: let git, or a coding agent, run the gates."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from gitgates.cli import agent_hooks
from gitgates.core import errors
from gitgates.core.errors import UsageError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.edit import user_file
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS
from gitgates.hosts.settings.base import SCOPES
from gitgates.setup.install import agents, githooks, hookspath, managers
from gitgates.setup.install.agents import DETECTED
from gitgates.setup.install.framework import gate_in_place
from gitgates.setup.install.hookspath import hooks_folder, remarks, require_usable
from gitgates.setup.install.selection import select
from gitgates.verbs.repository import configuration, current_repo, has_found_nothing

_HELP = "For more information, try --help."


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
    help="Print the lines with which this hook manager runs the gates.",
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
    agents_: tuple[str, ...],
    scope: str | None,
    print_only: bool,
    claude_md: bool,
    agents_md: bool,
    mcp: bool,
    yes: bool,
) -> int:
    """Install the configured hooks into git's hooks folder.

    An existing hook is kept as HOOK.before-gitgates and runs first. pre-merge-commit is installed
    together with pre-commit. Run it again to update the hooks.

    If another hook manager installs these hooks, it may overwrite them. --via prints the lines to
    add to its configuration; once it runs the gates, gitgates' own hooks are removed.

    --agent adds the events that the configuration needs to the agent's settings, and leaves the
    rest unchanged. If the configuration defines no agent hooks, those that gitgates init --agent
    proposes are offered; if git hooks run gates, the guard is installed without them. If the
    configuration lists the gate `review`, a reviewing sub-agent and the command `/gitgates:review`
    are created as well; files not created by gitgates are never overwritten.

    Exit status 0: done. 64: unknown hook, or conflicting options. 73: another hook is in the way,
    or a hook cannot be written. 74: git uses another hooks folder. 78: the configuration, or a file
    to change, has errors, or no hook is configured.
    """
    for_agents = {"--print": print_only, "--mcp": mcp, "--yes": yes}
    for_agents |= {"--claude-md": claude_md, "--agents-md": agents_md}
    for_git: dict[str, object] = {"--hook-type": hook_types, "--force": force, "--via": via}
    require_fit(for_git, {"--scope": scope, **for_agents}, agents_[0] if agents_ else None)
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
    """Add the hooks to the agents' settings; print the changes."""
    files = [file for file, is_wanted in rules_files.items() if is_wanted and not print_only]
    for file in files:
        agent_hooks.write_rules(repo, file, only_check=True)
    selected = agent_hooks.expand(repo, names, scope)
    for agent in selected if mcp else ():
        agent_hooks.require_server(agent, scope)
    for agent in selected:
        agent_hooks.install(repo, agent, scope=scope, print_only=print_only, without_asking=yes)
        if mcp:
            agent_hooks.register_server(repo, agent, print_only=print_only)
    for file in files:
        agent_hooks.write_rules(repo, file)
    for remark in hookspath.drive_remarks(repo.root_abs):
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
    hooks, left_out = select(config, hook_types, offers_init=not has_found_nothing(repo))
    folder = hooks_folder(repo)
    require_usable(folder, force=force)
    user_file.require_inside(repo.root_abs, folder.path_abs)
    present = managers.present(repo.root_abs, folder, hooks)
    changes = githooks.install(folder.path_abs, hooks, force=force)
    gates = {
        path_abs: gate_in_place(path_abs, repo.root_abs, config) if config else ""
        for path_abs, _what in changes
    }
    for path_abs, what in changes:
        text = what.partition(";")[0] if gates[path_abs] else what
        show([(path_abs, "; ".join(filter(None, (text, gates[path_abs]))))], repo)
    for remark in (*remarks(folder, repo), *left_out):
        click.echo(f"gitgates: {remark}")
    for manager, file in present.items():
        if any(gates.values()) and manager in managers.FRAMEWORK:
            continue
        click.echo(
            f"gitgates: {manager} is used here ({file}), and may overwrite these hooks\n"
            f"  To let it run the gates instead: gitgates install-hooks --via {manager}"
        )


def install_via(manager: str, repo: Repo, hook_types: tuple[str, ...]) -> None:
    """Print the lines with which another manager runs the gates, or that it already does.

    Our own hooks are removed only once it does.
    """
    hooks, left_out = select(None if hook_types else configuration(repo), hook_types, manager)
    folder = hooks_folder(repo)
    calls = managers.find_calls(repo.root_abs, folder)
    missing = tuple(hook for hook in hooks if (manager, hook) not in calls)
    if missing:
        for addition in managers.additions(manager, missing, repo.root_abs, folder):
            click.echo(f"Add to {addition.file}, {addition.place}:\n\n{addition.lines}")
    of_git = [hook for hook in hooks if HOOK_POINTS[hook].host == "git"]
    files = [githooks.read_hook(os.path.join(folder.path_abs, hook)) for hook in of_git]
    served = tuple(file.hook for file in files if githooks.is_served(file, manager, calls))
    show(githooks.uninstall(folder.path_abs, served), repo)
    if served:
        click.echo(f"{manager} runs the gates of {', '.join(served)}")
    for remark in dict.fromkeys([*left_out, *hookspath.drive_remarks(repo.root_abs)]):
        click.echo(f"gitgates: {remark}")
    if not agents.is_in_path(repo.env):
        click.echo(f"gitgates: {agents.not_in_path()}")
    if [*served] != of_git:
        command_ = managers.install_command(manager, hooks, folder, repo.root_abs)
        click.echo(
            f"next: {command_}\n"
            f"then: gitgates install-hooks --via {manager}, to check that it runs the gates"
        )


def show(changes: list[tuple[str, str]], repo: Repo) -> None:
    """Print what was done, each hook's path as short as it can be."""
    for path_abs, what in changes:
        click.echo(f"{user_file.display_path(path_abs, repo.root_abs)}: {what}")
