"""`gitgates completion`, and the names of hooks and gates that a shell completes."""

from __future__ import annotations

from shlex import quote

import click
from click.shell_completion import CompletionItem, get_completion_class

from gitgates import errors
from gitgates.cli.repository import config_root
from gitgates.config.load import inspect
from gitgates.config.values import did_you_mean
from gitgates.errors import GitgatesError, UsageError
from gitgates.git.repo import current_folder
from gitgates.lifecycle import HOOK_POINTS

_SHELLS = ("bash", "zsh", "fish")
# click looks for this name when `gitgates` starts, and then completes instead of running a verb.
VARIABLE = "_GITGATES_COMPLETE"


def unknown_hook(name: str) -> UsageError:
    """Return the error for an unknown hook, with a suggestion."""
    configured = _configured("hooks")
    near = did_you_mean(name, configured) or did_you_mean(name, tuple(HOOK_POINTS))
    listed = f"Configured are: {', '.join(configured) or 'none'}."
    return UsageError(f"unknown hook `{name}`", near or listed)


def complete_hooks(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the configured hooks; if none matches, the known ones."""
    return _items(_configured("hooks"), incomplete) or _items(tuple(HOOK_POINTS), incomplete)


def complete_gates(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the configured gates."""
    return _items(_configured("gates"), incomplete)


def _items(names: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    # The shell puts it on its command line as it is: nothing that it would run, or nobody sees.
    plain = [name for name in names if quote(name) == name]
    return [CompletionItem(name) for name in plain if name.startswith(incomplete)]


def _configured(section: str) -> tuple[str, ...]:
    """Return the names of hooks or gates, also of a configuration with problems.

    A shell that completes has no place for a message, so that none is given.
    """
    try:
        config, _problems = inspect(config_root(current_folder()))
    except (GitgatesError, OSError):
        return ()
    return tuple(one.name for one in getattr(config, section)) if config else ()


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
    from gitgates.cli import main  # the group, which loads this file

    maker = get_completion_class(shell)
    if maker is None:
        raise errors.UsageError(f"click has no completion for {shell}")
    click.echo(maker(main, {}, "gitgates", VARIABLE).source())
    return errors.OK
