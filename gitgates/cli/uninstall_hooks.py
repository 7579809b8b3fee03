"""`gitgates uninstall-hooks`: remove the hooks of gitgates, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click

from gitgates.cli import agent_hooks, agent_servers
from gitgates.cli.install_hooks import require_fit, show
from gitgates.core import environ, errors
from gitgates.core.errors import StateError
from gitgates.core.lifecycle import GIT_HOOKS, HOOK_POINTS
from gitgates.edit import user_file
from gitgates.edit.user_file import display_path
from gitgates.git.repo import Git, Repo, current_folder
from gitgates.hosts import AGENTS, agent_host
from gitgates.hosts.settings.base import SCOPES
from gitgates.setup.doctor.findings import list_worktrees
from gitgates.setup.install import config_hooks, framework, githooks, managers
from gitgates.setup.install.hookspath import default_folder, hooks_folder, setting
from gitgates.setup.install.managers import FileChange
from gitgates.store.files import remove_tree
from gitgates.store.rescue import Rescue
from gitgates.verbs.repository import current_repo
from gitgates.worktree.locks import Lock
from gitgates.worktree.restored import list_missing

_ALL = tuple(point.name for point in GIT_HOOKS)


@click.command("uninstall-hooks")
@click.option(
    "--force",
    is_flag=True,
    help="Also uninstall from a hooks folder shared with other repositories.",
)
@click.option(
    "--via",
    type=click.Choice(managers.VIA),
    help="Remove the hooks from the configuration of this hook manager only.",
)
@click.option("--pre-commit", is_flag=True, help="Same as --via pre-commit.")
@click.option(
    "--global", "is_global", is_flag=True, help="Remove those in your own configuration of git."
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice([*AGENTS]),
    help="Remove the hooks from the settings of this coding agent instead, with the files and "
    "the block in CLAUDE.md or AGENTS.md that gitgates wrote; can be repeated.",
)
@click.option(
    "--purge",
    is_flag=True,
    help="Also remove what gitgates stores in the git folder: runs, session journals, the "
    "message log. Refused while it holds files that were not restored.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="With --agent: which settings to change, as for install-hooks. Default: project.",
)
def command(  # noqa: PLR0913 - one for each option
    *,
    force: bool,
    via: str | None,
    pre_commit: bool,
    is_global: bool,
    agents: tuple[str, ...],
    purge: bool,
    scope: str | None,
) -> int:
    """Uninstall the hooks of install-hooks, and restore the previous ones.

    Also removes the entries that --via added to files of hook managers. Other hooks are left
    unchanged. Whatever still runs gates afterwards is reported, with the command that removes it.
    No configuration is needed.

    Exit status 0: done. 64: conflicting options. 73: a hook cannot be written, or stashed work is
    not restored yet. 75: another run is in progress. 78: settings with gitgates hooks have errors,
    and were not changed.
    """
    via = via or ("pre-commit" if pre_commit else None)
    for_git: dict[str, object] = {"--force": force, "--via": via, "--purge": purge}
    for_git["--global"] = is_global
    require_fit(for_git, {"--scope": scope}, agents[0] if agents else None)
    if is_global:
        return _uninstall_global()
    repo = current_repo()
    if purge:
        _require_nothing_unrecovered(repo)
    if agents:
        _uninstall_agents(repo, agents, scope or SCOPES[0])
        return errors.OK
    if via:
        if not uninstall_via((via,), repo):
            click.echo(f"gitgates: no gitgates hooks in the files of {via}")
    else:
        uninstall(repo, force=force)
        _report_remaining(repo)
    if purge:
        _purge(repo)
    elif not via and (states := _states(repo)):
        names = ", ".join(display_path(path_abs, repo.root_abs) for path_abs in states)
        what = f"state of earlier runs remains in {names}"
        _report_left(what, "To remove it: gitgates uninstall-hooks --purge")
    return errors.OK


def _uninstall_agents(repo: Repo, agents: tuple[str, ...], scope: str) -> None:
    for agent in dict.fromkeys(agents):
        agent_hooks.uninstall(repo, agent, scope)
        if not agent_hooks.installed(agent, repo):
            agent_servers.remove(repo, agent)


def _uninstall_global() -> int:
    changes = config_hooks.uninstall(Git(current_folder(), environ.read()), config_hooks.GLOBAL)
    for name, what in changes or [("gitgates", "no gitgates hooks in your configuration of git")]:
        click.echo(f"{name}: {what}")
    return errors.OK


def uninstall(repo: Repo, *, force: bool) -> None:
    """Take shims out of the folder that git looks in, and of its usual one; print what was done."""
    any_removed = False
    current = hooks_folder(repo)
    usual = default_folder(repo)
    for folder in (current, usual) if current.path_abs != usual.path_abs else (current,):
        if folder.is_shared and not force:
            if hooks := _our_hooks_in(folder.path_abs):
                what = f"{setting(folder)}: other repositories also run {', '.join(hooks)} there"
                _report_left(what, "To remove them anyway: gitgates uninstall-hooks --force")
            any_removed |= bool(hooks)
            continue
        changes = githooks.uninstall(folder.path_abs, _ALL)
        any_removed |= bool(changes)
        show(changes, repo)
    changes = config_hooks.uninstall(repo.git, config_hooks.LOCAL)
    show(changes, repo)
    any_removed |= bool(changes)
    any_removed |= uninstall_via(managers.VIA, repo)
    if not any_removed:
        click.echo(f"gitgates: no gitgates hooks in {current.path_abs}")


def uninstall_via(names: tuple[str, ...], repo: Repo) -> bool:
    """Remove the entries from managers' files; print and return whether there were any."""
    folder = hooks_folder(repo)
    changes = managers.removals(repo.root_abs, folder, names)
    user_file.require_inside(
        repo.root_abs, *(f"{repo.root_abs}/{change.file}" for change in changes)
    )
    for change in changes:
        path_abs, what = f"{repo.root_abs}/{change.file}", "gitgates hooks"
        agent_hooks.replace(repo, path_abs, change.before, change.after, what=what, how="removed")
        _apply_to_manager(change, repo, folder.path_abs)
    return bool(changes)


