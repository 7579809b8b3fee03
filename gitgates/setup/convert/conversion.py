"""Convert what other hook managers run: one gate for each command, in the same hooks."""

from __future__ import annotations

import os
import re
from typing import Any

from gitgates.config.keys import RESERVED_GATE_NAMES
from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.setup.convert import framework, lefthook, node
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob

_BY_HAND = "is not read; create gates for it by hand"
# Of other managers, and settings that are programs.
_NOT_READ = (
    *("prek.toml", ".overcommit.yml", "hk.pkl", ".simple-git-hooks.json", "simple-git-hooks.json"),
    *(f"{name}.{ext}" for name in ("lint-staged.config", ".lintstagedrc") for ext in ("js", "mjs")),
    *(".lintstagedrc.cjs", "lint-staged.config.cjs", "lint-staged.config.ts"),
)


class Conversion(Record):
    """The tables of a configuration, shaped like a settings file, and what to know of them."""

    project: ManagerFiles
    gates: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    notes: tuple[str, ...] = ()  # what is not converted, and why
    managers: tuple[str, ...] = ()  # of git's hooks: pre-commit, prek, lefthook, husky, …


def convert(root_abs: str, file: str = "") -> Conversion:
    """Convert a file, or without one all files of managers in a repository.

    Raises: UsageError if it cannot be read, is of an unknown kind, or there is nothing.
    """
    project, name = ManagerFiles(root_abs), _name_of(file, root_abs) if file else ""
    files = {
        framework.find: (framework.FILE,),
        lefthook.find: lefthook.FILES,
        node.find: (node.PACKAGE, *node.LINT_STAGED, *(f".husky/{hook}" for hook in node.HOOKS)),
    }
    notes: list[str] = []
    jobs: list[ManagerJob] = []
    for find, names in files.items():
        if not name or name in names or f"{names[-1]}/".startswith(f"{name}/"):
            jobs += find(project, notes)
    if not name:
        notes += [f"{other}: {_BY_HAND}" for other in _NOT_READ if project.has(other)]
    if not jobs and not notes:
        known = (
            "It reads the files of lefthook, husky, lint-staged, simple-git-hooks and pre-commit."
        )
        raise UsageError(f"{name or root_abs}: found nothing to convert", known)
    gates, hooks = _tables(jobs)
    managers = dict.fromkeys(job.manager for job in jobs if job.manager)
    return Conversion(project, gates, hooks, tuple(notes), tuple(managers))


def _name_of(file: str, root_abs: str) -> str:
    """Return the name of a file in the repository, which may be a link to another one."""
    folder, name = os.path.split(os.path.abspath(file))
    path_abs = os.path.join(os.path.realpath(folder), name)
    return os.path.relpath(path_abs, os.path.realpath(root_abs))


def _tables(jobs: list[ManagerJob]) -> tuple[dict[str, Any], dict[str, Any]]:
    gates: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    reserved = {word.casefold() for word in RESERVED_GATE_NAMES}
    for job in jobs:
        plain = re.sub(r"[^\w-]+", "-", job.name).strip("-") or "hook"
        plain += "-gate" if plain.casefold() in reserved else ""
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(jobs) + 2)))
        name = next(name for name in names if gates.get(name, job.keys) == job.keys)
        gates[name] = job.keys
        for hook in job.hooks:
            entry = hooks.setdefault(hook, {"gates": []})
            entry["gates"] += [name] if name not in entry["gates"] else []
            if not job.in_order and len(entry["gates"]) > 1:
                entry["strategy"] = "collect"
    return gates, hooks
