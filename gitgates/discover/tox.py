"""Environments of tox. Source: tox.wiki, configuration; generated environments are left out."""

from __future__ import annotations

import configparser
import re
import shlex

from gitgates.discover.formats import command_lines, read_toml, table, texts
from gitgates.discover.task import BadFile, Project, Task
from gitgates.discover.words import PYTHON

FILES = ("tox.ini", "tox.toml", "pyproject.toml", "setup.cfg")

_POSARGS = re.compile(r"\{posargs[^}]*\}")


def find(name: str, project: Project) -> list[Task]:
    """Return the environments of one file; `test` stands for the plain one."""
    text = project.texts[name]
    if not name.endswith(".toml"):
        return _ini_tasks(name, text)
    settings = read_toml(text)
    if name == "pyproject.toml":
        settings = table(settings, "tool", "tox")
        legacy = settings.get("legacy_tox_ini")
        if isinstance(legacy, str):
            return _ini_tasks(name, legacy)
    envs = table(settings, "env")
    bodies = {env: command_lines(table(envs, env).get("commands")) for env in envs}
    has_plain = bool(settings.get("env_run_base"))
    return _tasks(name, bodies, texts(settings.get("env_list")), has_plain=has_plain)


def _ini_tasks(name: str, text: str) -> list[Task]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text.removeprefix("\ufeff"))
    except configparser.Error as error:
        raise BadFile(f"is no valid INI: {' '.join(str(error).split())}") from error
    core = "tox:tox" if name == "setup.cfg" else "tox"
    if name == "setup.cfg" and core not in parser:
        return []
    listed = parser.get(core, "envlist", fallback="") or parser.get(core, "env_list", fallback="")
    bodies = {
        section.removeprefix("testenv:"): parser.get(section, "commands", fallback="")
        for section in parser.sections()
        if section.startswith("testenv:")
    }
    envs = tuple(listed.replace(",", " ").split())
    bodies = {env: _POSARGS.sub("", body) for env, body in bodies.items()}
    return _tasks(name, bodies, envs, has_plain="testenv" in parser)


def _tasks(
    file: str, bodies: dict[str, str], listed: tuple[str, ...], *, has_plain: bool
) -> list[Task]:
    found = {env: _task(file, env, env, bodies.get(env, "")) for env in (*bodies, *listed)}
    if has_plain and "test" not in found and "tests" not in found:
        # `py` is the plain environment with the interpreter that tox itself runs on.
        found["test"] = _task(file, "test", "py", "")
    return list(found.values())


def _task(file: str, name: str, env: str, body: str) -> Task:
    return Task(
        name=name,
        command=f"tox -e {shlex.quote(env)}",
        source=f"{file}: environment {env}",
        scope=PYTHON,
        body=body,
    )
