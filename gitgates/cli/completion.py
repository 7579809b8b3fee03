"""`gitgates completion`, and the names of hooks and gates that a shell completes."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from gitgates import errors
from gitgates.config.values import did_you_mean
from gitgates.errors import GitgatesError, UsageError
from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import Config

_SHELLS = ("bash", "zsh", "fish")
# click looks for this name when `gitgates` starts, and then completes instead of running a verb.
VARIABLE = "_GITGATES_COMPLETE"


def unknown_hook(name: str) -> UsageError:
    """Return the refusal of a hook that no host has: the nearest one, or those configured."""
    config = _configuration()
    configured = tuple(hook.name for hook in config.hooks) if config else ()
    near = did_you_mean(name, configured) or did_you_mean(name, tuple(HOOK_POINTS))
    listed = f"Configured are: {', '.join(configured) or 'none'}."
    return UsageError(f"unknown hook `{name}`", near or listed)


def complete_hooks(
    ctx: click.Context,  # noqa: ARG001 - click's
    param: click.Parameter,  # noqa: ARG001 - click's
    incomplete: str,
) -> list[CompletionItem]:
    """Return the configured hooks that begin so; where none does, the known ones."""
    config = _configuration()
    configured = [hook.name for hook in config.hooks] if config else []
    return _items(configured, incomplete) or _items(list(HOOK_POINTS), incomplete)


def complete_gates(
    ctx: click.Context,  # noqa: ARG001 - click's
    param: click.Parameter,  # noqa: ARG001 - click's
    incomplete: str,
) -> list[CompletionItem]:
    """Return the gates of the configuration that begin so."""
    config = _configuration()
    return _items([gate.name for gate in config.gates] if config else [], incomplete)


def _items(names: list[str], incomplete: str) -> list[CompletionItem]:
    from shlex import quote

    from click.shell_completion import CompletionItem

    # The shell puts it on its command line as it is: nothing that it would run, or nobody sees.
    plain = [name for name in names if quote(name) == name]
    return [CompletionItem(name) for name in plain if name.startswith(incomplete)]


def _configuration() -> Config | None:
    """Return the configuration here, also one with problems; None if nothing can be read.

    A shell that completes has no place for a message, so that none is given.
    """
    from gitgates.cli.repository import config_root
    from gitgates.config.load import inspect
    from gitgates.git.repo import current_folder

    try:
        return inspect(config_root(current_folder()))[0]
    except (GitgatesError, OSError):
        return None


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> int:
    """Print the completion script of a shell.

    It completes verbs, options, and the names of hooks and gates as the configuration has them.

    \b
    bash  ~/.bashrc:  eval "$(gitgates completion bash)"
    zsh   ~/.zshrc:   eval "$(gitgates completion zsh)"
    fish  gitgates completion fish > ~/.config/fish/completions/gitgates.fish
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    from click.shell_completion import get_completion_class

    from gitgates.cli import main  # the group, which loads this file

    maker = get_completion_class(shell)
    if maker is None:
        raise errors.UsageError(f"click has no completion for {shell}")
    click.echo(maker(main, {}, "gitgates", VARIABLE).source())
    return errors.OK
