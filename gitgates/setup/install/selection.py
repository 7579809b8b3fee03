"""Which hooks to install: the configured ones, or those that are named. Pure."""

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
    config: Config | None,
    requested: tuple[str, ...] = (),
    via: str = "",
    *,
    offers_init: bool = False,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the named or configured hooks, and messages about those that are left out.

    In git's order, with what git runs in a hook's place. `via`: the manager that will run them.
    `offers_init`: whether `gitgates init` may find hooks.

    Raises: UsageError for a name that cannot be installed; ConfigError if none is left.
    """
    supported = _STAGES if via in FRAMEWORK else CLIENT_HOOKS
    for name in requested:
        if name not in supported and name not in HOOK_POINTS:
            hint = did_you_mean(name, supported) or "For a list, see: git help hooks"
            raise UsageError(f"`{name}` is not a hook of git", hint)
        if name not in supported:
            raise UsageError(_why_not(name, via))
    names, left_out = {*requested}, []
    if config and not requested:
        names = {
            *(hook.name for hook in config.hooks),
            *git_hooks(config),
        }  # those of policies, too
        unsupported = (hook.name for hook in config.hooks if hook.name not in supported)
        left_out = [_why_not(n, via) for n in unsupported if HOOK_POINTS[n].host == "git"]
        gated = (hook.name for hook in config.hooks if hook.gates)
        if via not in FRAMEWORK and any(HOOK_POINTS[name].host == "agent" for name in gated):
            left_out.append(_FOR_AGENTS)
    names |= {by for by, of in STANDS_IN_FOR.items() if of in names}
    if hooks := tuple(name for name in supported if name in names):
        return hooks, left_out
    reasons = "".join(f"\n  {why}" for why in left_out)
    prefix = "tool.gitgates." if config and "pyproject.toml" in config.sources else ""
    is_empty = not (config and config.hooks)
    init = "To propose some: gitgates init\n  " if offers_init and is_empty else ""
    raise ConfigError(
        f"the configuration defines no git hook to install{reasons}",
        f'{init}Add one, for example: [{prefix}hooks.pre-commit] with gates = ["..."]\n'
        "  Or name it: gitgates install-hooks --hook-type pre-commit",
    )


def _why_not(name: str, via: str) -> str:
    """Say why a hook cannot be installed."""
    usual = "is not fired by git, so there is nothing to install"
    if HOOK_POINTS[name].host == "git":
        usual = "runs on the server, not in a clone: skipped"
    if via in FRAMEWORK:
        usual = f"is not a stage of {via}: skipped"
    return f"`{name}` {_WHY_NOT.get(name, usual)}"
