"""How a project calls its programs, and which of them are missing here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from gitgates.setup.discover.folder import KNOWN, ProjectFolder, Tree
from gitgates.setup.task_files import texts
from gitgates.worktree.lock_files import INSTALL_COMMANDS

_PYTHON_LOCKS: dict[str, str] = KNOWN["locks"]["python"]
_NODE_LOCKS: dict[str, str] = KNOWN["locks"]["node"]
_VENVS = (".venv/bin", "venv/bin")


class Environments:
    """The environments of a project's folders, and the programs in the PATH."""

    def __init__(self, tree: Tree, env: Mapping[str, str]) -> None:
        self._root = tree.root
        # A shim of pyenv, asdf or mise exists whether or not the program that it starts does.
        folders = env.get("PATH", os.defpath).split(os.pathsep)
        self._path = os.pathsep.join(f for f in folders if "shims" not in f.split("/"))
        self._shims = os.pathsep.join(f for f in folders if "shims" in f.split("/")) or os.devnull

    def _not_found(self, program: str, where: str = "") -> str:
        """Return why a program cannot start; empty if it is in the PATH."""
        if shutil.which(program, path=self._path):
            return ""
        shim = shutil.which(program, path=self._shims)
        what = f"is only a shim ({shim}), which may start nothing" if shim else "is not found"
        return f"{program} {what}{where}"

    def task(
        self, row: dict[str, Any], folder: ProjectFolder, task: str, env: str
    ) -> tuple[str, str]:
        """Return the command that runs a task, and why it cannot start, if it cannot."""
        if row["call"] == "{path}":
            return shlex.quote(env if "/" in env else f"./{env}"), ""
        task = task if re.fullmatch(r"[\w./:@+-]+", task) else shlex.quote(task)
        prefix = "" if env == "default" else f"{env}:"
        command = row["call"].replace("{env}:", prefix).replace("{task}", task)
        command = command.replace("{node}", self._node(folder))
        if row.get("python"):
            return self._python(command, folder)
        return command, self._missing(command, folder, row.get("ecosystem", ""))

    def tool(self, row: dict[str, Any], ecosystem: str, folder: ProjectFolder) -> tuple[str, str]:
        """Return the command that runs a tool, and why it cannot start, if it cannot."""
        command = row["command"]
        if ecosystem == "python":
            return self._python(command, folder)
        if row.get("node"):
            return self._node_tool(command, folder)
        return command, self._missing(row.get("program", "") or command, folder, ecosystem)

    def _missing(self, command: str, folder: ProjectFolder, ecosystem: str = "") -> str:
        program = command.split(maxsplit=1)[0]
        is_file = "/" in program
        missing = "" if is_file and folder.has(program) else f"{program} is not found"
        missing = missing if is_file else self._not_found(program)
        return missing or self._not_installed(ecosystem, folder)

    def _not_installed(self, ecosystem: str, folder: ProjectFolder) -> str:
        """Return what to install first, if a folder needs packages and has none."""
        row = KNOWN["ecosystems"].get(ecosystem, {})
        installed = row.get("installed", "").split()
        declares = [sign for sign in row.get("declares", ()) if _declares(folder, sign)]
        if not declares or any(f.has(name) for f in (folder, self._root) for name in installed):
            return ""
        locks = (lock for lock in INSTALL_COMMANDS if lock in folder.files)
        usual = row["install"].replace("{node}", self._node(folder))
        command = next((INSTALL_COMMANDS[lock] for lock in locks), usual)
        return f"its packages are not installed: {installed[0]} is missing; first: {command}"

    def _node(self, folder: ProjectFolder) -> str:
        """Return npm, pnpm, yarn or bun: the one that package.json names, else the lock file's."""
        for place in (folder, self._root):
            manager = str(place.table("package.json").get("packageManager", "")).partition("@")[0]
            if manager in _NODE_LOCKS.values():
                return manager
            if lock := place.find(*_NODE_LOCKS):
                return _NODE_LOCKS[lock]
        return "npm"

    def _node_tool(self, command: str, folder: ProjectFolder) -> tuple[str, str]:
        """Return a command that runs a tool of node_modules, and never downloads one."""
        manager = self._node(folder)
        call = {"pnpm": "pnpm exec", "npm": "npx --no-install"}.get(manager, f"{manager} run")
        file = f"node_modules/.bin/{command.split(maxsplit=1)[0]}"
        is_there = folder.has(file) or self._root.has(file)
        missing = "" if is_there else f"{file} is not found"
        return f"{call} {command}", missing or self._missing(call, folder)

    def _python(self, command: str, folder: ProjectFolder) -> tuple[str, str]:
        """Return a command that runs in the environment of Python: a locked one, a folder, PATH."""
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
    """Return whether a file declares packages: it is there, or has a table that is not empty."""
    name, has_section, section = sign.partition(" [")
    if not folder.find(name):
        return False
    return not has_section or bool(folder.table(name, section.rstrip("]")))


def _uv_option(program: str, folder: ProjectFolder) -> str:
    """Return the option with which uv installs a program that is in a group other than `dev`.

    Source: docs.astral.sh/uv, concepts/projects/dependencies.
    """
    groups = folder.table("pyproject.toml", "dependency-groups")
    required = re.compile(rf"{re.escape(program)}(?![\w-])")
    names = [name for name in groups if any(map(required.match, texts(groups[name])))]
    return f"--group {names[0]} " if names and "dev" not in names else ""
