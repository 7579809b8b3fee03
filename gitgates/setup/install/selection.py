"""Select the git hooks to install: the configured ones, or the named ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitgates.config.load import load
from gitgates.config.values import did_you_mean
from gitgates.core.errors import ConfigError, GitgatesError, UsageError
from gitgates.core.lifecycle import GIT_HOOKS, HOOK_POINTS, STANDS_IN_FOR
from gitgates.core.types import Config
from gitgates.drivers.needs import git_hooks
from gitgates.git.repo import current_folder, find_repo
from gitgates.setup.install import githooks
from gitgates.setup.install.hookspath import hooks_folder, require_usable
from gitgates.setup.install.managers import FRAMEWORK

_FOR_AGENTS = "to install the hooks of Claude Code: gitgates install-hooks --agent claude"
_STAGES = tuple(point.name for point in HOOK_POINTS.values() if point.framework)
CLIENT_HOOKS = tuple(point.name for point in GIT_HOOKS if point.client)


def select(
    config: Config | None, only: tuple[str, ...] = (), via: str = "", *, offers_init: bool = False
) -> tuple[tuple[str, ...], list[str]]:
    """Return the configured hooks, or `only` some, and messages about those that are left out.

    In git's order, with the hooks that git runs in place of another. `via`: the manager that will
    run them. `offers_init`: whether `gitgates init` may find hooks.

    Raises: UsageError for a name that cannot be installed; ConfigError if none is left.
    """
    supported = _STAGES if via in FRAMEWORK else CLIENT_HOOKS
    for name in only:
        if name not in HOOK_POINTS:
            hint = did_you_mean(name, supported) or "For a list, see: git help hooks"
            raise UsageError(f"`{name}` is not a hook of git", hint)
        if name not in supported:
            raise UsageError(_why_not(name, via))
    names, left_out = {*only}, []
    if config and not only:
        configured = [hook.name for hook in config.hooks]
        names = {*configured, *git_hooks(config)}  # policies may need more
        unsupported = (name for name in configured if name not in supported)
        left_out = [_why_not(n, via) for n in unsupported if HOOK_POINTS[n].host == "git"]
        hosts = {HOOK_POINTS[hook.name].host for hook in config.hooks if hook.gates}
        left_out += [_FOR_AGENTS] if via not in FRAMEWORK and "agent" in hosts else []
    names |= {substitute for substitute, hook in STANDS_IN_FOR.items() if hook in names}
    if hooks := tuple(name for name in supported if name in names):
        return hooks, left_out
    reasons = "".join(f"\n  {why}" for why in left_out)
    prefix = "tool.gitgates." if config and "pyproject.toml" in config.sources else ""
    has_hooks = bool(config and config.hooks)
    init = "To propose some: gitgates init\n  " if offers_init and not has_hooks else ""
    raise ConfigError(
        f"the configuration defines no git hook to install{reasons}",
        f'{init}Add one, for example: [{prefix}hooks.pre-commit] with gates = ["..."]\n'
        "  Or name it: gitgates install-hooks --hook-type pre-commit",
    )


def _why_not(name: str, via: str) -> str:
    """Return why a hook cannot be installed."""
    if via in FRAMEWORK:
        return f"`{name}` is not a stage of {via}: skipped"
    if HOOK_POINTS[name].host == "git":
        return f"`{name}` runs no gates in a clone: skipped"
    return f"`{name}` is not run by git, so there is nothing to install"


def install_in_cloud(folder_abs: str, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Install the configured hooks at the start of a cloud session, whose clone is new.

    Only if `cloud_hooks` is set. `folder_abs`: in the repository; empty: the current folder.
    """
    try:
        repo = find_repo(folder_abs or current_folder(), env)
        config = load(repo.root_abs)
        if config and config.cloud_hooks:
            folder = hooks_folder(repo)
            require_usable(folder, force=False)
            githooks.install(folder.path_abs, select(config)[0], force=False)
    except (GitgatesError, OSError) as error:
        say(f"git's hooks were not installed: {error}")
