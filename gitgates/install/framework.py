"""The stages of the pre-commit framework that we can be run in; `pre-commit` itself, called."""

from __future__ import annotations

import os
import sys

from gitgates.errors import ConfigError, GitError, UsageError
from gitgates.lifecycle import HOOK_POINTS, STANDS_IN_FOR
from gitgates.proc.call import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.types import Config

_STAGES = tuple(point.name for point in HOOK_POINTS.values() if point.framework)


def stages(config: Config | None, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stages of the framework that are configured, or those that are named.

    Raises: UsageError for a name that is no stage; ConfigError where nothing is configured.
    """
    for name in named:
        if name not in _STAGES:
            raise UsageError(
                f"`{name}` is no stage of the pre-commit framework", f"Known: {', '.join(_STAGES)}"
            )
    wanted = {hook.name for hook in config.hooks} if config else set(named)
    wanted |= {by for by, of in STANDS_IN_FOR.items() if of in wanted}
    found = tuple(stage for stage in _STAGES if stage in wanted)
    if not found:
        raise ConfigError(
            "the configuration names no stage of the pre-commit framework",
            'Add one, such as: [tool.gitgates.hooks.pre-commit] with gates = ["..."]',
        )
    return found


def run_pre_commit(verb: str, names: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Run `pre-commit install` or `uninstall` for hooks of git; return what it said.

    Raises: GitError where it fails.
    """
    hooks = [name for name in names if HOOK_POINTS[name].host == "git"]
    types = [word for name in hooks for word in ("--hook-type", name)]
    if not types:
        return ""
    done = call((sys.executable, "-m", "pre_commit", verb, *types), env)
    said = os.fsdecode(done.stdout + done.stderr).strip()
    if done.exit_status:
        raise GitError(f"pre-commit {verb} failed: {said}", "Try it by hand; the rest is done.")
    return said
