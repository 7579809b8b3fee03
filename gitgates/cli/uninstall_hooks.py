"""`gitgates uninstall-hooks`: remove the hooks of gitgates, and nothing else."""

from __future__ import annotations

import os

import click

from gitgates.cli import agent_hooks
from gitgates.cli.install_hooks import require_fit, show
from gitgates.core import errors
from gitgates.core.errors import StateError
from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.edit.user_file import display_path
from gitgates.files.memory import remove_named
from gitgates.git.repo import Repo
from gitgates.hosts import AGENTS, agent_host
from gitgates.hosts.settings.base import SCOPES
from gitgates.setup.doctor.hooks import list_worktrees
from gitgates.setup.install import githooks
from gitgates.setup.install.hookspath import default_folder, hooks_folder, setting
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
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice([*AGENTS]),
    help="Instead, remove the hooks from this coding agent's settings, and the files and block "
    "in CLAUDE.md or AGENTS.md that gitgates wrote; can be repeated.",
)
@click.option(
    "--purge",
    is_flag=True,
    help="Also remove what gitgates stores: runs, session journals and the message log in the git "
    "folder, and the save points, wherever they are. Refused as long as files are stashed or kept.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="With --agent: which settings to change, as for install-hooks. Default: project.",
)
def command(
    *,
    force: bool,
    agents: tuple[str, ...],
    purge: bool,
    scope: str | None,
) -> int:
    """Uninstall the hooks that install-hooks installed, and restore the previous ones.

    Other hooks are left unchanged. Whatever still runs gates afterwards is reported: agents'
    settings, with the command that removes the hooks there, and other hook managers' files. No
    configuration is needed.

    Exit status 0: done. 64: conflicting options. 73: a hook cannot be written, or stashed work is
    not restored yet. 75: another run is in progress. 78: settings with gitgates hooks have errors,
    and were not changed.
    """
    for_git: dict[str, object] = {"--force": force, "--purge": purge}
    require_fit(for_git, {"--scope": scope}, agents[0] if agents else None)
    repo = current_repo()
    if purge:
        _require_nothing_unrecovered(repo)
    if agents:
        _uninstall_agents(repo, agents, scope or SCOPES[0])
        return errors.OK
    uninstall(repo, force=force)
    _report_remaining(repo)
    if purge:
        _purge(repo)
    elif states := _states(repo):
        names = ", ".join(display_path(path_abs, repo.root_abs) for path_abs in states)
        what = f"its own state remains in {names}"
        _report_left(what, "To remove it: gitgates uninstall-hooks --purge")
    return errors.OK


def _uninstall_agents(repo: Repo, agents: tuple[str, ...], scope: str) -> None:
    for agent in dict.fromkeys(agents):
        agent_hooks.uninstall(repo, agent, scope)
        if not agent_hooks.installed(agent, repo):
            agent_hooks.remove_server(repo, agent)


def uninstall(repo: Repo, *, force: bool) -> None:
    """Remove shims from the hooks folder in use and the default one; print what was done."""
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
    if not any_removed:
        click.echo(f"gitgates: no gitgates hooks in {current.path_abs}")


def _report_remaining(repo: Repo) -> None:
    """Report what still runs gates, and how to remove it."""
    current, *others = list_worktrees(repo)[0]
    folder = current.folder
    files: dict[str, list[str]] = {}
    for (_manager, hook), file in current.calls.items():
        files.setdefault(file, []).append(hook)
    for file, hooks in files.items():
        names = ", ".join(dict.fromkeys(hooks))
        _report_left(f"{file} still runs the gates of {names}", "Remove those lines by hand.")
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
    for agent in AGENTS:
        for scope, path_abs in agent_hooks.installed(agent, repo).items():
            name = display_path(path_abs, repo.root_abs)
            command_ = f"gitgates uninstall-hooks --agent {agent} --scope {scope}"
            _report_left(f"{agent_host(agent).TITLE} still runs the gates, by {name}", command_)


def _our_hooks_in(folder_abs: str) -> list[str]:
    """Return our hooks in a folder."""
    return [hook for hook in _ALL if githooks.is_ours(os.path.join(folder_abs, hook))]


def _report_left(what: str, hint: str) -> None:
    click.echo(f"gitgates: {what}\n  {hint}")


def _states(repo: Repo) -> list[str]:
    """Return the existing state folders of all worktrees."""
    return [path_abs for path_abs in repo.states_abs if os.path.isdir(path_abs)]


def _require_nothing_unrecovered(repo: Repo) -> None:
    """Refuse to remove state that holds unrecovered work.

    Raises: StateError that names the files.
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
    """Remove the state of all worktrees. Raises: LockError if a run is using it."""
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
            if state_abs == repo.shared_state_abs:
                _purge_memory(repo)  # while something still names it
            remove_tree(state_abs)
        except OSError as error:
            place = error.filename or state_abs
            raise StateError(f"{place}: cannot be removed: {error.strerror}") from error
        finally:
            lock.release()
        click.echo(f"{display_path(state_abs, repo.root_abs)}: removed")


def _purge_memory(repo: Repo) -> None:
    """Remove the folder of the save points, or name it. Raises: OSError."""
    folder_abs, why = remove_named(repo)
    if why:
        _report_left(f"{folder_abs} remains: {why}", "It may hold save points: check it by hand.")
    elif folder_abs:
        click.echo(f"{folder_abs}: removed")
