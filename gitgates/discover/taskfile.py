"""Tasks of Taskfile.yml (go-task). Source: taskfile.dev/reference/schema; includes are left out."""

from __future__ import annotations

import shlex

from gitgates.discover.formats import read_yaml, table
from gitgates.discover.task import Project, Task

FILES = (
    *("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    *("Taskfile.dist.yml", "taskfile.dist.yml", "Taskfile.dist.yaml", "taskfile.dist.yaml"),
)
FIRST_ONLY = True


def find(name: str, project: Project) -> list[Task]:
    """Return the tasks of one file; what is internal, or asks for variables, is private."""
    found = []
    for task, value in table(read_yaml(project.texts[name]), "tasks").items():
        options = value if isinstance(value, dict) else {"cmds": value}
        asks = options.get("internal") or options.get("requires") or options.get("interactive")
        lines, called = _steps(options.get("cmds", options.get("cmd")))
        description = options.get("desc")
        found.append(
            Task(
                name=task,
                command=f"task {shlex.quote(task)}",
                source=f"{name}: task {task}",
                body="\n".join(lines),
                needs=(*_steps(options.get("deps"))[0], *_steps(options.get("deps"))[1], *called),
                is_private=bool(asks or options.get("watch")),
                description=description if isinstance(description, str) else "",
            )
        )
    return found


def _steps(value: object) -> tuple[list[str], list[str]]:
    """Return the shell lines of a list, and the tasks that it calls."""
    lines: list[str] = []
    called: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            lines.append(item)
        elif isinstance(item, dict) and isinstance(item.get("cmd"), str):
            lines.append(item["cmd"])
        elif isinstance(item, dict) and isinstance(item.get("task"), str):
            called.append(item["task"])
    return lines, called
