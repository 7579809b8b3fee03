"""Every place that tasks are found in. A new task runner is one file and one line here."""

from __future__ import annotations

from gitgates.discover import (
    go_tools,
    javascript_tools,
    just,
    make,
    mise,
    nox,
    npm,
    python_tools,
    rust_tools,
    task_tables,
    taskfile,
    tox,
)
from gitgates.discover.task import BadFile, Project, Task

# Where two runners know the same word, the earlier one is asked: the outer ones call the inner.
RUNNERS = (mise, just, make, taskfile, npm, nox, task_tables, tox)
LANGUAGES = (python_tools, go_tools, javascript_tools, rust_tools)

READS: tuple[str, ...] = tuple(
    dict.fromkeys(
        name
        for names in (*(runner.FILES for runner in RUNNERS), *(tools.READS for tools in LANGUAGES))
        for name in names
    )
)
FOLDERS = mise.FOLDERS


def find_tasks(project: Project) -> tuple[list[Task], list[str]]:
    """Return every task of a project, better sources first, and what is wrong with its files."""
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
    for tools in LANGUAGES:
        tasks += tools.find_defaults(project)
    return tasks, list(troubles.values())


def find_languages(project: Project) -> tuple[str, ...]:
    """Return the languages that the files in the root show."""
    return tuple(tools.LANGUAGE for tools in LANGUAGES if project.names & set(tools.MARKERS))
