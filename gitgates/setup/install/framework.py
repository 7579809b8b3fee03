"""The pre-commit framework: the hooks in its file, and the gates that run all of them."""

from __future__ import annotations

import os
from typing import Any

from gitgates.core.types import Config
from gitgates.edit.user_file import content
from gitgates.engine.plan.plan import framework_gate
from gitgates.git.previous_hook import is_of_framework
from gitgates.setup.install.managers import FRAMEWORK, called_hooks, recognise
from gitgates.setup.task_files import parse, read_text, tables, texts

FILE = ".pre-commit-config.yaml"
_OLD_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}


def read_hooks(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the hooks in the framework's parsed file, each with its `repo`."""
    repos = tables(settings.get("repos"))
    return [{"repo": r.get("repo"), **hook} for r in repos for hook in tables(r.get("hooks"))]


def stages_of(hook: dict[str, Any], settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the git hooks, or `manual`, that a hook is limited to; none if it is not limited."""
    stages = texts(hook.get("stages")) or texts(settings.get("default_stages"))
    return tuple(dict.fromkeys(_OLD_STAGES.get(stage, stage) for stage in stages))


def find_ids(root_abs: str) -> set[str] | None:
    """Return the ids and aliases of the framework's hooks; None if its file cannot be read."""
    try:
        hooks = read_hooks(parse(FILE, read_text(os.path.join(root_abs, FILE))))
    except ValueError:
        return None
    return {str(hook[key]) for hook in hooks for key in ("id", "alias") if hook.get(key)}


def gate_in_place(hook_abs: str, root_abs: str, config: Config) -> str:
    """Return a remark on the gate that runs what the framework's own hook runs; empty if none.

    It runs in place of that hook, or is skipped if the framework runs gitgates.
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
