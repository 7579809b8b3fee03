"""Every place that tasks are found in. A new task runner is one file and one line here."""

from __future__ import annotations

from gitgates.discover import (
    ci,
    just,
    make,
    managers,
    mise,
    nox,
    npm,
    scripts,
    task_tables,
    taskfile,
    tools,
    tox,
)
from gitgates.discover.task import BadFile, Project, Task

# Where two runners know the same word, the earlier one is asked: the outer ones call the inner.
RUNNERS = (mise, just, make, taskfile, npm, nox, task_tables, tox)
# Folders of programs, and how deep they are looked into.
PROGRAMS = (
    *((folder, 2) for folder in mise.FOLDERS),
    *((folder, 1) for folder in (*scripts.FOLDERS, ".venv/bin", "node_modules/.bin")),
)
FOLDERS = (ci.FOLDER, managers.HUSKY)  # of other files
_READS = (*(name for runner in RUNNERS for name in runner.FILES), *tools.READS, *managers.READS)


def reads(project: Project) -> tuple[str, ...]:
    """Return the files that are to be read, as far as the names in the root tell."""
    husky = (f"{managers.HUSKY}/{hook}" for hook in managers.HOOKS)
    found = (*_READS, *ci.names(project), *scripts.includes(project), *husky)
    return tuple(dict.fromkeys(found))


def includes(project: Project) -> tuple[str, ...]:
    """Return the files and folders that task files include."""
    found: list[str] = []
    for runner in (mise, just, make):
        for name in (name for name in runner.FILES if name in project.texts):
            try:
                found += runner.includes(name, project)
            except BadFile:
                continue  # said when its tasks are looked for
    return tuple(found)


def find_tasks(project: Project) -> tuple[list[Task], list[str], list[str]]:
    """Return all tasks, better sources first; what only a person can take over; what is broken."""
    tasks = mise.find_files(project)
    troubles: dict[str, str] = {}
    for runner in RUNNERS:
        for name in (name for name in runner.FILES if name in project.texts):
            try:
                tasks += runner.find(name, project)
            except BadFile as error:
                troubles[name] = f"{name}: {error}; nothing of it is used"
            if getattr(runner, "FIRST_ONLY", False):
                break
    tasks += scripts.find_files(project)
    for name in ci.names(project):
        if name in project.texts:
            tasks += ci.find(name, project)
    managed, notes = managers.find(project)
    return [*tasks, *tools.find_defaults(project), *managed], notes, list(troubles.values())
