"""Which hooks are to be installed: the configured ones, or those that are named. Pure."""

from __future__ import annotations

from gitgates.config.values import did_you_mean
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.lifecycle import GIT_HOOKS, HOOK_POINTS, STANDS_IN_FOR
from gitgates.core.types import Config
from gitgates.session.needs import git_hooks
from gitgates.setup.install.managers import FRAMEWORK

_FOR_AGENTS = "those of Claude Code are installed with: gitgates install-hooks --agent claude"
_STAGES = tuple(point.name for point in HOOK_POINTS.values() if point.framework)
CLIENT_HOOKS = tuple(point.name for point in GIT_HOOKS if point.client)
_WHY_NOT = {
    "manual": "is not fired by git: run it with gitgates run manual",
    "fsmonitor-watchman": "is a protocol between git and a helper, and cannot run gates: skipped",
}


def select(
    config: Config | None, requested: tuple[str, ...] = (), via: str = ""
) -> tuple[tuple[str, ...], list[str]]:
    """Return the named or configured hooks, and messages about those that are left out.

    In git's order, with what git runs in a hook's place. `via`: the manager that is to run them.

    Raises: UsageError for a name that cannot be installed; ConfigError if none is left.
    """
    supported = _STAGES if via in FRAMEWORK else CLIENT_HOOKS
    for name in requested:
        _require_supported(name, supported, via)
    names = requested
    if config and not requested:
        names = (
            *(hook.name for hook in config.hooks),
            *git_hooks(config),
        )  # those of policies, too
    left_out = _left_out(config, via) if config and not requested else []
    selected = {*names, *(by for by, of in STANDS_IN_FOR.items() if of in names)}
    hooks = tuple(name for name in supported if name in selected)
    if not hooks:
        raise _nothing(config, left_out, via)
    return hooks, left_out


def _require_supported(name: str, supported: tuple[str, ...], via: str) -> None:
    if name in supported:
        return
    if via in FRAMEWORK:
        hint = f"Known: {', '.join(supported)}"
        raise UsageError(f"`{name}` is not a stage of the pre-commit framework", hint)
    if name not in HOOK_POINTS:
        hint = did_you_mean(name, supported) or "For a list, see: git help hooks"
        raise UsageError(f"`{name}` is not a hook of git", hint)
    raise UsageError(_why_not(name))


def _left_out(config: Config, via: str) -> list[str]:
    points = [HOOK_POINTS[hook.name] for hook in config.hooks]
    gits = [point for point in points if point.host == "git"]
    if via in FRAMEWORK:
        return [
            f"`{point.name}` is not a stage of {via}: skipped"
            for point in gits
            if not point.framework
        ]
    reasons = [_why_not(point.name) for point in gits if not point.client]
    is_for_agents = any(
        HOOK_POINTS[hook.name].host == "agent" and hook.gates for hook in config.hooks
    )
    return [*reasons, _FOR_AGENTS] if is_for_agents else reasons


def _why_not(name: str) -> str:
    """Say why a hook cannot be installed."""
    usual = "is not fired by git, so there is nothing to install"
    if HOOK_POINTS[name].host == "git":
        usual = "runs on the server, not in a clone: skipped"
    return f"`{name}` {_WHY_NOT.get(name, usual)}"


def _nothing(config: Config | None, left_out: list[str], via: str) -> ConfigError:
    if via in FRAMEWORK:
        return ConfigError(
            "the configuration defines no stage of the pre-commit framework",
            'Add one, for example: [tool.gitgates.hooks.pre-commit] with gates = ["..."]',
        )
    reasons = "".join(f"\n  {why}" for why in left_out)
    prefix = "tool.gitgates." if config and "pyproject.toml" in config.sources else ""
    return ConfigError(
        f"the configuration defines no git hook to install{reasons}",
        f'Add one, for example: [{prefix}hooks.pre-commit] with gates = ["..."]\n'
        "  Or name it: gitgates install-hooks --hook-type pre-commit",
    )
