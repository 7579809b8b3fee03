"""Convert what other hook managers run: one gate for each command, in the same hooks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from gitgates.config.keys import RESERVED_GATE_NAMES
from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.setup.convert import framework, gates_json
from gitgates.setup.discover import lefthook, managers, runners
from gitgates.setup.discover.choose import Tasks
from gitgates.setup.discover.project import BadFile, Project, Task
from gitgates.setup.discover.propose import read_project
from gitgates.setup.discover.words import is_fixing, kind_of, program_of

_TEST_TIMEOUT = "10m"


class Conversion(Record):
    """The tables of a configuration, shaped like a settings file, and what to know of them."""

    gates: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    notes: tuple[str, ...] = ()  # what is not converted, and why
    managers: tuple[str, ...] = ()  # of git's hooks: pre-commit, prek, lefthook, husky, …
    project: Project | None = None  # of managers


def convert(root_abs: str, file: str, path: str) -> Conversion:
    """Convert a file, or without one all files of managers in a project.

    `path`: the variable PATH.

    Raises: UsageError where it cannot be read, is of an unknown kind, or there is nothing.
    """
    project, troubles = read_project(root_abs, path)
    name = _name_of(file, root_abs) if file else ""
    finders = _finders(project, name)
    if file and not finders:
        tables, read_notes = gates_json.read(file)
        return Conversion(tables.get("gates", {}), tables.get("hooks", {}), tuple(read_notes))
    notes = managers.unread(project) if not file else []
    notes += [trouble for trouble in troubles if not file or trouble.startswith(f"{name}:")]
    tasks = []
    for find in finders:
        try:
            tasks += find(project, notes)
        except BadFile as error:
            raise UsageError(str(error).removesuffix("; ignored")) from error
    if unreadable := [note for note in notes if file and note in troubles]:
        raise UsageError("\n".join(note.removesuffix("; ignored") for note in unreadable))
    if not tasks and not notes:
        raise UsageError(
            f"{name or root_abs}: found nothing to convert",
            "It reads the files of lefthook, husky, lint-staged, simple-git-hooks and pre-commit, "
            "and gates.json.",
        )
    scripts = Tasks(runners.find_runner_tasks(project)[0])
    return _tables(tasks, notes, scripts)._replace(project=project)


def _name_of(file: str, root_abs: str) -> str:
    """Return the name of a file in the repository, which may be a link to another one."""
    folder, name = os.path.split(os.path.abspath(file))
    path_abs = os.path.join(os.path.realpath(folder), name)
    return os.path.relpath(path_abs, os.path.realpath(root_abs))


def _finders(project: Project, name: str) -> list[Callable[[Project, list[str]], list[Task]]]:
    """Return what reads a file; without a name, what reads all."""
    finders: list[Callable[[Project, list[str]], list[Task]]] = []
    if name in ("", managers.PRE_COMMIT):
        finders.append(framework.find)
    if name in ("", *lefthook.FILES):
        finders.append(_lefthook)
    if name in managers.LINT_STAGED:
        finders.append(_lint_staged)
    husky = managers.husky_folder(project)
    if name in ("", "package.json", *managers.SIMPLE) or f"{name}/".startswith(f"{husky}/"):
        finders.append(_node)
    return finders


def _lefthook(project: Project, notes: list[str]) -> list[Task]:
    return lefthook.find(project, notes, managers.ALL_HOOKS, notes)


def _lint_staged(project: Project, notes: list[str]) -> list[Task]:
    return managers.lint_staged("pre-commit", project, notes)


def _node(project: Project, notes: list[str]) -> list[Task]:
    tasks = managers.find_node(project, notes, managers.ALL_HOOKS, whole=True)
    runs_lint_staged = any("staged" in task.body + task.source for task in tasks)
    return tasks if runs_lint_staged else [*tasks, *_lint_staged(project, notes)]


def _tables(tasks: list[Task], notes: list[str], scripts: Tasks) -> Conversion:
    gates: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    for task in tasks:
        table = _gate(task, scripts.lines(task))
        name = _name(task, table, gates)
        gates[name] = table
        for hook in task.hooks:
            entry = hooks.setdefault(hook, {"gates": []})
            entry["gates"] += [name] if name not in entry["gates"] else []
            if not task.in_order and len(entry["gates"]) > 1:
                entry["strategy"] = "collect"
    names = dict.fromkeys(task.manager for task in tasks if task.manager)
    return Conversion(gates, hooks, tuple(notes), tuple(names))


def _gate(task: Task, lines: list[str]) -> dict[str, Any]:
    """Return the table of a gate; `lines`: what it runs, in scripts of the project as well."""
    has_tests = "test" in {kind_of(program_of(line)) for line in lines}
    return {
        **({"description": task.description} if task.description else {}),
        **({"command": task.command} if task.command else {}),
        **({"timeout": _TEST_TIMEOUT} if has_tests else {}),
        **task.keys,
        **({"writes": True} if task.command and any(map(is_fixing, lines)) else {}),
    }


def _name(task: Task, table: dict[str, Any], gates: dict[str, Any]) -> str:
    """Return the name of an equal gate, or a new one."""
    plain = re.sub(r"[^\w-]+", "-", task.name).strip("-") or "hook"
    is_taken = plain.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}
    plain = name = f"{plain}-gate" if is_taken else plain
    count = 1
    while name in gates and gates[name] != table:
        count += 1
        name = f"{plain}-{count}"
    return name
