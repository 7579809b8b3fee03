"""Convert the local hooks of the pre-commit framework; one gate runs its other hooks."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gitgates.engine.plan.command import FILE_STAGES, MESSAGE_STAGES, uses_arguments
from gitgates.setup.convert.globs import NoPatternError, from_regex
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, only_set
from gitgates.setup.install.framework import FILE, read_hooks, stages_of
from gitgates.setup.task_files import texts

with open(os.path.join(os.path.dirname(__file__), "framework.toml"), "rb") as _file:
    KEYS = tomllib.load(_file)

# The hooks in which a gate can run the framework.
_SERVED = frozenset((*FILE_STAGES, *MESSAGE_STAGES))
_NOTHING = (None, "", "^$")  # default expressions
_NAMES_PREK = ("pyproject.toml", "package.json", "Makefile", "mise.toml")


class _Kept(Exception):
    """A hook that the framework keeps; the text says why."""


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return one gate for each converted hook, and one for all others. Raises: UsageError."""
    settings = project.load(FILE)
    names_prek = any(re.search(r"\bprek\b", project.text(name)) for name in _NAMES_PREK)
    runner = "prek" if names_prek else "pre-commit"
    jobs: list[ManagerJob] = []
    stay: list[str] = []  # the git hooks in which the framework keeps running
    hooks = [hook for hook in read_hooks(settings) if "gitgates" not in str(hook.get("id"))]
    names = Counter(str(hook[key]) for hook in hooks for key in ("id", "alias") if key in hook)
    for hook in hooks:
        try:
            if hook.pop("repo") == "local":
                jobs.append(_job(hook, settings, names)._replace(manager=runner))
                reasons = ((key, KEYS["hook"].get(key, "unknown, so ignored")) for key in hook)
                notes += [f"{FILE}: {hook.get('id')}: {key}: {why}" for key, why in reasons if why]
                continue
        except (_Kept, NoPatternError, ValueError) as error:
            notes.append(f"{FILE}: {hook.get('id')}: stays pre-commit's: {error}")
        stay += _hooks(hook, settings)
    served = [name for name in dict.fromkeys(stay) if name in _SERVED]
    if unserved := {*stay} - _SERVED:
        why = "no gate runs pre-commit there; keep its own hook"
        notes.append(f"{FILE}: {', '.join(sorted(unserved))}: {why}")
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
        raise _Kept("`always_run` with file names: a gate without matching files does not run")
    if names[name] > 1 or "," in name:
        raise _Kept("`SKIP` would also skip other hooks with its `id`")
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
    """Return the keys that select a hook's files. Raises: _Kept, NoPatternError."""
    parts = (settings, hook)
    files = [str(part["files"]) for part in parts if part.get("files")]
    if len(files) > 1:
        raise _Kept("both its own `files` and the top-level `files` must match")
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
    installed = texts(settings.get("default_install_hook_types", [])) or ("pre-commit",)
    return stages_of(hook, settings) or installed
