"""Complete the names of hooks and gates in a shell, and suggest the nearest to an unknown one."""

from __future__ import annotations

from shlex import quote

import click
from click.shell_completion import CompletionItem

from gitgates.config.load import inspect
from gitgates.config.values import did_you_mean
from gitgates.core.errors import GitgatesError, UsageError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.git.repo import current_folder
from gitgates.verbs.repository import config_root


def unknown_hook(name: str, gates: tuple[str, ...] = ()) -> UsageError:
    """Return the error for an unknown hook, with a suggestion. `gates`: also valid names."""
    configured = (*_configured("hooks"), *gates)
    near = did_you_mean(name, configured) or did_you_mean(name, tuple(HOOK_POINTS))
    choices = f"Configured: {', '.join(configured) or 'none'}."
    what = "no hook or gate" if gates else "unknown hook"
    return UsageError(f"{what} `{name}`", near or choices)


def unknown_gate(name: str, defined: tuple[str, ...]) -> UsageError:
    """Return the error for a gate that is not defined, with a suggestion."""
    hint = did_you_mean(name, defined) or f"Defined: {', '.join(defined) or 'none'}."
    hint = "The hook's name comes first." if name in HOOK_POINTS else hint
    return UsageError(f"no gate `{name}`", hint)


def complete_hooks(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the configured hooks; if none matches, the known ones."""
    return _items(_configured("hooks"), incomplete) or _items(tuple(HOOK_POINTS), incomplete)


def complete_names(
    context: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the configured hooks and gates; if none matches, the known hooks."""
    both = (*_configured("hooks"), *_configured("gates"))
    return _items(tuple(dict.fromkeys(both)), incomplete) or complete_hooks(
        context, param, incomplete
    )


def complete_gates(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the configured gates."""
    return _items(_configured("gates"), incomplete)


def _items(names: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    # The shell inserts a name without quotes, so it must contain nothing that the shell would run,
    # and nothing invisible.
    plain = [name for name in names if quote(name) == name]
    return [CompletionItem(name) for name in plain if name.startswith(incomplete)]


def _configured(section: str) -> tuple[str, ...]:
    """Return the names of hooks or gates, also from a configuration with problems.

    During completion there is no place for a message.
    """
    try:
        config, _problems = inspect(config_root(current_folder()))
    except (GitgatesError, OSError):
        return ()
    return tuple(entry.name for entry in getattr(config, section)) if config else ()
