"""Tasks of the task runners: one table of those that hold tables of tasks, and the others.

Sources: mise.jdx.dev/tasks, taskfile.dev/reference/schema, tox.wiki (configuration), seen 2025-11.
Includes of Taskfile.yml and generated environments of tox are left out.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings

from gitgates.discover.project import BadFile, Project, Task, read_ini, table, texts
from gitgates.discover.recipes import JUST, MAKE, find_just, find_make, included
from gitgates.discover.tools import package_manager, runner_prefix
from gitgates.discover.words import JAVASCRIPT, PYTHON, find_word
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Find: TypeAlias = Callable[[str, Project], list[Task]]

# Each executable file in one of these is a task of mise.
MISE_FOLDERS = ("mise-tasks", ".mise-tasks", "mise/tasks", ".mise/tasks", ".config/mise/tasks")
SCRIPT_FOLDERS = ("scripts", "script", ".")
_MISE_FILES = (
    *("mise.toml", ".mise.toml", "mise/config.toml", ".mise/config.toml"),
    *(".config/mise.toml", ".config/mise/config.toml"),
)
_TASKFILES = (
    *("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    *("Taskfile.dist.yml", "taskfile.dist.yml", "Taskfile.dist.yaml", "taskfile.dist.yaml"),
)
_PYPROJECT = "pyproject.toml"
# What `npm init` writes: it says that there are no tests, and fails.
_NO_TESTS = "no test specified"
# Options of a task that is not for people, wants a person, or does not end.
_PRIVATE = ("hide", "internal", "requires", "interactive", "watch")


class Runner(Record):
    """A task runner whose file holds a table: task → what it runs, or a table of options."""

    path: tuple[str, ...]  # of the table
    call: str
    source: str = "task {}"  # where a task stands, for a person
    scope: str = ""
    run: tuple[str, ...] = ("",)  # the options with commands; "": each task is one text
    needs: tuple[str, ...] = ()  # the options with names of tasks

    def find(self, name: str, project: Project) -> list[Task]:
        """Return the tasks of one file."""
        call = self.call.replace("{prefix}", runner_prefix(project))
        call = call.replace("{manager}", package_manager(project))
        tasks = table(project.load(name), *self.path)
        found = [self._task(task, value, name, call) for task, value in tasks.items()]
        is_text = self.run == ("",)
        return [task for task in found if not is_text or (task.body and _NO_TESTS not in task.body)]

    def _task(self, name: str, value: object, file: str, call: str) -> Task:
        # A list of poe names tasks; anything else that is no table of options is what runs.
        is_list = isinstance(value, list) and "sequence" in self.needs
        usual = {"sequence" if is_list else self.run[0]: value}
        options = value if isinstance(value, dict) else usual
        lines, inner, called = _steps(options.get(key) for key in self.run)
        needed, more, also = _steps(options.get(key) for key in self.needs)
        described = (options.get(key) for key in ("description", "desc", "help"))
        command = f"{call}{shlex.quote(name)}"
        return Task(
            name=name,
            command="npm test" if command == "npm run test" else command,
            source=f"{file}: {self.source.format(name)}",
            scope=self.scope,
            body="\n".join((*lines, *inner, *more)),
            needs=(*needed, *also, *called),
            is_private=name.startswith("_") or any(options.get(key) for key in _PRIVATE),
            description=next((one for one in described if isinstance(one, str)), ""),
        )


def _steps(values: Iterable[object]) -> tuple[list[str], list[str], list[str]]:
    """Return the texts in lists, the commands in tables in there, and the tasks that those call."""
    found: list[str] = []
    commands: list[str] = []
    called: list[str] = []
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                commands += (*texts(item.get("cmd")), *texts(item.get("shell")))
                called += (*texts(item.get("task")), *texts(item.get("ref")))
            else:
                found.append(" ".join(texts(item)))
    return [text for text in found if text.strip()], commands, called


_MISE = Runner(("tasks",), "mise run ", run=("run",), needs=("depends",))
_TASKFILE = Runner(("tasks",), "task ", run=("cmds", "cmd"), needs=("deps",))
_NPM = Runner(("scripts",), "{manager} run ", "script {}", JAVASCRIPT)
_DENO = Runner(("tasks",), "deno task ", "task {}", JAVASCRIPT, ("command",), ("dependencies",))
_POE = Runner(
    path=("tool", "poe", "tasks"),
    call="{prefix}poe ",
    source="tool.poe.tasks.{}",
    scope=PYTHON,
    run=("cmd", "shell", "script"),
    needs=("deps", "sequence"),
)
_TASKIPY = Runner(
    ("tool", "taskipy", "tasks"), "{prefix}task ", "tool.taskipy.tasks.{}", PYTHON, ("cmd",)
)
_PDM = Runner(
    ("tool", "pdm", "scripts"),
    "pdm run ",
    "tool.pdm.scripts.{}",
    PYTHON,
    ("cmd", "shell", "composite"),
)
# Environments of hatch itself: who sets one up uses its command.
_HATCH_BUILT_IN = (
    ("hatch-static-analysis", "lint", "hatch fmt --check"),
    ("hatch-test", "test", "hatch test"),
)


def _hatch(name: str, project: Project) -> list[Task]:
    settings, where = project.load(name), name
    if name == _PYPROJECT:
        settings, where = table(settings, "tool", "hatch"), f"{name}: tool.hatch"
    envs = table(settings, "envs")
    found = [
        Task(name=task, command=command, source=f"{where} envs.{env}", scope=PYTHON, body=command)
        for env, task, command in _HATCH_BUILT_IN
        if env in envs
    ]
    for env in sorted(envs, key=lambda env: env != "default"):
        call = "hatch run " if env == "default" else f"hatch run {env}:"
        for task, value in table(envs[env], "scripts").items():
            source = f"{where} envs.{env}.scripts.{task}"
            body = "\n".join(_steps([value])[0])
            command = f"{call}{shlex.quote(task)}"
            found.append(Task(task, command, source, scope=PYTHON, body=body))
    return found


_POSARGS = re.compile(r"\{posargs[^}]*\}")


def _tox(name: str, project: Project) -> list[Task]:
    """Return the environments of one file; `test` stands for the plain one."""
    settings = project.load(name)
    if name == _PYPROJECT:
        settings = table(settings, "tool", "tox")
    legacy = settings.get("legacy_tox_ini")
    if isinstance(legacy, str):
        settings = read_ini(legacy)
    if isinstance(legacy, str) or not name.endswith(".toml"):
        section = "tox:tox" if name == "setup.cfg" else "tox"
        if name == "setup.cfg" and section not in settings:
            return []
        sections = [one for one in settings if one.startswith("testenv:")]
        envs = {one.removeprefix("testenv:"): settings[one] for one in sections}
        core = table(settings, section)
        names = tuple((core.get("envlist") or core.get("env_list") or "").replace(",", " ").split())
        has_plain = "testenv" in settings
    else:
        envs, names = table(settings, "env"), texts(settings.get("env_list"))
        has_plain = bool(settings.get("env_run_base"))
    bodies = {env: _steps([table(envs, env).get("commands")])[0] for env in envs}
    found = {env: _tox_task(name, env, env, bodies.get(env, [])) for env in (*envs, *names)}
    if has_plain and "test" not in found and "tests" not in found:
        # `py` is the plain environment with the interpreter that tox itself runs on.
        found["test"] = _tox_task(name, "test", "py", [])
    return list(found.values())


def _tox_task(file: str, name: str, env: str, lines: list[str]) -> Task:
    body = _POSARGS.sub("", "\n".join(lines))
    command = f"tox -e {shlex.quote(env)}"
    return Task(name, command, f"{file}: environment {env}", scope=PYTHON, body=body)


def _nox(name: str, project: Project) -> list[Task]:
    """Return the sessions of a noxfile, which is parsed and never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in it is not our business
            tree = ast.parse(project.texts[name].removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadFile(f"is no valid Python: {error}") from error
    found = []
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and (
            session := _session_name(function)
        ):
            command = f"nox -s {shlex.quote(session)}"
            body = "\n".join(_session_lines(function))
            source = f"{name}: session {session}"
            found.append(Task(session, command, source, scope=PYTHON, body=body))
    return found


def _session_name(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    for decorator in function.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(call, "attr", getattr(call, "id", "")) != "session":
            continue
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
        return function.name
    return ""


def _session_lines(function: ast.AST) -> list[str]:
    """Return what a session runs, as far as it is written down as text."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [
        " ".join(str(arg.value) for arg in call.args if isinstance(arg, ast.Constant))
        for call in calls
        if getattr(call.func, "attr", "") == "run"
    ]


def _mise(name: str, project: Project) -> list[Task]:
    """Return the tasks of one file of mise, and those of what it includes."""
    found = _MISE.find(name, project)
    for file in included_files(name, project):
        if file in project.texts:
            found += _MISE._replace(path=()).find(file, project)
        found += _mise_programs(file, project)
    return found


def _mise_programs(folder: str, project: Project) -> list[Task]:
    """Return the tasks of a folder: `lint/js.sh` is `lint:js`."""
    start = f"{folder}/"
    files = [name for name in sorted(project.names) if name.startswith(start)]
    names = [name.removeprefix(start).partition(".")[0].replace("/", ":") for name in files]
    return [
        Task(name=name, command=f"mise run {shlex.quote(name)}", source=file)
        for name, file in zip(names, files, strict=True)
    ]


_SHELL = re.compile(r"#! ?\S*/(?:env +)?(?:ba|z|k|da)?sh\b")
# It ends without its first argument.
_ASKS = re.compile(r"\$\{1:?\?|\[ *\$# -(?:lt|eq|ne) ")


def task_scripts(project: Project) -> list[str]:
    """Return the scripts that are named like a task, `scripts/lint`, the first folder's first."""
    found = []
    for folder in SCRIPT_FOLDERS:
        for name in sorted(project.names):
            where, _, file = name.rpartition("/")
            stem, dot, end = file.partition(".")
            if where == folder and (end == "sh" or not dot) and find_word(stem):
                found.append(name)
    return found


def _script(name: str, project: Project) -> list[Task]:
    text = project.texts[name]
    if not _SHELL.match(text) or _ASKS.search(text):
        return []
    plain = name.rpartition("/")[2].partition(".")[0]
    return [Task(name=plain, command=name, source=name, body=text.partition("\n")[2])]


# Where two runners know the same word, the earlier one is asked: the outer ones call the inner.
# Of some runners' files, only the first is read.
RUNNERS: tuple[tuple[tuple[str, ...], Find, bool], ...] = (
    (_MISE_FILES, _mise, False),
    (JUST, find_just, True),
    (MAKE, find_make, True),
    (_TASKFILES, _TASKFILE.find, True),
    (("package.json",), _NPM.find, False),
    (("deno.json",), _DENO.find, False),
    (("noxfile.py",), _nox, False),
    ((_PYPROJECT,), _POE.find, False),
    ((_PYPROJECT,), _TASKIPY.find, False),
    ((_PYPROJECT,), _PDM.find, False),
    ((_PYPROJECT, "hatch.toml"), _hatch, False),
    (("tox.ini", "tox.toml", _PYPROJECT, "setup.cfg"), _tox, False),
)
FILES = tuple(dict.fromkeys(name for files, _, _ in RUNNERS for name in files))


def included_files(name: str, project: Project) -> tuple[str, ...]:
    """Return the files and folders that a task file includes by their names. Raises: BadFile."""
    if name in (*JUST, *MAKE):
        return included(name, project)
    if name in _MISE_FILES:
        return texts(table(project.load(name), "task_config").get("includes"))
    return ()


def find_runner_tasks(project: Project) -> tuple[list[Task], list[str]]:
    """Return the tasks of all runners, better ones first, and which files are broken."""
    tasks = [task for folder in MISE_FOLDERS for task in _mise_programs(folder, project)]
    troubles: dict[str, str] = {}
    for files, find, first_only in RUNNERS:
        there = [name for name in files if name in project.texts]
        for name in there[:1] if first_only else there:
            try:
                tasks += find(name, project)
            except BadFile as error:
                troubles[name] = f"{name}: {error}; nothing of it is used"
    for name in task_scripts(project):
        tasks += _script(name, project) if name in project.texts else []
    return tasks, list(troubles.values())
