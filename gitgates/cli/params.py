"""Names as arguments: checked, with the nearest one in the refusal, and completed by the shell."""

from __future__ import annotations

import click

from gitgates.config.values import did_you_mean
from gitgates.errors import GitgatesError, UsageError
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gitgates.types import Config

    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # generic only in later versions of click


class HookName(_Text):
    """The name of a hook of any host; the configured ones complete first."""

    name = "hook"

    def convert(
        self,
        value: str,
        param: click.Parameter | None,  # noqa: ARG002 - click's
        ctx: click.Context | None,  # noqa: ARG002 - click's
    ) -> str:
        """Return the name.

        Raises: UsageError where no host has such a hook.
        """
        if value not in HOOK_POINTS:
            raise unknown_hook(value, _configuration())
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the hooks that complete a word."""
        return complete_hooks(ctx, param, incomplete)


def unknown_hook(name: str, config: Config | None) -> UsageError:
    """Return the refusal of a hook that no host has: the nearest one, or those configured."""
    configured = tuple(hook.name for hook in config.hooks) if config else ()
    near = did_you_mean(name, configured) or did_you_mean(name, tuple(HOOK_POINTS))
    listed = f"Configured are: {', '.join(configured) or 'none'}."
    return UsageError(f"unknown hook `{name}`", near or listed)


class GateName(_Text):
    """The name of a gate. Whether there is one of that name, the verb finds out."""

    name = "gate"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the gates that complete a word."""
        return complete_gates(ctx, param, incomplete)


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
    """Return the configuration here, also one with problems; None where nothing can be read.

    A shell that completes has no place for a message, so that none is given.
    """
    from gitgates.cli.repository import config_root
    from gitgates.config.load import inspect
    from gitgates.git.repo import current_folder

    try:
        return inspect(config_root(current_folder()))[0]
    except (GitgatesError, OSError):
        return None
