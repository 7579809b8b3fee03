"""Read a project, and find all tasks in it: of runners, CI, tools, and other hook managers."""

from __future__ import annotations

import os

from gitgates.discover import ci, managers, runners, tools
from gitgates.discover.project import (
    BadFile,
    Project,
    Task,
    is_inside,
    list_files,
    list_root,
    read_files,
)

# Folders of programs, and how deep they are looked into.
_PROGRAMS = (
    *((folder, 2) for folder in runners.MISE_FOLDERS),
    *((folder, 1) for folder in (*runners.SCRIPT_FOLDERS, ".venv/bin", "node_modules/.bin")),
)


def read_project(root_abs: str) -> tuple[Project, list[str]]:
    """Return a project, and which of its files could not be read and why."""
    names = list_root(root_abs)
    for folder, depth in _PROGRAMS:
        names |= list_files(root_abs, folder, depth=depth, programs=True)
    for folder in (ci.FOLDER, managers.HUSKY):
        names |= list_files(root_abs, folder)
    project = Project(texts={}, names=frozenset(names))
    wanted = (*runners.FILES, *tools.READS, *managers.READS, *ci.workflows(project))
    wanted += (*runners.task_scripts(project), *managers.HUSKY_FILES)
    texts, troubles = read_files(root_abs, tuple(dict.fromkeys(wanted)))
    for name in _included(project._replace(texts=texts)):
        if os.path.isdir(os.path.join(root_abs, name)):
            names |= list_files(root_abs, name, depth=2, programs=True)
        elif is_inside(name):
            more, unreadable = read_files(root_abs, (name,))
            texts |= more
            troubles += unreadable
    return Project(texts=texts, names=frozenset(names)), troubles


def _included(project: Project) -> list[str]:
    found: list[str] = []
    for name in runners.FILES:
        if name in project.texts:
            try:
                found += runners.included_files(name, project)
            except BadFile:
                continue  # said when its tasks are looked for
    return found


def find_tasks(project: Project) -> tuple[list[Task], list[str], list[str]]:
    """Return all tasks, better sources first; what only a person can take over; what is broken."""
    tasks, troubles = runners.find_runner_tasks(project)
    for name in ci.workflows(project):
        tasks += ci.find(name, project) if name in project.texts else []
    managed, notes = managers.find(project)
    return [*tasks, *tools.find_defaults(project), *managed], notes, troubles
