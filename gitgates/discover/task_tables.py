"""Task tables of Python projects: poethepoet, taskipy, pdm, hatch."""

from __future__ import annotations

import shlex

from gitgates.discover.formats import command_lines, read_toml, table, texts
from gitgates.discover.task import Project, Task
from gitgates.discover.tools import runner_prefix
from gitgates.discover.words import PYTHON

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


# Environments of hatch itself: who sets one up uses its command.
_BUILT_IN = (
    ("hatch-static-analysis", "lint", "hatch fmt --check"),
    ("hatch-test", "test", "hatch test"),
)


def _hatch_tasks(where: str, settings: dict[str, object]) -> list[Task]:
    envs = table(settings, "envs")
    found = [
        Task(name=name, command=command, source=f"{where} envs.{env}", scope=PYTHON, body=command)
        for env, name, command in _BUILT_IN
        if env in envs
    ]
    for env in sorted(envs, key=lambda env: env != "default"):
        command = "hatch run " if env == "default" else f"hatch run {env}:"
        for task, value in table(envs[env], "scripts").items():
            found.append(_task(f"{where} envs.{env}.scripts.{task}", command, task, value))
    return found


def _task(source: str, command: str, name: str, value: object) -> Task:
    described = value.get("help", "") if isinstance(value, dict) else ""
    is_list = isinstance(value, list)  # for poe, of other tasks
    return Task(
        name=name,
        command=f"{command}{shlex.quote(name)}",
        source=source,
        scope=PYTHON,
        body=_body(value),
        needs=texts(value) if is_list and command.endswith("poe ") else (),
        description=described if isinstance(described, str) else "",
    )


def _body(value: object) -> str:
    if isinstance(value, dict):
        found = [value.get(key) for key in ("cmd", "shell", "sequence", "composite", "script")]
        return "\n".join(command_lines(item) for item in found if item)
    return command_lines(value)
