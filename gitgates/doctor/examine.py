"""Call every look in order, and return what they found."""

from __future__ import annotations

from gitgates.doctor.agents import check_agents
from gitgates.doctor.finding import Finding
from gitgates.doctor.folders import check_folders
from gitgates.doctor.framework import read as read_framework
from gitgates.doctor.hooks import Look, check_hook, look_at
from gitgates.doctor.place import Place, places
from gitgates.doctor.settings import check_gates, check_settings
from gitgates.doctor.stages import check_stages
from gitgates.doctor.state import check_environment, check_git, check_gone, check_left_over
from gitgates.errors import ConfigError
from gitgates.git.run import Git
from gitgates.install import managers, selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.types import Config


def examine(repo: Repo, env: Mapping[str, str]) -> list[Finding]:
    """Look at everything; return the findings in the order of looking.

    Raises: GitError where git cannot be asked at all.
    """
    found = check_git(Git(cwd_abs=repo.root_abs, env=env))
    config, said = check_settings(repo.root_abs)
    found += said + check_environment(env)
    everywhere, gone = places(repo, env)
    framework = read_framework(repo.root_abs)
    found += check_folders(everywhere)
    found += _hooks(everywhere, _wanted(config, everywhere), env)
    folder_abs = everywhere[0].folder.path_abs
    found += check_stages(framework, {s: look_at(folder_abs, s) for s in framework.our_stages})
    found += check_agents(config, repo, everywhere[0].git, env)
    if config:
        found += check_gates(config, repo.root_abs, framework, env)
    found += [f for place in everywhere for f in check_left_over(place, repo.root_abs)]
    return found + check_gone(gone)


def _wanted(config: Config | None, everywhere: list[Place]) -> tuple[str, ...]:
    """Return the hooks of git that should be alive: the configured ones.

    Where the configuration cannot be read: those that are installed.
    """
    if config is None:
        folder_abs = everywhere[0].folder.path_abs
        return tuple(
            hook for hook in selection.CLIENT_HOOKS if look_at(folder_abs, hook).kind == "shim"
        )
    try:
        return selection.configured(config).hooks
    except ConfigError:
        return ()  # no hook of git is configured: then there is nothing to install


def _hooks(
    everywhere: list[Place], wanted: tuple[str, ...], env: Mapping[str, str]
) -> list[Finding]:
    """Look at each hook, once in each hooks folder: worktrees mostly share one."""
    here_abs = everywhere[0].repo.root_abs
    found: list[Finding] = []
    seen: set[str] = set()
    for place in everywhere:
        if place.folder.path_abs in seen:
            continue
        framework = read_framework(place.repo.root_abs)
        entries = managers.entries(place.repo.root_abs, place.folder)
        joined = {hook: (manager, name) for manager, name, hook in reversed(entries)}
        seen.add(place.folder.path_abs)
        for hook in wanted:
            file = look_at(place.folder.path_abs, hook)
            found += check_hook(Look(hook, file, place, framework, joined, here_abs, env))
    return found
