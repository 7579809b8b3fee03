"""Tasks of mise. Source: mise.jdx.dev/tasks, seen 2025-11."""

from __future__ import annotations

import shlex

from gitgates.discover.formats import read_toml, table, texts
from gitgates.discover.task import Project, Task

FILES = (
    *("mise.toml", ".mise.toml", "mise/config.toml", ".mise/config.toml"),
    *(".config/mise.toml", ".config/mise/config.toml"),
)
# Each executable file in one of these is a task.
FOLDERS = ("mise-tasks", ".mise-tasks", "mise/tasks", ".mise/tasks", ".config/mise/tasks")


def find(name: str, project: Project) -> list[Task]:
    """Return the tasks of one file, and those of what it includes."""
    settings = read_toml(project.texts[name])
    found = _tasks(name, table(settings, "tasks"))
    for included in includes(name, project):
        if included in project.texts:
            found += _tasks(included, read_toml(project.texts[included]))
        found += _programs(included, project)
    return found


def includes(name: str, project: Project) -> tuple[str, ...]:
    """Return the files and folders that a file takes tasks from, instead of the usual folders."""
    return texts(table(read_toml(project.texts[name]), "task_config").get("includes"))


def find_files(project: Project) -> list[Task]:
    """Return the tasks that are files of their own, in the usual folders."""
    return [task for folder in FOLDERS for task in _programs(folder, project)]


def _programs(folder: str, project: Project) -> list[Task]:
    """Return the tasks of a folder: `lint/js.sh` is `lint:js`."""
    start = f"{folder}/"
    return [
        _task(name.removeprefix(start).partition(".")[0].replace("/", ":"), name, {})
        for name in sorted(project.names)
        if name.startswith(start)
    ]


def _tasks(name: str, tables: dict[str, object]) -> list[Task]:
    found = []
    for task, value in tables.items():
        options = value if isinstance(value, dict) else {"run": value}
        found.append(_task(task, f"{name}: task {task}", options))
    return found


def _task(name: str, source: str, options: dict[str, object]) -> Task:
    description = options.get("description")
    return Task(
        name=name,
        command=f"mise run {shlex.quote(name)}",
        source=source,
        body="\n".join(texts(options.get("run"))),
        needs=texts(options.get("depends")),
        is_private=bool(options.get("hide")),
        description=description if isinstance(description, str) else "",
    )
