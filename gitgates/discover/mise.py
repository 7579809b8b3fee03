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
    """Return the tasks of one file."""
    found = []
    for task, value in table(read_toml(project.texts[name]), "tasks").items():
        options = value if isinstance(value, dict) else {"run": value}
        if not options.get("hide"):
            found.append(_task(task, f"{name}: task {task}", options))
    return found


def find_files(project: Project) -> list[Task]:
    """Return the tasks that are files of their own."""
    return [
        _task(name.rpartition("/")[2].partition(".")[0], name, {})
        for name in sorted(project.names)
        if name.rpartition("/")[0] in FOLDERS
    ]


def _task(name: str, source: str, options: dict[str, object]) -> Task:
    description = options.get("description")
    return Task(
        name=name,
        command=f"mise run {shlex.quote(name)}",
        source=source,
        body=" && ".join(texts(options.get("run"))),
        needs=texts(options.get("depends")),
        description=description if isinstance(description, str) else "",
    )
