"""Which hooks are to be installed: the configured ones, or those that are named. Pure."""

from __future__ import annotations

from gitgates.config.values import did_you_mean
from gitgates.errors import ConfigError, UsageError
from gitgates.lifecycle import GIT_HOOKS, HOOK_POINTS, STANDS_IN_FOR
from gitgates.policies.needs import git_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config

_FOR_AGENTS = "those of Claude Code are installed with: gitgates install-hooks --agent claude"
_STAGES = tuple(point.name for point in HOOK_POINTS.values() if point.framework)
CLIENT_HOOKS = tuple(point.name for point in GIT_HOOKS if point.client)


def configured(config: Config) -> tuple[str, ...]:
    """Return the hooks of git that a configuration names, in git's order.

    Raises: ConfigError where it names none that runs here.
    """
    names = [hook.name for hook in config.hooks if hook.name in CLIENT_HOOKS]
    names += git_hooks(config)
    if not names:
        said = "".join(f"\n  {why}" for why in left_out(config))
        prefix = "tool.gitgates." if "pyproject.toml" in config.sources else ""
        raise ConfigError(
            f"the configuration names no hook of git that could be installed{said}",
            f'Add one, such as: [{prefix}hooks.pre-commit] with gates = ["..."]\n'
            "  Or name it: gitgates install-hooks --hook-type pre-commit",
        )
    return _with_stand_ins(names)


def left_out(config: Config) -> list[str]:
    """Return what to say of the configured hooks that are not installed."""
    names = [hook.name for hook in config.hooks]
    said = [why for name in names if _is_gits(name) and (why := _why_not(name))]
    if any(HOOK_POINTS[hook.name].host == "agent" and hook.gates for hook in config.hooks):
        said.append(_FOR_AGENTS)
    return said


def named(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hooks that somebody names, in git's order.

    Raises: UsageError for one that cannot be installed, which says why.
    """
    for name in names:
        if name not in HOOK_POINTS:
            hint = did_you_mean(name, CLIENT_HOOKS) or "Known are those of: git help hooks"
            raise UsageError(f"`{name}` is no hook of git", hint)
        if why := _why_not(name):
            raise UsageError(why)
    return _with_stand_ins(list(names))


def stages(config: Config | None, named_: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stages of the pre-commit framework that are configured, or those that are named.

    Raises: UsageError for a name that is no stage; ConfigError where nothing is configured.
    """
    for name in named_:
        if name not in _STAGES:
            raise UsageError(
                f"`{name}` is no stage of the pre-commit framework", f"Known: {', '.join(_STAGES)}"
            )
    wanted = set(named_)
    if config:
        wanted = {*(hook.name for hook in config.hooks), *git_hooks(config)}
    wanted |= {by for by, of in STANDS_IN_FOR.items() if of in wanted}
    found = tuple(stage for stage in _STAGES if stage in wanted)
    if not found:
        raise ConfigError(
            "the configuration names no stage of the pre-commit framework",
            'Add one, such as: [tool.gitgates.hooks.pre-commit] with gates = ["..."]',
        )
    return found


def _is_gits(name: str) -> bool:
    return HOOK_POINTS[name].host == "git"


def _why_not(name: str) -> str:
    """Say why a hook cannot be installed; nothing if it can."""
    point = HOOK_POINTS[name]
    if point.host == "git" and point.client:
        return ""
    if name == "manual":
        return "`manual` is not fired by git: run it with gitgates run manual"
    if point.host != "git":
        return f"`{name}` is not fired by git, so that there is nothing to install for it here"
    if name == "fsmonitor-watchman":
        return "`fsmonitor-watchman` answers questions of git's and can hold no gates: left out"
    return f"`{name}` runs on the server that is pushed to, not where people work: left out"


def _with_stand_ins(names: list[str]) -> tuple[str, ...]:
    """Add what git runs in a hook's place; return all in git's order, each once."""
    wanted = {*names, *(by for by, of in STANDS_IN_FOR.items() if of in names)}
    return tuple(name for name in CLIENT_HOOKS if name in wanted)
