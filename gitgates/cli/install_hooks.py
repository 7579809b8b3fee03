"""`gitgates install-hooks`: let git run the gates."""

from __future__ import annotations

import os

import click

from gitgates import errors
from gitgates.cli.places import configuration, here
from gitgates.install import githooks, selection
from gitgates.install.hookspath import hooks_folder, remarks, require_usable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.install.githooks import Done
    from gitgates.system.git import Git
    from gitgates.system.roots import Roots


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
    help="Install into a hooks folder that other repositories share, and number a kept hook that "
    "is in the way.",
)
@click.option(
    "--pre-commit",
    is_flag=True,
    help="Let the pre-commit framework run them: add our hooks to .pre-commit-config.yaml, and run "
    "pre-commit install.",
)
def command(hook_types: tuple[str, ...], *, force: bool, pre_commit: bool) -> int:
    """Install the configured hooks into the folder that git takes hooks from.

    A hook that is there already is kept as HOOK.before-gitgates and runs first. With pre-commit,
    pre-merge-commit is installed, too. Done again, it brings the hooks up to date.

    Exit status 0: done. 64: no such hook. 73: a hook is in the way, or cannot be written. 74: git
    looks for hooks elsewhere. 78: the configuration has problems, or names no hook.
    """
    roots, git = here()
    if pre_commit:
        from gitgates.cli import framework_hooks  # loads yaml

        framework_hooks.install(roots, git, hook_types)
        return errors.OK
    install(roots, git, hook_types, force=force)
    return errors.OK


def install(roots: Roots, git: Git, hook_types: tuple[str, ...], *, force: bool) -> None:
    """Install shims and print what was done."""
    wanted = (
        selection.named(hook_types) if hook_types else selection.configured(configuration(roots))
    )
    folder = hooks_folder(git, roots)
    require_usable(folder, force=force)
    done = githooks.install(folder.path_abs, wanted.hooks, force=force)
    show(done, roots)
    for remark in (*remarks(folder, roots), *wanted.left_out):
        click.echo(f"gitgates: {remark}")


def show(done: list[Done], roots: Roots) -> None:
    """Print what was done, each hook's path as short as it can be."""
    for one in done:
        path = os.path.relpath(one.shim_abs, roots.root_abs)
        shown = one.shim_abs if path.startswith("..") else path
        click.echo(f"{shown}: {one.what}")
