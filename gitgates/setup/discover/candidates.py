"""Find the commands that may become gates: tasks by their names, tools by their files.

Each is found with how the project starts it, and with what is missing here to start it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from gitgates.core.record import Record
from gitgates.setup.discover.folder import KNOWN, ProjectFolder, Tree
from gitgates.setup.task_files import table, texts
from gitgates.worktree.lock_files import INSTALL_COMMANDS

KINDS: dict[str, dict[str, Any]] = KNOWN["kinds"]
_NAMES = {kind: tuple(row["names"].split()) for kind, row in KINDS.items()}
_FIXERS = {kind: tuple(row.get("fixers", "").split()) for kind, row in KINDS.items()}
_SEPARATOR = re.compile(r"[:_.\s/]+")
_SCRIPT_ENDS = ("", ".sh", ".bash", ".py")
_Call: TypeAlias = tuple[str, str]  # command, and why it cannot start, or ""
_Tasks: TypeAlias = Iterator[tuple[str, str]]  # environment, or "", and name
_PYTHON_LOCKS: dict[str, str] = KNOWN["locks"]["python"]
_NODE_LOCKS: dict[str, str] = KNOWN["locks"]["node"]
_VENVS = (".venv/bin", "venv/bin")


class GateCandidate(Record):
    """A command that may become a gate."""

    kind: str
    command: str
    source: str  # where it was found, for a person
    ecosystem: str = ""  # what it checks; empty: everything in its folder
    folder: str = ""  # where it runs, relative to the root
    files: tuple[str, ...] = ()
    pass_files: bool = False
    missing: str = ""  # why it cannot start
    may_change: bool = False  # whether its name says that it changes files
    is_task: bool = True  # whether the project defines it; if not, it is a tool's usual command
    is_whole: bool = False  # whether it checks many packages
    is_end_to_end: bool = False  # whether its folder has tests that need a browser or containers
    framework: str = ""  # pre-commit or prek, if it runs all of its hooks

    @property
    def key(self) -> tuple[str, str]:
        """Return where it runs, and what."""
        return self.folder, self.command

    def covers(self, other: GateCandidate) -> bool:
        """Return whether this one makes the other one, which comes later, unnecessary."""
        if self.kind != other.kind:
            return False
        if not self.ecosystem:
            return self.folder in ("", other.folder)
        return (self.ecosystem, self.folder) == (other.ecosystem, other.folder)

    def overlaps(self, other: GateCandidate) -> bool:
        """Return whether the two are alternatives."""
        return self.covers(other) or other.covers(self)


class TryResult(Record):
    """How a candidate's try ended."""

    why_not: str = ""  # why it cannot be a gate here; empty: it can
    runs_on: bool = False  # whether it reached its time limit
    seconds: float = 0.0
    has_failed: bool = False  # whether it reported failures
    changed: int = 0  # how many of the project's files it changed
    remark: str = ""


Outcomes: TypeAlias = Mapping[tuple[str, str], TryResult]  # by the candidates' keys


def find_candidates(tree: Tree, env: Mapping[str, str]) -> list[GateCandidate]:
    """Return the candidates in all folders, better ones first."""
    environments = Environments(tree, env)
    candidates: list[GateCandidate] = []
    for folder in tree.folders:
        present = [name for name, row in KNOWN["ecosystems"].items() if _is_in(folder, row, tree)]
        whole = {name for name in present if _is_whole(folder, KNOWN["ecosystems"][name])}
        is_end_to_end = bool(folder.find(*KNOWN["folders"]["end_to_end"].split()))
        tools = (each for name in present for each in _tools(name, folder, environments))
        for each in (*_tasks(folder, environments), *tools):
            is_whole = each.ecosystem in whole if each.ecosystem else bool(whole)
            placed = each._replace(folder=folder.path, is_end_to_end=is_end_to_end)
            candidates.append(placed._replace(is_whole=is_whole))
    return [*dict.fromkeys(candidates)]


def _is_in(folder: ProjectFolder, row: dict[str, Any], tree: Tree) -> bool:
    """Return whether a folder belongs to an ecosystem; subfolders only if the root does not."""
    signs = row["signs"].split()
    return bool(folder.find(*signs)) and (folder is tree.root or not tree.root.find(*signs))


def _is_whole(folder: ProjectFolder, row: dict[str, Any]) -> bool:
    return any(folder.shows(sign) for sign in row.get("whole", ()))


