"""Tools that a project has set up, or that its CI runs, and how each is called in its environment.

A tool is proposed only where the project's own environment has it. The toolchains of Go and Rust
are the environment. A workflow of GitHub says how a project calls its tools, and that they pass.
"""

from __future__ import annotations

import re

from gitgates.setup.discover.project import BadFile, Project, Task, table, tables, texts
from gitgates.setup.discover.words import (
    DATA,
    JAVASCRIPT,
    PYTHON,
    ending_option,
    is_fixing,
    kind_of,
    language_of,
    lines_of,
    pattern,
    program_of,
)

_TOOLS = [(scope, tool) for scope, rows in DATA["tools"].items() for tool in rows]
_LOCKS, _NODE_LOCKS = DATA["locks"][PYTHON], DATA["locks"][JAVASCRIPT]
# These two are `link`ed into private checkouts, as others are not.
ENVIRONMENTS = (".venv/bin", "venv/bin")
_RUNNERS = ("tox", "nox")
# Programs that may be in the PATH: tools of Python, and the interpreters that tox asks for.
IN_PATH = frozenset(
    (
        *_RUNNERS,
        *(tool["command"].partition(" ")[0] for scope, tool in _TOOLS if scope == PYTHON),
        *(f"python3.{minor}" for minor in range(6, 30)),
    )
)
_REQUIREMENT = re.compile(r"\s*([\w.-]+)")
READS = (
    *(sign.partition(" [")[0] for _, tool in _TOOLS for sign in tool["signs"] if "[" in sign),
    *_LOCKS,
)
WORKFLOWS = ".github/workflows"
_CHECKED_EVENTS = {"push", "pull_request"}
_NO_CHECK, _NOT_PLAIN, _IN_PART = map(pattern, ("no_check", "not_plain", "in_part"))
_BARE = re.compile(r"(?:python[\d.]*\s+-m\s+)?(?=[a-z])|npx\s+(?:--no-install\s+)?")


def find_languages(project: Project) -> tuple[str, ...]:
    """Return the languages that the files in the root show."""
    return tuple(name for name, files in DATA["signs"].items() if project.names & {*files.split()})


def find_defaults(project: Project) -> list[Task]:
    """Return a task for each tool that is set up."""
    tasks = []
    for scope, tool in _TOOLS:
        sources = (_source(project, sign) for sign in tool["signs"])
        source = next(filter(None, sources), "")
        if source:
            command, missing = _resolve(tool["command"], scope, project)
            tasks.append(
                Task(
                    name=tool["word"],
                    command=command,
                    source=source,
                    scope=scope,
                    body=tool.get("runs", tool["command"]),
                    missing=missing,
                    is_default=True,
                    keys={key: tool[key] for key in ("files", "pass_files") if key in tool},
                )
            )
    return tasks


def _source(project: Project, sign: str) -> str:
    """Return where a sign was found, for a person; empty where it was not."""
    file, has_more, rest = sign.partition(" [")
    section, _, keys = rest.partition("]")
    if file.endswith("*"):
        return min((name for name in project.names if name.startswith(file[:-1])), default="")
    if file not in project.names or not has_more:
        return file if file in project.names else ""
    settings = load_or_empty(project, file)
    if section:
        *above, last = section.split(".") if file.endswith((".toml", ".json")) else [section]
        if last not in table(settings, *above):
            return ""
        settings = table(settings, *above, last)
    if file == "tsconfig.json" and "references" in settings:
        return ""
    if keys and not settings.keys() & set(keys.split()):
        return ""
    return f"{file}: [{section}]" if section else file


def _resolve(command: str, scope: str, project: Project) -> tuple[str, str]:
    """Return a command that runs in the project's own environment, or why there is none.

    Programs of other languages than Python and JavaScript are taken as they are.
    """
    program = command.partition(" ")[0]
    if scope == JAVASCRIPT:
        is_installed = f"node_modules/.bin/{program}" in project.names
        missing = "" if is_installed else f"node_modules/.bin/{program} not found"
        return local_tool(command, project), missing
    if scope != PYTHON:
        return command, ""
    call = in_environment(program, project)
    is_available = call != program or program in project.in_path
    missing = "" if is_available else f"neither locked, nor in {', '.join(ENVIRONMENTS)} or PATH"
    return call + command.removeprefix(program), missing


def in_environment(program: str, project: Project) -> str:
    """Return how a project calls a program of Python: by its lock file, its folder, or its name."""
    locked = re.compile(rf'(?m)^(?:name = "{re.escape(program)}"$|\s*"{re.escape(program)}": \{{)')
    for lock, manager in _LOCKS.items():
        if locked.search(project.texts.get(lock, "")):
            option = _option_of_uv(program, project) if manager == "uv" else ""
            return f"{manager} run {option}{program}"
    folder = next((folder for folder in ENVIRONMENTS if f"{folder}/{program}" in project.names), "")
    return f"{folder}/{program}" if folder else program


