"""`install-hooks --pre-commit` and `uninstall-hooks --pre-commit`."""

from __future__ import annotations

import os

import click

from gitgates.cli.install_hooks import show
from gitgates.cli.places import configuration
from gitgates.errors import GitError
from gitgates.install import block, framework, githooks
from gitgates.install.hookspath import hooks_folder, setting, unset_command
from gitgates.lifecycle import HOOK_POINTS
from gitgates.system.spawn import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git
    from gitgates.system.roots import Roots


def install(roots: Roots, git: Git, hook_types: tuple[str, ...]) -> None:
    """Let the pre-commit framework run the gates; print what was done.

    Raises: GitError where core.hooksPath is set, which pre-commit does not work with.
    """
    config = None if hook_types else configuration(roots)
    stages = framework.stages(config, hook_types)
    folder = hooks_folder(git, roots)
    if folder.scope:
        raise GitError(
            f"{setting(folder)}: pre-commit installs nothing while that is set",
            f"Unset it: {unset_command(folder)}",
        )
    _put_block(roots.root_abs, stages)
    # Ours and pre-commit's would both run the gates.
    show(githooks.uninstall(folder.path_abs, stages), roots)
    click.echo(framework.run_pre_commit("install", stages, git.env))
    for hook in config.hooks if config else ():
        point = HOOK_POINTS[hook.name]
        if point.host == "git" and not point.framework:
            click.echo(f"gitgates: `{hook.name}` is no stage of pre-commit: left out")
    _say_where_gitgates_is(git)


def uninstall(roots: Roots, git: Git) -> None:
    """Take our hooks out of the framework's configuration; print what was done."""
    before = framework.read(roots.root_abs)
    after = block.without(before or "")
    if before is None or after == before:
        click.echo(f"{block.FILE}: no hooks of ours")
        return
    stages = block.stages_in(before)
    framework.write(roots.root_abs, after)
    if after is None:
        click.echo(f"{block.FILE}: removed; only our hooks were in it")
        click.echo(framework.run_pre_commit("uninstall", stages, git.env))
        return
    click.echo(f"{block.FILE}: our hooks were taken out")
    types = " ".join(f"-t {stage}" for stage in stages if HOOK_POINTS[stage].host == "git")
    click.echo(
        "gitgates: pre-commit stays installed, for what else is in that file\n"
        f"  Where that needs it no more: pre-commit uninstall {types}"
    )


def _put_block(root_abs: str, stages: tuple[str, ...]) -> None:
    before = framework.read(root_abs)
    after = block.put(before, stages)
    if after == before:
        click.echo(f"{block.FILE}: our hooks are there already")
        return
    framework.write(root_abs, after)
    how = "brought up to date" if before and block.stages_in(before) else "added"
    click.echo(f"{block.FILE}: our hooks were {how}: {', '.join(stages)}")


def _say_where_gitgates_is(git: Git) -> None:
    try:
        which("gitgates", git.env.get("PATH", os.defpath))
    except OSError:
        click.echo(
            "gitgates: there is no `gitgates` in the PATH, where these hooks look for it\n"
            "  Put it there, for example with: pipx install gitgates"
        )
