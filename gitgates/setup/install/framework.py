"""The pre-commit framework: its hooks here, and gates that run all of them."""

from __future__ import annotations

import os

from gitgates.core.types import Config
from gitgates.edit.user_file import content
from gitgates.engine.plan import framework_gate
from gitgates.git.previous_hook import is_of_framework
from gitgates.setup.install.managers import FRAMEWORK, called_hooks, recognise
from gitgates.setup.task_files import parse, read_text, tables

FILE = ".pre-commit-config.yaml"


def find_ids(root_abs: str) -> set[str] | None:
    """Return the ids and aliases of the framework's hooks; None if its file cannot be read."""
    try:
        repos = tables(parse(FILE, read_text(os.path.join(root_abs, FILE))).get("repos"))
    except ValueError:
        return None
    hooks = [hook for repo in repos for hook in tables(repo.get("hooks"))]
    return {str(hook[key]) for hook in hooks for key in ("id", "alias") if hook.get(key)}


def gate_in_place(hook_abs: str, root_abs: str, config: Config) -> str:
    """Return the gate that runs what the framework's own hook would run; empty if there is none.

    It runs in place of that hook, or not at all if the framework runs us.
    """
    hook = os.path.basename(hook_abs)
    gate = framework_gate(config, hook)
    if gate and is_of_framework(hook_abs, root_abs):
        return f"gate `{gate}` runs the same hooks, in place of {hook}.before-gitgates"
    manager = recognise(content(hook_abs))
    is_ours = hook in called_hooks(content(os.path.join(root_abs, FILE)))
    if gate and is_ours and manager and manager.name in FRAMEWORK:
        return f"gate `{gate}` is skipped: {manager.name} runs its hooks itself"
    return ""