def _option_of_uv(program: str, project: Project) -> str:
    """Return the option with which uv installs a program that it leaves out otherwise.

    Source: docs.astral.sh/uv, concepts/projects/dependencies.
    """
    settings = load_or_empty(project, "pyproject.toml")
    groups, uv = table(settings, "dependency-groups"), table(settings, "tool", "uv")
    usual = (
        (*groups,) if uv.get("default-groups") == "all" else texts(uv.get("default-groups", "dev"))
    )
    always = (
        *texts(table(settings, "project").get("dependencies")),
        *texts(uv.get("dev-dependencies")),
    )
    inside = [name for name in groups if program in _packages(_members(name, groups, ()))]
    if program in _packages(always) or {*inside} & {*usual}:
        return ""
    extras = table(settings, "project", "optional-dependencies")
    options = [f"--group {name} " for name in inside]
    options += [f"--extra {name} " for name in extras if program in _packages(texts(extras[name]))]
    return options[0] if options else ""


def _members(name: str, groups: dict[str, object], above: tuple[str, ...]) -> tuple[str, ...]:
    """Return the requirements of a group, and of those that it includes."""
    included = [str(member.get("include-group")) for member in tables(groups.get(name))]
    requirements = texts(groups.get(name))
    for other in included if name not in above else ():
        requirements += _members(other, groups, (*above, name))
    return requirements


def _packages(requirements: tuple[str, ...]) -> set[str]:
    names = (match[1] for text in requirements if (match := _REQUIREMENT.match(text)))
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def local_tool(command: str, project: Project) -> str:
    """Return a command that runs a tool of node_modules, and never downloads one."""
    manager = package_manager(project)
    call = {"pnpm": "pnpm exec", "npm": "npx --no-install"}.get(manager, f"{manager} run")
    return f"{call} {command}"


def package_manager(project: Project) -> str:
    """Return npm, pnpm, yarn or bun: the one that package.json names, else the lock file's."""
    package = load_or_empty(project, "package.json")
    manager = str(package.get("packageManager", "")).partition("@")[0]
    if manager in _NODE_LOCKS.values():
        return manager
    return next((manager for lock, manager in _NODE_LOCKS.items() if lock in project.names), "npm")


def runner_prefix(project: Project) -> str:
    """Return what to write before a tool so that the project's own environment runs it."""
    return next((f"{name} run " for lock, name in _LOCKS.items() if lock in project.names), "")


def load_or_empty(project: Project, file: str) -> dict[str, object]:
    """Return the settings of a file; what cannot be read has none."""
    try:
        return project.load(file)
    except BadFile:
        return {}  # reported when its tasks are read


# CI


def workflows(project: Project) -> tuple[str, ...]:
    """Return the workflows that may check a change."""
    return tuple(
        name
        for name in sorted(project.names)
        if name.startswith(f"{WORKFLOWS}/")
        and name.endswith((".yml", ".yaml"))
        and not _NO_CHECK.search(name)
    )


def find_in_workflow(name: str, project: Project) -> list[Task]:
    """Return the commands of one workflow that are plain."""
    settings = load_or_empty(project, name)  # what is broken is GitHub's to complain of
    if not (_CHECKED_EVENTS & _events(settings) or _is_called(name, project)):
        return []
    steps = [
        step
        for job in table(settings, "jobs").values()
        for step in tables(table(job).get("steps"))
        if isinstance(step.get("run"), str) and "working-directory" not in step
    ]
    lines = [line for step in steps for line in lines_of(step["run"])]
    return [task for line in lines if (task := _ci_task(line, name, project))]


def _events(workflow: dict[str, object]) -> set[str]:
    events = table(workflow).get("on", table(workflow).get("True"))  # `on` is true in YAML
    return {*texts(events), *table(events)}


def _is_called(name: str, project: Project) -> bool:
    """Return whether a workflow is called by another one that checks a change."""
    callers = [load_or_empty(project, other) for other in workflows(project) if other != name]
    return "workflow_call" in _events(load_or_empty(project, name)) and any(
        str(table(job).get("uses", "")).endswith(name)
        for caller in callers
        if {*_CHECKED_EVENTS, "workflow_call"} & _events(caller)
        for job in table(caller, "jobs").values()
    )


def _ci_task(line: str, source: str, project: Project) -> Task | None:
    """Return a line as a task; None if it is not a check, or checks only a part."""
    program = program_of(line)
    kind, scope, first = kind_of(program), language_of(program), program.partition(" ")[0]
    if not kind or _NOT_PLAIN.search(line) or _IN_PART.search(line) or is_fixing(line):
        return None
    if first in _RUNNERS:
        return None  # their own files say more
    command, missing = line, ""
    bare = line[match.end() :] if (match := _BARE.match(line)) else line
    if scope in (PYTHON, JAVASCRIPT) and bare.startswith(first):
        line = bare
        bare = bare.replace("ruff check", "ruff check --no-fix")  # its settings may say `fix`
        command, missing = _resolve(bare, scope, project)
    return Task(
        name=kind,
        command=command,
        source=source,
        scope=scope,
        body=line,
        once=f"{command} {option}" if (option := ending_option(line)) else "",
        missing=missing,
        is_ci=True,
    )
