"""Convert what other hook managers run into gates: one for each command, in the same hooks."""

from __future__ import annotations

import os
import re
from typing import Any

from gitgates.config.keys import RESERVED_GATE_NAMES
from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.setup.convert import framework, lefthook, node
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob
from gitgates.setup.install.framework import FILE
from gitgates.setup.task_files import list_folder

_BY_HAND = "is not read; create gates for it by hand"
_NOT_READ = re.compile(
    r"prek\.toml|\.overcommit\.yml|hk\.pkl|\.?simple-git-hooks\.json"
    r"|(?:lint-staged\.config|\.lintstagedrc)\.(?:[cm]?js|ts)"
)


class Conversion(Record):
    """The gates and hooks, as tables of a settings file, and what is not converted."""

    gates: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    notes: tuple[str, ...] = ()  # what is not converted, and why
    managers: tuple[str, ...] = ()  # whose hooks they were: pre-commit, prek, lefthook, husky, …


def convert(root_abs: str, file: str = "") -> Conversion:
    """Convert a manager's file, or all such files in a repository if none is named.

    Raises: UsageError if it cannot be read or is of an unknown kind, or if there is nothing.
    """
    project, name = ManagerFiles(root_abs), _name_of(file, root_abs) if file else ""
    files = {
        framework.find: (FILE,),
        lefthook.find: lefthook.FILES,
        node.find: (node.PACKAGE, *node.LINT_STAGED, *(f".husky/{hook}" for hook in node.HOOKS)),
    }
    notes: list[str] = []
    jobs: list[ManagerJob] = []
    for find, names in files.items():
        if not name or name in names or f"{names[-1]}/".startswith(f"{name}/"):
            jobs += find(project, notes)
    if not name:
        others = filter(_NOT_READ.fullmatch, list_folder(root_abs))
        notes += [f"{other}: {_BY_HAND}" for other in others]
    if not jobs and not notes:
        known = "lefthook, husky, lint-staged, simple-git-hooks and pre-commit"
        what = f"{name or root_abs}: found nothing to convert"
        raise UsageError(what, f"It reads the files of {known}.")
    gates, hooks = _tables(jobs)
    managers = dict.fromkeys(job.manager for job in jobs if job.manager)
    return Conversion(gates, hooks, tuple(notes), tuple(managers))


def _name_of(file: str, root_abs: str) -> str:
    """Return a file's path from the root, with links in its folder resolved."""
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
