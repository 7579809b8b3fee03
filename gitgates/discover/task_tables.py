"""Task tables of Python projects: poethepoet, taskipy, pdm, hatch."""

from __future__ import annotations

import shlex

from gitgates.discover.formats import read_toml, table
from gitgates.discover.python_tools import SCOPE, runner_prefix
from gitgates.discover.task import Project, Task

FILES = ("pyproject.toml", "hatch.toml")


def find(name: str, project: Project) -> list[Task]:
    """Return the tasks of one file, in the order of the tools above."""
    settings = read_toml(project.texts[name])
    if name == "hatch.toml":
        return _hatch_tasks(name, settings)
    tool = table(settings, "tool")
    prefix = runner_prefix(project)
    tables = (
        ("tool.poe.tasks", f"{prefix}poe ", table(tool, "poe", "tasks")),
        ("tool.taskipy.tasks", f"{prefix}task ", table(tool, "taskipy", "tasks")),
        ("tool.pdm.scripts", "pdm run ", table(tool, "pdm", "scripts")),
    )
    found = [
        _task(f"{name}: {where}.{task}", command, task, value)
        for where, command, tasks in tables
        for task, value in tasks.items()
        if not task.startswith("_")
    ]
    return found + _hatch_tasks(f"{name}: tool.hatch", table(tool, "hatch"))


def _hatch_tasks(where: str, settings: dict[str, object]) -> list[Task]:
    envs = table(settings, "envs")
    found = []
    for env in sorted(envs, key=lambda env: env != "default"):
        command = "hatch run " if env == "default" else f"hatch run {env}:"
        for task, value in table(envs[env], "scripts").items():
            found.append(_task(f"{where} envs.{env}.scripts.{task}", command, task, value))
    return found


def _task(source: str, command: str, name: str, value: object) -> Task:
    described = value.get("help", "") if isinstance(value, dict) else ""
    return Task(
        name=name,
        command=f"{command}{shlex.quote(name)}",
        source=source,
        scope=SCOPE,
        body=value if isinstance(value, str) else str(value),
        description=described if isinstance(described, str) else "",
    )
