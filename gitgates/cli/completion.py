"""`gitgates completion`: a shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gitgates.core import errors

_SHELLS = ("bash", "zsh", "fish")
# click looks for this name when `gitgates` starts, and then completes instead of running a verb.
VARIABLE = "_GITGATES_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> int:
    """Print a completion script for a shell.

    Completes commands, options, and the names of configured hooks and gates.

    \b
    bash  ~/.bashrc:  eval "$(gitgates completion bash)"
    zsh   ~/.zshrc:   eval "$(gitgates completion zsh)"
    fish  gitgates completion fish > ~/.config/fish/completions/gitgates.fish
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    from gitgates.cli import main  # the group, which loads this file

    maker = get_completion_class(shell)
    if maker is None:
        raise errors.UsageError(f"no completion available for {shell}")
    click.echo(maker(main, {}, "gitgates", VARIABLE).source())
    return errors.OK