def _apply_to_manager(change: FileChange, repo: Repo, folder_abs: str) -> None:
    """Run, or print, the command of a manager after a change of its file."""
    name = os.path.basename(change.file)
    if name.endswith(".json"):
        what = "the hooks written by simple-git-hooks run the gates until it writes them again"
        _report_left(what, managers.next_command("simple-git-hooks", ()))
    if name not in (framework.FILE, "prek.toml"):
        return
    files = [githooks.read_hook(os.path.join(folder_abs, hook)) for hook in _ALL]
    by = {file.hook: file.manager.name for file in files if file.manager}
    if change.after is not None:
        manager = "prek" if name == "prek.toml" or "prek" in by.values() else "pre-commit"
        types = _types(hook for hook in change.hooks if HOOK_POINTS[hook].host == "git")
        what = f"{manager} stays installed for the other hooks in that file"
        _report_left(what, f"If it is no longer needed: {manager} uninstall {types}")
        return
    # Without the file, each of pre-commit's hooks refuses everything, also those that are not ours.
    if hooks := tuple(hook for hook in by if by[hook] == "pre-commit"):
        click.echo(framework.run_pre_commit("uninstall", hooks, repo.env))
    if types := _types(hook for hook in by if by[hook] == "prek"):
        what = "prek's hooks fail without that file"
        _report_left(what, f"To remove them: prek uninstall {types}")


def _types(hooks: Iterable[str]) -> str:
    return " ".join(f"-t {hook}" for hook in hooks)


