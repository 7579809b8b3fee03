"""Convert the local hooks of the pre-commit framework; what needs the framework stays its own."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from typing import Any

from gitgates.core.record import Record
from gitgates.engine.command import uses_arguments
from gitgates.setup.convert.globs import NoPatternError, from_regex
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, only_set
from gitgates.setup.values import tables, texts

with open(os.path.join(os.path.dirname(__file__), "framework.toml"), "rb") as _file:
    KEYS = tomllib.load(_file)

FILE = ".pre-commit-config.yaml"
# Where a gate can run the framework: see engine/command.py.
_SERVED = ("pre-commit", "pre-merge-commit", "pre-push", "commit-msg", "prepare-commit-msg")
_NOTHING = ("", "^$")  # expressions that hooks have by default
_OLD_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}
_NAMES_PREK = ("pyproject.toml", "package.json", "Makefile", "mise.toml")


class _Kept(Exception):
    """A hook that stays the framework's; the text says why."""


class _Split(Record):
    """Which hooks become gates, and which stay the framework's."""

    jobs: list[ManagerJob]
    others: list[dict[str, Any]]
    place: int  # of those that stay, among the jobs
    notes: list[str]

    @property
    def names(self) -> set[str]:
        """Return all that `SKIP` would skip of the hooks that stay."""
        return {str(hook.get(key)) for hook in self.others for key in ("id", "alias")}


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return a gate for each local hook, and one for all others, in order. Raises: UsageError."""
    settings = project.load(FILE)
    names_prek = any(re.search(r"\bprek\b", project.text(name)) for name in _NAMES_PREK)
    runner = "prek" if names_prek else "pre-commit"
    reserved: set[str] = set()
    split = _split(settings, reserved, runner)
    while not split.names <= reserved:  # a hook that stays may have the name of one that does not
        reserved |= split.names
        split = _split(settings, reserved, runner)
    notes += split.notes
    hooks = dict.fromkeys(name for hook in split.others for name in _hooks(hook, settings))
    if served := [name for name in hooks if name in (*_SERVED, "manual")]:
        split.jobs.insert(split.place, _framework(runner, served, split.jobs))
    if unserved := [name for name in hooks if name not in (*_SERVED, "manual")]:
        why = "no gate runs pre-commit there; keep its own hook"
        notes.append(f"{FILE}: {', '.join(unserved)}: {why}")
    return split.jobs


def installed_hooks(project: ManagerFiles) -> tuple[str, ...]:
    """Return the hooks that the framework installs by default. Raises: UsageError."""
    return texts(project.load(FILE).get("default_install_hook_types", [])) or ("pre-commit",)


def _split(settings: dict[str, Any], reserved: set[str], runner: str) -> _Split:
    """Convert the local hooks, but those of which the id is `reserved` by one that stays."""
    jobs: list[ManagerJob] = []
    others: list[dict[str, Any]] = []
    notes: list[str] = []
    place = 0
    for repo in tables(settings.get("repos")):
        for hook in tables(repo.get("hooks")):
            if "gitgates" in str(hook.get("id")):
                continue
            try:
                if repo.get("repo") == "local":
                    jobs.append(_job(hook, settings, notes, reserved)._replace(manager=runner))
                    continue
            except (_Kept, NoPatternError, ValueError) as error:
                notes.append(f"{FILE}: {hook.get('id')}: stays pre-commit's: {error}")
            place = place if others else len(jobs)
            others.append(hook)
    return _Split(jobs, others, place, notes)


def _framework(runner: str, hooks: list[str], jobs: list[ManagerJob]) -> ManagerJob:
    keys = {
        "description": f"The {'other ' if jobs else ''}hooks of {FILE}",
        "pre-commit": True,
        "writes": True,  # its fixers may
        **({"runner": runner} if runner == "prek" else {}),
        **({"env": {"SKIP": ",".join(job.name for job in jobs)}} if jobs else {}),
    }
    return ManagerJob("pre-commit", tuple(hooks), keys, runner)


def _job(
    hook: dict[str, Any], settings: dict[str, Any], notes: list[str], reserved: set[str]
) -> ManagerJob:
    """Return the gate for a local hook. Raises: _Kept, NoPatternError, ValueError."""
    name = str(hook.get("id") or "hook")
    kind = KEYS["languages"].get(str(hook.get("language")))
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
    text = shlex.join(words)
    selection = {} if always else _selection(hook, settings)
    if name in reserved or "," in name:
        raise _Kept("`SKIP` would skip other hooks with its `id`")
    reasons = {key: KEYS["hook"].get(key, "unknown, so it is not converted") for key in hook}
    notes += [f"{FILE}: {name}: {key}: {why}" for key, why in reasons.items() if why]
    label = str(hook.get("description") or hook.get("name") or "")
    keys = only_set(
        description="" if label == name else label,
        command=words if passes and uses_arguments(text) else text,
        **selection,
        pass_files=passes,
    )
    in_order = bool(settings.get("fail_fast"))
    return ManagerJob(name, _hooks(hook, settings), keys, "pre-commit", in_order)


def _selection(hook: dict[str, Any], settings: dict[str, Any]) -> dict[str, list[str]]:
    """Return which files a hook is about. Raises: _Kept, NoPatternError."""
    expressions = [
        str(part["files"]) for part in (hook, settings) if str(part.get("files") or "") != ""
    ]
    excluded = [
        str(part["exclude"])
        for part in (settings, hook)
        if re.sub(r"\s", "", str(part.get("exclude") or "")) not in _NOTHING
    ]
    if len(expressions) > 1:
        raise _Kept("its `files` and those of the whole file have to match both")
    return {
        "files": [pattern for expression in expressions for pattern in from_regex(expression)],
        "exclude": [pattern for expression in excluded for pattern in from_regex(expression)],
        "types": [
            *(tag for tag in texts(hook.get("types", [])) if tag != "file"),
            *(f"!{tag}" for tag in texts(hook.get("exclude_types", []))),
        ],
        "types_or": [*texts(hook.get("types_or", []))],
    }


def _hooks(hook: dict[str, Any], settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the hooks of git, or `manual`, in which a hook of the framework runs."""
    stages = texts(hook.get("stages", [])) or texts(settings.get("default_stages", []))
    installed = texts(settings.get("default_install_hook_types", [])) or ("pre-commit",)
    return tuple(dict.fromkeys(_OLD_STAGES.get(stage, stage) for stage in stages or installed))