def _tasks(folder: ProjectFolder, environments: Environments) -> Iterator[GateCandidate]:
    """Yield the tasks with a kind's name; for each runner, better names first."""
    for row in KNOWN["runners"]:
        source = folder.find(*row.get("files", "").split())
        names = _task_names(row, source, folder) if source else []
        for part in row.get("folders", "").split():
            names += _programs(part, folder)
        ranked = []
        for env, task in names:
            kind, rank, may_change = _kind_of(task, row.get("kinds", {}))
            if kind:
                command, missing = environments.task(row, folder, task, env)
                where = f"{folder.source(source)}: {task}" if source else folder.source(env)
                candidate = GateCandidate(kind, command, where, row.get("ecosystem", ""))
                candidate = candidate._replace(missing=missing, may_change=may_change)
                ranked.append(((may_change, rank), candidate))
        yield from (candidate for _rank, candidate in sorted(ranked, key=lambda pair: pair[0]))


def _kind_of(task: str, others: Mapping[str, str]) -> tuple[str, int, bool]:
    """Return a task's kind by its name, the name's rank, and whether it says that files change."""
    plain = _SEPARATOR.sub("-", task.lower())
    if plain in others:
        return others[plain], len(_NAMES[others[plain]]), False
    for kind, names in _NAMES.items():
        if plain in names:
            return kind, names.index(plain), False
        if plain in _FIXERS[kind]:
            return kind, _FIXERS[kind].index(plain), True
    return "", 0, False


def _task_names(row: dict[str, Any], file: str, folder: ProjectFolder) -> list[tuple[str, str]]:
    """Return the tasks in a file, each with the environment that it belongs to."""
    if "path" in row:
        return [*_in_tables(row, folder.table(file), row["path"].split("."), "")]
    renamed: dict[str, str] = row.get("renamed", {})
    names: list[str] = []
    for match in re.finditer(row["pattern"], folder.text(file).replace("\\\n", " "), re.MULTILINE):
        groups = [group for group in match.groups() if group]
        tasks = groups[-1].split() if groups else [""]
        names += [renamed.get(task, task) for task in tasks]
    return [("", name) for name in dict.fromkeys(names)]


def _in_tables(row: dict[str, Any], value: object, path: list[str], env: str) -> _Tasks:
    """Yield the tasks of the tables at a path."""
    tasks = table(value)
    if not path:
        empty = row.get("empty", "\0")
        yield from ((env, name) for name, run in tasks.items() if empty not in str(run))
    elif path[0] == "*":
        for name in sorted(tasks, key=lambda name: name != "default"):
            yield from _in_tables(row, tasks[name], path[1:], name)
    else:
        yield from _in_tables(row, tasks.get(path[0]), path[1:], env)


def _programs(part: str, folder: ProjectFolder) -> list[tuple[str, str]]:
    """Return the executable files in a folder: path and name."""
    programs = []
    for path in sorted(folder.files):
        parent, file = os.path.split(path)
        name, end = os.path.splitext(file)
        is_script = (parent or ".") == part and end in _SCRIPT_ENDS
        if is_script and os.access(os.path.join(folder.path_abs, path), os.X_OK):
            programs.append((path, name))
    return programs


def _tools(name: str, folder: ProjectFolder, environments: Environments) -> Iterator[GateCandidate]:
    """Yield the usual commands of an ecosystem's tools that a folder has set up."""
    for tool in KNOWN["tools"].get(name, ()):
        source = next(filter(None, map(folder.shows, tool["signs"])), "")
        if source:
            command, missing = environments.tool(tool, name, folder)
            usual = GateCandidate(tool["kind"], command, source, name, missing=missing)
            files, pass_files = tuple(tool.get("files", ())), tool.get("pass_files", False)
            yield usual._replace(files=files, pass_files=pass_files, is_task=False)


# How they start


