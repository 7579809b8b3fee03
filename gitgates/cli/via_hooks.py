"""`install-hooks --via` and `uninstall-hooks --via`: another hook manager runs the gates."""

from __future__ import annotations

import os

import click

from gitgates.cli.install_hooks import show
from gitgates.cli.places import configuration
from gitgates.errors import GitError
from gitgates.install import framework, githooks, own_file, selection, via
from gitgates.install.hookspath import hooks_folder, setting, unset_command
from gitgates.install.managers import FRAMEWORK, recognise
from gitgates.lifecycle import HOOK_POINTS
from gitgates.proc.spawn import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.install.via import Change


def install(manager: str, repo: Repo, git: Git, hook_types: tuple[str, ...]) -> None:
    """Add our entry to a manager's file; print what was done.

    Raises: GitError where core.hooksPath is set, which pre-commit does not work with.
    """
    hooks, left_out = _wanted(manager, repo, hook_types)
    folder = hooks_folder(git, repo)
    if folder.scope and manager == "pre-commit":
        raise GitError(
            f"{setting(folder)}: pre-commit installs nothing while that is set",
            f"Unset it: {unset_command(folder)}",
        )
    changes = via.additions(manager, hooks, repo.root_abs, folder)
    _require_inside(repo, changes)
    for change in changes:
        if change.after == change.before:
            click.echo(f"{change.file}: our hooks are there already")
            continue
        own_file.replace(os.path.join(repo.root_abs, change.file), change.before, change.after)
        how = "brought up to date" if via.hooks_in(change.before or "") else "added"
        click.echo(f"{change.file}: our hooks were {how}: {', '.join(change.hooks)}")
    # Ours and the manager's would both run the gates.
    show(githooks.uninstall(folder.path_abs, hooks), repo)
    if manager == "pre-commit":
        click.echo(framework.run_pre_commit("install", hooks, git.env))
    for one in left_out:
        click.echo(f"gitgates: {one}")
    _say_where_gitgates_is(git)
    if manager != "pre-commit":
        click.echo(f"next: {via.next_command(manager, hooks, changes[0].file)}")


def uninstall(managers: tuple[str, ...], repo: Repo, git: Git) -> bool:
    """Take our entries out of managers' files; print what was done, and return whether it was."""
    folder = hooks_folder(git, repo)
    changes = via.removals(repo.root_abs, folder, managers)
    _require_inside(repo, changes)
    for change in changes:
        own_file.replace(os.path.join(repo.root_abs, change.file), change.before, change.after)
        gone = "removed; only our hooks were in it"
        click.echo(f"{change.file}: {gone if change.after is None else 'our hooks were taken out'}")
        _say_after(change, git, folder.path_abs)
    return bool(changes)


def _require_inside(repo: Repo, changes: Sequence[Change]) -> None:
    paths_abs = [os.path.join(repo.root_abs, change.file) for change in changes]
    own_file.require_inside(repo.root_abs, *paths_abs)


def _wanted(
    manager: str, repo: Repo, hook_types: tuple[str, ...]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the hooks that a manager can run for us, and what to say of the others."""
    config = None if hook_types else configuration(repo)
    if manager not in FRAMEWORK:
        found = selection.named(hook_types) if config is None else selection.configured(config)
        unknown = set(found.hooks) - set(via.HUSKYS) if manager == "husky" else set()
        left_out = [f"`{hook}` is no hook of husky: left out" for hook in sorted(unknown)]
        return tuple(h for h in found.hooks if h not in unknown), [*found.left_out, *left_out]
    stages = framework.stages(config, hook_types)
    points = [HOOK_POINTS[hook.name] for hook in (config.hooks if config else ())]
    return stages, [
        f"`{point.name}` is no stage of {manager}: left out"
        for point in points
        if point.host == "git" and not point.framework
    ]


def _say_after(change: Change, git: Git, folder_abs: str) -> None:
    """Say, or do, what a manager needs after a change of its file."""
    name = os.path.basename(change.file)
    if name in (".pre-commit-config.yaml", "prek.toml"):
        found = _installed(folder_abs)
        manager = "prek" if name == "prek.toml" or "prek" in found.values() else "pre-commit"
        if change.after is not None:
            hooks = [hook for hook in change.hooks if HOOK_POINTS[hook].host == "git"]
            click.echo(
                f"gitgates: {manager} stays installed, for what else is in that file\n"
                f"  Where that needs it no more: {manager} uninstall {_types(hooks)}"
            )
            return
        # Without the file, each hook of theirs refuses everything, also where it is none of ours.
        if theirs := tuple(hook for hook, by in found.items() if by == "pre-commit"):
            click.echo(framework.run_pre_commit("uninstall", theirs, git.env))
        if theirs := tuple(hook for hook, by in found.items() if by == "prek"):
            click.echo(
                "gitgates: prek's hooks refuse everything without that file\n"
                f"  Take them out: prek uninstall {_types(theirs)}"
            )
    elif name.endswith(".json"):
        click.echo(
            "gitgates: the hooks that simple-git-hooks has written run the gates until it writes "
            f"them anew\n  {via.next_command('simple-git-hooks', ())}"
        )


def _installed(folder_abs: str) -> dict[str, str]:
    """Return the hooks that pre-commit or prek have installed, each with which of the two."""
    points = [point.name for point in HOOK_POINTS.values() if point.host == "git"]
    found = {hook: recognise(own_file.content(os.path.join(folder_abs, hook))) for hook in points}
    return {hook: by.name for hook, by in found.items() if by and by.name in FRAMEWORK}


def _types(hooks: Sequence[str]) -> str:
    return " ".join(f"-t {hook}" for hook in hooks)


def _say_where_gitgates_is(git: Git) -> None:
    try:
        which("gitgates", git.env.get("PATH", os.defpath))
    except OSError:
        click.echo(
            "gitgates: there is no `gitgates` in the PATH, where these hooks look for it\n"
            "  Put it there, for example with: pipx install gitgates"
        )