def _report_remaining(repo: Repo) -> None:
    """Report what still runs gates, and how to remove it."""
    current, *others = list_worktrees(repo)[0]
    folder = current.folder
    files = (
        {framework.FILE: [*current.framework.our_stages]} if current.framework.our_stages else {}
    )
    for _manager, file, hook in managers.entries(repo.root_abs, folder):
        files.setdefault(file, []).append(hook)
    for file, hooks in files.items():
        names = ", ".join(dict.fromkeys(hooks))
        _report_left(f"{file} still runs the gates of {names}", "Remove that by hand.")
    for hook in _ALL:
        path_abs = os.path.join(folder.path_abs, hook)
        if githooks.read_hook(path_abs).kind == "custom":
            what = f"{display_path(path_abs, repo.root_abs)} mentions gitgates"
            _report_left(what, "It is not managed by gitgates: check it by hand.")
    visited = {folder.path_abs, default_folder(repo).path_abs}
    for worktree in others:
        path_abs = worktree.folder.path_abs
        if path_abs not in visited and _our_hooks_in(path_abs):
            what = f"hooks remain in {path_abs}, which the worktree {worktree.repo.root_abs} uses"
            _report_left(what, worktree.command("gitgates uninstall-hooks"))
        visited.add(path_abs)
    remaining = config_hooks.read(repo.git)
    for file_abs in dict.fromkeys(hook.file_abs for hook in remaining.values()):
        names = ", ".join(name for name, hook in remaining.items() if hook.file_abs == file_abs)
        what = f"{display_path(file_abs, repo.root_abs)}, a configuration of git, has {names}"
        _report_left(what, "To remove them for all repositories: gitgates uninstall-hooks --global")
    for agent in AGENTS:
        for scope, path_abs in agent_hooks.installed(agent, repo).items():
            name = display_path(path_abs, repo.root_abs)
            command_ = f"gitgates uninstall-hooks --agent {agent} --scope {scope}"
            _report_left(f"{agent_host(agent).TITLE} runs the gates, as {name} says", command_)


def _our_hooks_in(folder_abs: str) -> list[str]:
    """Return our hooks in a folder."""
    return [hook for hook in _ALL if githooks.is_ours(os.path.join(folder_abs, hook))]


def _report_left(what: str, hint: str) -> None:
    click.echo(f"gitgates: {what}\n  {hint}")


def _states(repo: Repo) -> list[str]:
    """Return the state folders of all worktrees that are there."""
    return [path_abs for path_abs in repo.states_abs if os.path.isdir(path_abs)]


def _require_nothing_unrecovered(repo: Repo) -> None:
    """Refuse to remove state with unrecovered work.

    Raises: StateError that names it.
    """
    paths_abs: list[str] = []
    for state_abs in _states(repo):
        rescue = Rescue(f"{state_abs}/rescue")
        if rescue.is_in_use():
            paths_abs += rescue.texts() or [rescue.folder_abs]
        for folder_abs, _folders, files in os.walk(f"{state_abs}/kept"):
            paths_abs += [os.path.join(folder_abs, name) for name in files]
    for worktree in list_worktrees(repo)[0]:
        paths_abs += [file.second_abs for file in list_missing(worktree.repo) if file.is_replaced]
    if paths_abs:
        names = "\n".join(f"  {path_abs}" for path_abs in paths_abs)
        raise StateError(
            f"there are stashed or kept files; nothing was removed:\n{names}",
            "To list them: gitgates recover --list, in the worktree that they belong to. Copy "
            "what you need, and remove the rest.",
        )


def _purge(repo: Repo) -> None:
    """Remove the state of all worktrees. Raises: LockError where a run is using it."""
    for state_abs in _states(repo):
        lock = Lock(state_abs)
        try:
            is_free = lock.acquire(alone=True)
        except OSError as error:
            what = f"{state_abs}/lock: {error.strerror}; nothing was removed there"
            raise StateError(
                what, f"If no gitgates process is running, remove it: rm -r '{state_abs}/lock'"
            ) from error
        if not is_free:
            raise lock.busy_error()
        try:
            remove_tree(state_abs)
        except OSError as error:
            raise StateError(f"{state_abs}: cannot be removed: {error.strerror}") from error
        finally:
            lock.release()
        click.echo(f"{display_path(state_abs, repo.root_abs)}: removed")