class Environments:
    """The environments of a project's folders, and the programs in PATH."""

    def __init__(self, tree: Tree, env: Mapping[str, str]) -> None:
        self._root = tree.root
        folders = env.get("PATH", os.defpath).split(os.pathsep)
        # A shim of pyenv, asdf or mise exists even if the program that it starts does not.
        shims = [folder for folder in folders if "shims" in folder.split("/")]
        self._path = os.pathsep.join(folder for folder in folders if folder not in shims)
        self._shims = os.pathsep.join(shims) or os.devnull

    def task(self, row: dict[str, Any], folder: ProjectFolder, task: str, env: str) -> _Call:
        """Return the command that runs a task, and why it cannot start, or ""."""
        if row["call"] == "{path}":
            return shlex.quote(env if "/" in env else f"./{env}"), ""
        task = task if re.fullmatch(r"[\w./:@+-]+", task) else shlex.quote(task)
        prefix = "" if env == "default" else f"{env}:"
        command = row["call"].replace("{env}:", prefix).replace("{task}", task)
        command = command.replace("{node}", self._node(folder))
        if row.get("python"):
            return self._python(command, folder)
        return command, self._missing(command, folder, row.get("ecosystem", ""))

    def tool(self, row: dict[str, Any], ecosystem: str, folder: ProjectFolder) -> _Call:
        """Return the command that runs a tool, and why it cannot start, or ""."""
        command = row["command"]
        if ecosystem == "python":
            return self._python(command, folder)
        if row.get("node"):
            return self._node_tool(command, folder)
        return command, self._missing(row.get("program", "") or command, folder, ecosystem)

    def _missing(self, command: str, folder: ProjectFolder, ecosystem: str = "") -> str:
        """Return why a command cannot start: its program, or its packages, are missing."""
        program = command.split(maxsplit=1)[0]
        if "/" not in program:
            missing = self._not_found(program)
        else:
            missing = "" if folder.has(program) else f"{program} is not found"
        return missing or self._not_installed(ecosystem, folder)

    def _not_found(self, program: str, where: str = "") -> str:
        """Return why a program cannot start; empty if it is in PATH."""
        if shutil.which(program, path=self._path):
            return ""
        shim = shutil.which(program, path=self._shims)
        what = f"is only a shim ({shim}), which may start nothing" if shim else "is not found"
        return f"{program} {what}{where}"

    def _not_installed(self, ecosystem: str, folder: ProjectFolder) -> str:
        """Return what to install first if a folder needs packages and has none."""
        row = KNOWN["ecosystems"].get(ecosystem, {})
        installed = row.get("installed", "").split()
        declares = any(_declares(folder, sign) for sign in row.get("declares", ()))
        if not declares or any(f.has(name) for f in (folder, self._root) for name in installed):
            return ""
        usual = row["install"].replace("{node}", self._node(folder))
        commands = (INSTALL_COMMANDS[lock] for lock in INSTALL_COMMANDS if lock in folder.files)
        command = next(commands, usual)
        return f"its packages are not installed: {installed[0]} is missing; first: {command}"

    def _node(self, folder: ProjectFolder) -> str:
        """Return npm, pnpm, yarn or bun: the one in package.json, or the lock file's."""
        for place in (folder, self._root):
            manager = str(place.table("package.json").get("packageManager", "")).partition("@")[0]
            if manager in _NODE_LOCKS.values():
                return manager
            if lock := place.find(*_NODE_LOCKS):
                return _NODE_LOCKS[lock]
        return "npm"

    def _node_tool(self, command: str, folder: ProjectFolder) -> _Call:
        """Return a command that runs a tool in node_modules, without downloading it."""
        manager = self._node(folder)
        call = {"pnpm": "pnpm exec", "npm": "npx --no-install"}.get(manager, f"{manager} run")
        file = f"node_modules/.bin/{command.split(maxsplit=1)[0]}"
        is_there = folder.has(file) or self._root.has(file)
        missing = "" if is_there else f"{file} is not found"
        return f"{call} {command}", missing or self._missing(call, folder)

    def _python(self, command: str, folder: ProjectFolder) -> _Call:
        """Return a command that runs in a Python environment: a locked one, a folder, or PATH."""
        program, _, rest = command.partition(" ")
        rest = f" {rest}" if rest else ""
        for place in dict.fromkeys((folder, self._root)):
            for lock, manager in _PYTHON_LOCKS.items():
                locked = rf'(?m)^(?:name = "{re.escape(program)}"$|\s*"{re.escape(program)}": \{{)'
                is_locked = program == "python" or re.search(locked, place.text(lock))
                if lock in place.files and is_locked:
                    option = _uv_option(program, place) if manager == "uv" else ""
                    call = f"{manager} run {option}{program}{rest}"
                    return call, self._not_found(manager)
            for venv in _VENVS:
                if place.has(f"{venv}/{program}"):
                    up = "" if place is folder else "../" * (folder.path.count("/") + 1)
                    return f"{up}{venv}/{program}{rest}", ""
        if program == "python" and self._not_found(program):
            program = "python3"
        where = f": neither locked, nor in {', '.join(_VENVS)} or PATH"
        return program + rest, self._not_found(program, where)


def _declares(folder: ProjectFolder, sign: str) -> bool:
    """Return whether a file declares packages: it exists, or its table is not empty."""
    name, has_section, section = sign.partition(" [")
    if not folder.find(name):
        return False
    return not has_section or bool(folder.table(name, section.rstrip("]")))


def _uv_option(program: str, folder: ProjectFolder) -> str:
    """Return the option with which uv also installs a program in a group other than `dev`.

    Source: docs.astral.sh/uv, concepts/projects/dependencies.
    """
    groups = folder.table("pyproject.toml", "dependency-groups")
    required = re.compile(rf"{re.escape(program)}(?![\w-])")
    names = [name for name in groups if any(map(required.match, texts(groups[name])))]
    return f"--group {names[0]} " if names and "dev" not in names else ""
