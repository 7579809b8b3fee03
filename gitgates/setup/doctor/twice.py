"""Commands that run twice: a hook manager's own, and gates of the same hook that do the same."""

from __future__ import annotations

import os
from collections.abc import Iterator

from gitgates.core.types import Config
from gitgates.engine.plan import find_hook, framework_gate
from gitgates.git.previous_hook import is_of_framework
from gitgates.setup.discover import managers
from gitgates.setup.discover.propose import read_project
from gitgates.setup.doctor.findings import Subject, Worktree
from gitgates.setup.install.githooks import read_hook
from gitgates.setup.install.managers import FRAMEWORK
from gitgates.verbs.finding import Finding


def check_twice(subject: Subject) -> Iterator[Finding]:
    """Find what a manager's own hook and a gate of the same hook both run.

    A gate that runs all hooks of the pre-commit framework runs once: it stands in for the
    framework's own hook, and leaves its hooks to it where the framework runs us.
    """
    if subject.config is None:
        return
    worktree = subject.current
    commands = _commands(worktree.repo.root_abs)
    for hook in managers.HOOKS:
        path_abs = os.path.join(worktree.folder.path_abs, hook)
        location = worktree.display_path(path_abs)
        if (text := stands_in(path_abs, worktree.repo.root_abs, subject.config)) or (
            text := left_to_framework(worktree, hook, subject.config)
        ):
            yield Finding("ok", "twice", location, text)
        manager = _manager(path_abs, worktree)
        gates = same_gates(commands, subject.config, hook, manager)
        if gates:
            names = ", ".join(f"`{name}`" for name in gates)
            what = f"{manager} runs the same commands before a gate does: {names}"
            fix = f"remove {names} from the gates of {hook}, or their commands from {manager}"
            yield Finding("problem", "twice", location, what, fix)


def stands_in(shim_abs: str, root_abs: str, config: Config) -> str:
    """Return the gate that replaces the previous hook; empty if that hook runs."""
    hook = os.path.basename(shim_abs)
    gate = framework_gate(config, hook)
    if not gate or not is_of_framework(shim_abs, root_abs):
        return ""
    return f"the hook from before is kept, but not run: gate `{gate}` runs the same hooks"


def left_to_framework(worktree: Worktree, hook: str, config: Config) -> str:
    """Return the gate that does not run because the framework runs gitgates; empty if none."""
    gate = framework_gate(config, hook)
    manager = read_hook(os.path.join(worktree.folder.path_abs, hook)).manager
    is_served = hook in worktree.framework.our_stages
    if not gate or not manager or manager.name not in FRAMEWORK or not is_served:
        return ""
    return f"gate `{gate}` is skipped: {manager.name} runs its hooks itself"


def same_gates(
    commands: dict[tuple[str, str], set[str]], config: Config, hook: str, manager: str
) -> list[str]:
    """Return the gates of a hook whose command the manager also runs there."""
    configured = find_hook(config, hook)
    names, run = configured.gates if configured else (), commands.get((manager, hook), set())
    return [gate.name for gate in config.gates if gate.name in names and gate.command in run]


def _commands(root_abs: str) -> dict[tuple[str, str], set[str]]:
    """Return manager and hook → the commands that it runs there, as init would write them."""
    commands: dict[tuple[str, str], set[str]] = {}
    for task in managers.find(read_project(root_abs)[0])[0]:
        for hook in task.hooks:
            commands.setdefault((task.manager, hook), set()).add(task.command)
    return commands


def _manager(path_abs: str, worktree: Worktree) -> str:
    """Return the manager whose own hook runs beside our gates; empty if none does."""
    file = read_hook(path_abs)
    if file.kind == "shim":
        previous = read_hook(file.kept_abs)
        return previous.manager.name if previous.manager and previous.executable else ""
    runs_us = worktree.joined.get(file.hook, ("", ""))[0]
    return file.manager.name if file.manager and file.manager.name == runs_us else ""
