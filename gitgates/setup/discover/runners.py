"""Tasks of the task runners: by the table of `commands.toml`, or by a function of the runner's own.

Sources: the GNU make manual, 4.2; just.systems/man; mise.jdx.dev/tasks,
taskfile.dev/reference/schema, seen 2025-11. Includes of Taskfile.yml, files that make includes by a
pattern and modules of just are left out.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from gitgates.setup.discover import tox
from gitgates.setup.discover.project import BadFile, Project, Task, table, texts
from gitgates.setup.discover.tools import in_environment, local_tool, package_manager, runner_prefix
from gitgates.setup.discover.words import (
    DATA,
    PYTHON,
    ending_option,
    find_word,
    is_endless,
    lines_of,
    without_watching,
)

Find: TypeAlias = Callable[[str, Project], list[Task]]

_RUNNERS: dict[str, dict[str, Any]] = DATA["runners"]
_FILES = {runner: tuple(row["files"].split()) for runner, row in _RUNNERS.items()}
FILES = tuple(dict.fromkeys(name for files in _FILES.values() for name in files))
# Each executable file in one of these is a task of mise.
MISE_FOLDERS = ("mise-tasks", ".mise-tasks", "mise/tasks", ".mise/tasks", ".config/mise/tasks")
SCRIPT_FOLDERS = ("scripts", "script", ".")
_PYPROJECT = "pyproject.toml"
# What `npm init` writes: it says that there are no tests, and fails.
_NO_TESTS = "no test specified"
_WIREIT = "wireit"
_SETTINGS = re.compile(r"(?:\w+=\S* +)+")  # before a command: NODE_ENV=test
_CALLS = ("task", "ref", "script")  # keys of a step that name a task
# Options of a task that is not for people, wants a person, or does not end.
_PRIVATE = ("hide", "internal", "requires", "interactive", "watch")


def find_runner_tasks(project: Project) -> tuple[list[Task], list[str]]:
    """Return the tasks of all runners, better ones first, and which files are broken."""
    tasks = [task for folder in MISE_FOLDERS for task in _mise_programs(folder, project)]
    troubles: dict[str, str] = {}
    for runner, files in _FILES.items():
        present = [name for name in files if name in project.texts]
        for name in present[:1] if _RUNNERS[runner].get("first_only") else present:
            try:
                find = _OWN.get(runner) or partial(_in_table, _RUNNERS[runner])
                tasks += find(name, project)
            except BadFile as error:
                troubles[name] = str(error)
    for name in task_scripts(project):
        tasks += _script(name, project) if name in project.texts else []
    return tasks, list(troubles.values())


# tables of tasks


def _in_table(row: dict[str, Any], name: str, project: Project) -> list[Task]:
    """Return the tasks of a file that holds a table of them."""
    call = row["call"].replace("{prefix}", runner_prefix(project))
    call = call.replace("{manager}", package_manager(project))
    settings = project.load(name)
    entries = table(settings, *row["path"])
    if _WIREIT in entries.values():  # which has what they run in a table of its own
        wireit_tasks = table(settings, _WIREIT)
        entries = {
            task: wireit_tasks.get(task) if run == _WIREIT else run for task, run in entries.items()
        }
        row = {**row, "run": ["command"], "needs": ["dependencies"]}
    tasks = [_task(row, task, value, f"{name}: ", call=call) for task, value in entries.items()]
    is_table = "run" in row and _WIREIT not in settings
    if "{manager}" in row["call"]:
        tasks = [task._replace(once=_once(task, project)) for task in tasks]
    return [task for task in tasks if is_table or (task.body and _NO_TESTS not in task.body)]


def _once(task: Task, project: Project) -> str:
    """Return the command that runs a script of package.json once; empty if it does not watch."""
    *_, last = lines_of(task.body) or [""]
    if option := ending_option(last):
        return f"{task.command}{' --' if task.command.startswith('npm ') else ''} {option}"
    plain = without_watching(last)
    if plain == last or plain != without_watching(task.body.strip()) or is_endless(plain):
        return ""
    settings = _SETTINGS.match(plain)
    start = settings.end() if settings else 0
    return plain[:start] + local_tool(plain[start:], project)


def _task(row: dict[str, Any], name: str, value: object, prefix: str, *, call: str) -> Task:
    run, needs = row.get("run", [""]), row.get("needs", ())
    # A list of poe names tasks; anything else that is not a table of options is what runs.
    is_list = isinstance(value, list) and "sequence" in needs
    options = value if isinstance(value, dict) else {"sequence" if is_list else run[0]: value}
    lines, inner, called = _steps(options.get(key) for key in run)
    needed, more, also = _steps(options.get(key) for key in needs)
    descriptions = (options.get(key) for key in ("description", "desc", "help"))
    command = f"{call}{shlex.quote(name)}"
    return Task(
        name=name,
        command="npm test" if command == "npm run test" else command,
        source=prefix + row.get("source", "task {}").format(name),
        scope=row.get("scope", ""),
        body="\n".join((*lines, *inner, *more)),
        needs=(*needed, *also, *called),
        is_private=name.startswith("_") or any(options.get(key) for key in _PRIVATE),
        description=next((text for text in descriptions if isinstance(text, str)), ""),
    )


def _steps(values: Iterable[object]) -> tuple[list[str], list[str], list[str]]:
    """Return the texts in lists, the commands in tables in there, and the tasks that those call."""
    lines: list[str] = []
    commands: list[str] = []
    called: list[str] = []
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                commands += (*texts(item.get("cmd")), *texts(item.get("shell")))
                called += [name for key in _CALLS for name in texts(item.get(key))]
            else:
                lines.append(" ".join(texts(item)))
    return [text for text in lines if text.strip()], commands, called


def _mise(name: str, project: Project) -> list[Task]:
    """Return the tasks of one file of mise, and those of what it includes."""
    row = _RUNNERS["mise"]
    tasks = _in_table(row, name, project)
    for file in included_files(name, project):
        if file in project.texts:
            tasks += _in_table({**row, "path": ()}, file, project)
        tasks += _mise_programs(file, project)
    return tasks


def _mise_programs(folder: str, project: Project) -> list[Task]:
    """Return the tasks of a folder: `lint/js.sh` is `lint:js`."""
    tasks = []
    for file in sorted(name for name in project.names if name.startswith(f"{folder}/")):
        name = file.removeprefix(f"{folder}/").partition(".")[0].replace("/", ":")
        tasks.append(Task(name=name, command=f"mise run {shlex.quote(name)}", source=file))
    return tasks


# Python's runners


def _hatch(name: str, project: Project) -> list[Task]:
    settings, location = project.load(name), name
    if name == _PYPROJECT:
        settings, location = table(settings, "tool", "hatch"), f"{name}: tool.hatch"
    envs = table(settings, "envs")
    tasks = [
        Task(
            name=task, command=command, source=f"{location} envs.{env}", scope=PYTHON, body=command
        )
        for env, (task, command) in DATA["hatch"].items()
        if env in envs
    ]
    for env in sorted(envs, key=lambda env: env != "default"):
        call = "hatch run " if env == "default" else f"hatch run {env}:"
        for task, value in table(envs[env], "scripts").items():
            source = f"{location} envs.{env}.scripts.{task}"
            body = "\n".join(_steps([value])[0])
            tasks.append(Task(task, f"{call}{shlex.quote(task)}", source, scope=PYTHON, body=body))
    return tasks


_SESSION = re.compile(r"(?:\w+\.)*session(?:\(.*?\bname='(?P<name>[^']*)'|\b)")


def _nox(name: str, project: Project) -> list[Task]:
    """Return the sessions of a noxfile, which is parsed and never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in it is not our business
            tree = ast.parse(project.texts[name].removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadFile(name, f"is not valid Python: {error}") from error
    tasks = []
    for function in tree.body:
        for decorator in getattr(function, "decorator_list", ()):
            if match := _SESSION.match(ast.unparse(decorator)):
                session = match["name"] or getattr(function, "name", "")
                call = in_environment("nox", project)
                command, source = f"{call} -s {shlex.quote(session)}", f"{name}: session {session}"
                body = "\n".join(_session_lines(function))
                tasks.append(Task(session, command, source, scope=PYTHON, body=body))
    return tasks


def _session_lines(function: ast.AST) -> list[str]:
    """Return what a session runs, as far as it is written down as text."""
    return [
        " ".join(str(arg.value) for arg in call.args if isinstance(arg, ast.Constant))
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "run"
    ]


# make and just, line by line

# `a b: c ; recipe`, not `a := b`, and not the target-specific variable `a: b = c`.
_RULE = re.compile(
    r"(?P<targets>[A-Za-z0-9_./-]+(?:[ ]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?![:=])"
    r"(?![ \t]*(?:export[ \t]+|override[ \t]+|private[ \t]+)*[A-Za-z_]\w*[ \t]*(?::{0,3}|\+|\?|!)=)"
    r"(?P<needs>[^;#]*)(?:;(?P<inline>[^#]*))?"
)
_DEFINE = re.compile(
    r"^(?:override[ \t]+|export[ \t]+)*define\b.*?(?:^endef.*?$|\Z)", re.MULTILINE | re.DOTALL
)
_RECIPE = re.compile(
    r"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t][^:\n]*)?):(?!=)(?P<needs>[^#]*)"
)
# What may be left out when the recipe is called: `*rest`, `x="default"`.
_OPTIONAL = re.compile(r"""\*\$?[\w-]+(?:=\S+)?|\+?\$?[\w-]+=(?:"[^"]*"|'[^']*'|\S+)""")
_ARGUMENTS = re.compile(r"\(\s*([\w-]+)[^()]*\)")
_NEED = re.compile(r"[A-Za-z_][\w-]*")
_ATTRIBUTE = re.compile(r"\[(?P<words>[^\]]*)\]\s*$")
_NO_RECIPE = re.compile(r"(?:set|export|alias|import|mod)\b")
_INCLUDES = {
    "make": re.compile(r"^[-s]?include[ \t]+([\w./-]+)[ \t]*$", re.MULTILINE),
    "just": re.compile(r"""^import\??[ \t]+['"]([^'"]+)['"]""", re.MULTILINE),
}


def included_files(name: str, project: Project) -> tuple[str, ...]:
    """Return the files and folders that a task file includes by their names. Raises: BadFile."""
    if name in _FILES["mise"]:
        return texts(table(project.load(name), "task_config").get("includes"))
    includes = next((_INCLUDES[runner] for runner in _INCLUDES if name in _FILES[runner]), None)
    return tuple(includes.findall(project.texts[name])) if includes else ()


def _text(name: str, project: Project) -> str:
    """Return a file with those that it includes, its continued lines joined."""
    read = (name, *(file for file in included_files(name, project) if file in project.texts))
    text = "\n".join(project.texts[file] for file in read)
    return text.replace("\r\n", "\n").replace("\\\n", " ")


def _make(name: str, project: Project) -> list[Task]:
    """Return the targets of a makefile."""
    bodies: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    for line in _DEFINE.sub("", _text(name, project)).split("\n"):
        if line.startswith("\t"):
            for target in current:
                bodies[target].append(line.strip().lstrip("@-+ "))
        elif rule := _RULE.match(line):
            current = rule["targets"].split()
            for target in current:
                inline = [rule["inline"].strip()] if rule["inline"] else []
                bodies.setdefault(target, []).extend(inline)
                needs.setdefault(target, []).extend(rule["needs"].replace("|", " ").split())
        elif line.strip() and not line.startswith("#"):
            current = []
    return [
        Task(
            name=target,
            command=f"make {target}",
            source=f"{name}: target {target}",
            body="\n".join(body),
            needs=tuple(needs[target]),
        )
        for target, body in bodies.items()
        if not target.startswith((".", "-"))
    ]


def _just(name: str, project: Project) -> list[Task]:
    """Return the recipes of a justfile; one that cannot be called as it is is private."""
    recipes: list[Task] = []
    is_private = False
    for line in _text(name, project).split("\n"):
        if attribute := _ATTRIBUTE.match(line):
            is_private = is_private or "private" in attribute["words"]
        elif line.startswith((" ", "\t")) and recipes:
            body = f"{recipes[-1].body}\n{line.strip().lstrip('@-')}"
            recipes[-1] = recipes[-1]._replace(body=body.removeprefix("\n"))
        elif (recipe := _RECIPE.match(line)) and not _NO_RECIPE.match(line):
            has_arguments = _OPTIONAL.sub("", recipe["parameters"]).strip()
            recipes.append(
                Task(
                    name=recipe["name"],
                    command=f"just {recipe['name']}",
                    source=f"{name}: recipe {recipe['name']}",
                    # `(other "argument")` needs `other`
                    needs=tuple(_NEED.findall(_ARGUMENTS.sub(r"\1", recipe["needs"]))),
                    is_private=bool(is_private or has_arguments or recipe["name"].startswith("_")),
                )
            )
            is_private = False
    return recipes


# scripts

_SHELL = re.compile(r"#! ?\S*/(?:env +)?(?:ba|z|k|da)?sh\b")
# It ends without its first argument.
_ASKS = re.compile(r"\$\{1:?\?|\[ *\$# -(?:lt|eq|ne) ")


def task_scripts(project: Project) -> list[str]:
    """Return the scripts that are named like a task, `scripts/lint`, the first folder's first."""
    scripts = []
    for folder in SCRIPT_FOLDERS:
        for name in sorted(project.names):
            parent, _, file = name.rpartition("/")
            stem, dot, end = file.partition(".")
            if parent == folder and (end == "sh" or not dot) and find_word(stem):
                scripts.append(name)
    return scripts


def _script(name: str, project: Project) -> list[Task]:
    text = project.texts[name]
    if not _SHELL.match(text) or _ASKS.search(text):
        return []
    plain = name.rpartition("/")[2].partition(".")[0]
    return [Task(name=plain, command=name, source=name, body=text.partition("\n")[2])]


_OWN: dict[str, Find] = {
    "mise": _mise,
    "just": _just,
    "make": _make,
    "nox": _nox,
    "hatch": _hatch,
    "tox": tox.find,
}
