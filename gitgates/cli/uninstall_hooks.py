"""`gitgates uninstall-hooks`: take our hooks out again, and nothing else."""

from __future__ import annotations

import os

import click

from gitgates import errors
from gitgates.cli import via_hooks
from gitgates.cli.install_hooks import require_fit, show
from gitgates.cli.places import here
from gitgates.install import githooks
from gitgates.install.agents import SCOPES
from gitgates.install.hookspath import default_folder, hooks_folder, setting
from gitgates.install.via import NAMES as MANAGERS
from gitgates.lifecycle import GIT_HOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.install.hookspath import HooksFolder
    from gitgates.system.git import Git
    from gitgates.system.roots import Roots

_ALL = tuple(point.name for point in GIT_HOOKS)


@click.command("uninstall-hooks")
@click.option(
    "--force", is_flag=True, help="Also from a hooks folder that other repositories share."
)
@click.option(
    "--via",
    type=click.Choice(MANAGERS),
    help="Take our hooks out of this hook manager's file, and nothing else.",
)
@click.option("--pre-commit", is_flag=True, help="The same as --via pre-commit.")
@click.option(
    "--agent",
    type=click.Choice(["claude"]),
    help="Take our hooks out of this coding agent's settings instead, our files, and our block in "
    "CLAUDE.md.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="With --agent: whose settings, as for install-hooks. Default: project.",
)
def command(
    *, force: bool, via: str | None, pre_commit: bool, agent: str | None, scope: str | None
) -> int:
    """Take out the hooks that install-hooks put there, and give back those that were before.

    So with the entries that --via added to the files of hook managers. Hooks that are not ours stay
    as they are. No configuration is needed.

    Exit status 0: none of ours is left here. 64: options that do not go together. 73: a hook cannot
    be written. 78: settings that hold our hooks have problems, and were left alone.
    """
    via = via or ("pre-commit" if pre_commit else None)
    require_fit({"--force": force, "--via": via}, {"--scope": scope}, agent)
    roots, git = here()
    if agent:
        from gitgates.cli import agent_hooks  # what git's hooks have no use for

        agent_hooks.uninstall(roots, agent_hooks.Asked(scope or SCOPES[0]))
        return errors.OK
    if via:
        if not via_hooks.uninstall((via,), roots, git):
            click.echo(f"gitgates: no hooks of ours in the files of {via}")
        return errors.OK
    uninstall(roots, git, force=force)
    return errors.OK


def uninstall(roots: Roots, git: Git, *, force: bool) -> None:
    """Take shims out of the folder that git looks in, and of its usual one; print what was done."""
    found = False
    current = hooks_folder(git, roots)
    usual = default_folder(roots)
    for folder in (current, usual) if current.path_abs != usual.path_abs else (current,):
        if folder.is_shared and not force:
            found |= _say_shared(folder)
            continue
        done = githooks.uninstall(folder.path_abs, _ALL)
        found |= bool(done)
        show(done, roots)
    found |= via_hooks.uninstall(MANAGERS, roots, git)
    if not found:
        click.echo(f"gitgates: no hooks of ours in {current.path_abs}")


def _say_shared(folder: HooksFolder) -> bool:
    """Tell of shims that other repositories run, too; return whether there are any."""
    places = [githooks.look(folder.path_abs, hook) for hook in _ALL]
    ours = [os.path.basename(place.shim_abs) for place in places if place.holder == "us"]
    if ours:
        click.echo(
            f"gitgates: {setting(folder)}: other repositories run {', '.join(ours)} there, too\n"
            "  Take them out all the same: gitgates uninstall-hooks --force"
        )
    return bool(ours)
