"""Scripts of package.json, run by the package manager that the project uses; tasks of deno."""

from __future__ import annotations

import shlex

from gitgates.discover.formats import command_lines, read_json, table, texts
from gitgates.discover.task import Project, Task
from gitgates.discover.words import JAVASCRIPT

FILES = ("package.json", "deno.json")

_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
# What `npm init` writes: it says that there are no tests, and fails.
_NO_TESTS = "no test specified"


def find(name: str, project: Project) -> list[Task]:
    """Return the scripts of package.json, or the tasks of deno.json."""
    package = read_json(project.texts[name])
    if name == "deno.json":
        return [_deno_task(task, value) for task, value in table(package, "tasks").items()]
    manager = package_manager(package, project)
    return [
        Task(
            name=script,
            command=_command(manager, script),
            source=f"{name}: script {script}",
            scope=JAVASCRIPT,
            body=body,
        )
        for script, body in table(package, "scripts").items()
        if isinstance(body, str) and body.strip() and _NO_TESTS not in body
    ]


def _deno_task(name: str, value: object) -> Task:
    options = value if isinstance(value, dict) else {"command": value}
    return Task(
        name=name,
        command=f"deno task {shlex.quote(name)}",
        source=f"deno.json: task {name}",
        scope=JAVASCRIPT,
        body=command_lines(options.get("command")),
        needs=texts(options.get("dependencies")),
    )


def package_manager(package: dict[str, object], project: Project) -> str:
    """Return npm, pnpm, yarn or bun: the one that package.json names, else the lock file's."""
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in _LOCKS.values():
        return named
    return next((manager for lock, manager in _LOCKS.items() if lock in project.names), "npm")


def local_tool(manager: str, command: str) -> str:
    """Return a command that runs a tool of node_modules, and never downloads one."""
    match manager:
        case "pnpm":
            return f"pnpm exec {command}"
        case "yarn" | "bun":
            return f"{manager} run {command}"
        case _:
            return f"npx --no-install {command}"


def _command(manager: str, script: str) -> str:
    if manager == "npm" and script == "test":
        return "npm test"
    return f"{manager} run {shlex.quote(script)}"
