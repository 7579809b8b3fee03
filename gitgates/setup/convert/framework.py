"""Convert the local hooks of the pre-commit framework; what needs the framework stays its own."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gitgates.engine.command import uses_arguments
from gitgates.setup.convert.globs import NoPatternError, from_regex
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, only_set
from gitgates.setup.task_files import tables, texts

with open(os.path.join(os.path.dirname(__file__), "framework.toml"), "rb") as _file:
    KEYS = tomllib.load(_file)

FILE = ".pre-commit-config.yaml"
# Where a gate can run the framework: see engine/command.py.
_SERVED = (
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "commit-msg",
    "prepare-commit-msg",
    "manual",
)
_NOTHING = (None, "", "^$")  # expressions that hooks have by default
_OLD_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}
_NAMES_PREK = ("pyproject.toml", "package.json", "Makefile", "mise.toml")


class _Kept(Exception):
    """A hook that stays the framework's; the text says why."""


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return one gate for all hooks that stay, and one for each other one. Raises: UsageError."""
    settings = project.load(FILE)
    names_prek = any(re.search(r"\bprek\b", project.text(name)) for name in _NAMES_PREK)
    runner = "prek" if names_prek else "pre-commit"
    jobs: list[ManagerJob] = []
    stay: list[str] = []  # the git hooks with some that stay
    repos = tables(settings.get("repos"))
    hooks = [(hook, repo.get("repo")) for repo in repos for hook in tables(repo.get("hooks"))]
    names = Counter(str(hook[key]) for hook, _ in hooks for key in ("id", "alias") if key in hook)
    for hook, repo in hooks:
        if "gitgates" in str(hook.get("id")):
            continue
        try:
            if repo == "local":
                jobs.append(_job(hook, settings, names)._replace(manager=runner))
                reasons = ((key, KEYS["hook"].get(key, "unknown, so ignored")) for key in hook)
                notes += [f"{FILE}: {hook.get('id')}: {key}: {why}" for key, why in reasons if why]
                continue
        except (_Kept, NoPatternError, ValueError) as error:
            notes.append(f"{FILE}: {hook.get('id')}: stays pre-commit's: {error}")
        stay += _hooks(hook, settings)
    served = [name for name in dict.fromkeys(stay) if name in _SERVED]
    if unserved := [name for name in dict.fromkeys(stay) if name not in _SERVED]:
        why = "no gate runs pre-commit there; keep its own hook"
        notes.append(f"{FILE}: {', '.join(unserved)}: {why}")
    return [_framework(runner, served, jobs), *jobs] if served else jobs


def _framework(runner: str, hooks: list[str], jobs: list[ManagerJob]) -> ManagerJob:
    keys = {
        "description": f"The {'other ' if jobs else ''}hooks of {FILE}",
        "pre-commit": True,
        "writes": True,  # its fixers may
        "runner": runner if runner == "prek" else "",
        "env": {"SKIP": ",".join(job.name for job in jobs)} if jobs else {},
    }
    return ManagerJob("pre-commit", tuple(hooks), only_set(**keys), runner)


def _job(hook: dict[str, Any], settings: dict[str, Any], names: Mapping[str, int]) -> ManagerJob:
    """Return the gate for a local hook. Raises: _Kept, NoPatternError, ValueError."""
    name, kind = str(hook.get("id")), KEYS["languages"].get(str(hook.get("language")))
    if kind is None:
        raise _Kept(f"`language: {hook.get('language')}` needs its environment")
    words = [*shlex.split(str(hook.get("entry") or "")), *map(str, texts(hook.get("args")))]
    if not words:
        raise _Kept("it has no `entry`")
    if kind == "script" and not words[0].startswith(("/", "./")):
        words[0] = f"./{words[0]}"
    passes, always = hook.get("pass_filenames", True), bool(hook.get("always_run"))
    if passes and always:
        raise _Kept("`always_run` with file names: a gate that is given no paths does not run")
    if names[name] > 1 or "," in name:
        raise _Kept("`SKIP` would skip other hooks with its `id`")
    text = shlex.join(words)
    label = str(hook.get("description") or hook.get("name") or "")
    keys = only_set(
        description="" if label == name else label,
        command=words if passes and uses_arguments(text) else text,
        **({} if always else _selection(hook, settings)),
        pass_files=passes,
    )
    in_order = bool(settings.get("fail_fast"))
    return ManagerJob(name, _hooks(hook, settings), keys, "pre-commit", in_order)


def _selection(hook: dict[str, Any], settings: dict[str, Any]) -> dict[str, list[str]]:
    """Return which files a hook is about. Raises: _Kept, NoPatternError."""
    parts = (settings, hook)
    files = [str(part["files"]) for part in parts if part.get("files")]
    if len(files) > 1:
        raise _Kept("its `files` and those of the whole file have to match both")
    excluded = [str(part["exclude"]) for part in parts if part.get("exclude") not in _NOTHING]
    types = [tag for tag in texts(hook.get("types", [])) if tag != "file"]
    return {
        "files": [pattern for expression in files for pattern in from_regex(expression)],
        "exclude": [pattern for expression in excluded for pattern in from_regex(expression)],
        "types": [*types, *(f"!{tag}" for tag in texts(hook.get("exclude_types", [])))],
        "types_or": [*texts(hook.get("types_or", []))],
    }


def _hooks(hook: dict[str, Any], settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the git hooks, or `manual`, in which a hook of the framework runs."""
    stages = texts(hook.get("stages", [])) or texts(settings.get("default_stages", []))
    installed = texts(settings.get("default_install_hook_types", [])) or ("pre-commit",)
    return tuple(dict.fromkeys(_OLD_STAGES.get(stage, stage) for stage in stages or installed))
