"""Tasks of tox: an environment for each name that its settings list, if it runs anything there.

tox accepts any name made of factors that it knows (`tox -e pyright` where `typing-pyright` is
listed), runs no command in it, and passes. So names are those of `env_list` and of the
environments' own tables, and what each would run is determined.

Source: tox.wiki, reference/config; tox 4.67 (config/loader/ini/factor.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from gitgates.core.record import Record
from gitgates.setup.discover.project import Project, Task, read_ini, table, tables, texts
from gitgates.setup.discover.tools import in_environment
from gitgates.setup.discover.words import PYTHON, find_word, kind_of, lines_of, program_of

_PYPROJECT = "pyproject.toml"
_MOST = 2000  # names; people do not write longer lists
_DEEPEST = 5  # of references to references
_PLAIN = "py"  # the environment with the interpreter that tox itself runs on
_INTERPRETER = re.compile(r"py(?:py|thon)?(?:[23]?\.?\d*)t?|[23]\.\d+t?")
_VERSION = re.compile(r"(?:py(?:thon)?)?3\.?(\d+)")
_NAME = re.compile(r"(?:\{[^{}]*\}|[^\s,{}])+")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)-(\d+)")
_CONDITION = re.compile(r"([!\w.*?{},\[\]-]+(?:[ ]*,[ ]*[!\w.*?{},\[\]-]+)*):(?:\s+|$)(.*)")
_REFERENCE = re.compile(r"\{\[([^\]]+)\](\w+)\}")
_POSARGS = re.compile(r"\{posargs[^}]*\}")
_FACTOR = re.compile(r"""(not )?factor(?:\.|\[['"])([\w-]+)(?:['"]\])?""")
_NOTHING = "tox runs no command in it"


class ToxFile(Record):
    """The environments of one file."""

    source: str
    env_list: tuple[str, ...]  # names of env_list
    env_tables: tuple[str, ...]  # names of environments with a table of their own
    commands: Callable[[str], str]  # name → what it runs: lines of a shell


def find(name: str, project: Project) -> list[Task]:
    """Return the environments of one file; `test` stands for the plain one. Raises: BadFile."""
    settings = _read(name, project)
    if settings is None:
        return []
    groups: dict[str, list[str]] = {}
    for env in dict.fromkeys((*settings.env_list, *settings.env_tables)):
        if word := _word(env, settings.commands(env)):
            groups.setdefault(word, []).append(env)
    env_of = {word: _installed(envs, project) for word, envs in groups.items()}
    if not {"test", "tests"} & env_of.keys() and (env := _plain(settings, project)):
        env_of["test"] = env
    return [_task(word, env, settings, project) for word, env in env_of.items()]


def _word(env: str, commands: str) -> str:
    """Return an environment's name without interpreters, or the one factor that says what it is."""
    factors = [factor for factor in env.split("-") if not _INTERPRETER.fullmatch(factor)]
    plain = "-".join(factors)
    if find_word(plain):
        return plain
    kinds = _kinds(commands)
    words = ((factor, find_word(factor)) for factor in factors)
    return next((factor for factor, word in words if word and word.name in kinds), plain)


def _plain(settings: ToxFile, project: Project) -> str:
    """Return the environment that runs the tests where none is named so; empty if there is none."""
    versions = [
        env for env in settings.env_list if any(map(_INTERPRETER.fullmatch, env.split("-")))
    ]
    is_bare = not versions or any(_INTERPRETER.fullmatch(env) for env in versions)
    if is_bare and _kinds(settings.commands(_PLAIN)) & {"test", ""}:
        return _PLAIN
    envs = [
        env for env in (*versions, *settings.env_list) if "test" in _kinds(settings.commands(env))
    ]
    same = [env for env in envs if _word(env, "") == _word(envs[0], "")]
    no_tests = _PLAIN if is_bare and not {*settings.env_list} - {*versions} else ""
    return _installed(same, project) if same else no_tests


def _kinds(commands: str) -> set[str]:
    return {kind_of(program_of(line)) for line in lines_of(commands)}


def _installed(envs: list[str], project: Project) -> str:
    """Return the environment of the latest interpreter that is here; else the first."""
    installed = [
        (int(version[1]), -number)
        for number, env in enumerate(envs)
        for factor in env.split("-")
        if (version := _VERSION.fullmatch(factor)) and f"python3.{version[1]}" in project.in_path
    ]
    return envs[-max(installed)[1]] if installed else envs[0]


def _task(word: str, env: str, settings: ToxFile, project: Project) -> Task:
    body = settings.commands(env)
    command = f"{in_environment('tox', project)} -e {shlex.quote(env)}"
    return Task(
        name=word,
        command=command,
        source=f"{settings.source}: environment {env}",
        scope=PYTHON,
        body=body or command,
        missing="" if body or not find_word(word) else _NOTHING,
        is_private=not body and not find_word(word),
    )


def _read(name: str, project: Project) -> ToxFile | None:
    """Return the settings of a file; None where it has none of tox."""
    values = project.load(name)
    if name == _PYPROJECT:
        values = table(values, "tool", "tox")
    legacy = values.get("legacy_tox_ini")
    if isinstance(legacy, str):
        return _read_ini(name, read_ini(name, legacy), "tox")
    if name.endswith(".toml"):
        return _read_toml(name, values) if values else None
    section = "tox:tox" if name == "setup.cfg" else "tox"
    is_tox = name != "setup.cfg" or section in values
    return _read_ini(name, values, section) if is_tox else None


# INI


def _read_ini(name: str, values: dict[str, Any], section: str) -> ToxFile:
    start = "testenv:"
    tables_of = {
        env: values[heading]
        for heading in values
        if heading.startswith(start)
        for env in _names(heading.removeprefix(start))
    }
    core, base = table(values, section), table(values, "testenv")

    def commands(env: str) -> str:
        value = table(tables_of, env).get("commands", base.get("commands", ""))
        text = _REFERENCE.sub(lambda match: table(values, match[1]).get(match[2], ""), value)
        lines = _lines_for({*env.split("-")}, text.replace("\\\n", " "))
        return _POSARGS.sub("", "\n".join(lines)).strip()

    env_list = _names(core.get("env_list") or core.get("envlist") or "")
    return ToxFile(name, tuple(env_list), tuple(tables_of), commands)


def _names(text: str) -> list[str]:
    """Expand `3.1{0-4}-tests, {lint,docs}`."""
    names: list[str] = []
    for name in _NAME.findall(_without_comments(text)):
        *pieces, last = re.split(_BRACES, name)
        parts = [
            [piece] if number % 2 == 0 else _alternatives(piece)
            for number, piece in enumerate((*pieces, last))
        ]
        names += ("".join(combination) for combination in product(*parts))
        if len(names) > _MOST:
            return names[:_MOST]
    return [name.strip("-") for name in names if name.strip("-")]


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))


def _alternatives(text: str) -> list[str]:
    alternatives: list[str] = []
    for alternative in text.split(","):
        numbers = _RANGE.fullmatch(alternative.strip())
        low, high = map(int, numbers.groups()) if numbers else (0, -1)
        alternatives += (
            map(str, range(low, min(high, low + _MOST) + 1)) if numbers else [alternative.strip()]
        )
    return alternatives


def _lines_for(factors: set[str], text: str) -> Iterator[str]:
    """Yield the lines that apply to an environment: `tests,!lint: pytest`."""
    for line in _without_comments(text).split("\n"):
        condition = _CONDITION.fullmatch(line.strip())
        if condition is None:
            yield line.strip()
        elif any(
            all(
                (factor.lstrip("!") in factors) != factor.startswith("!")
                for factor in group.split("-")
            )
            for group in _names(condition[1])
        ):
            yield condition[2]


# TOML


def _read_toml(name: str, values: dict[str, Any]) -> ToxFile:
    bases = {env: base for base in table(values, "env_base") for env in _generated(values, base)}

    def commands(env: str) -> str:
        env_table = table(values, "env", env) or table(values, "env_base", bases.get(env, ""))
        value = env_table.get("commands", table(values, "env_run_base").get("commands"))
        factors = {*env.split("-")}
        lines = [" ".join(line) for line in _arguments(value, factors, values)]
        return _POSARGS.sub("", "\n".join(lines)).strip()

    env_list = [env for item in _list(values.get("env_list")) for env in _env_names(item)]
    return ToxFile(name, tuple(env_list), (*table(values, "env"), *bases), commands)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _generated(values: dict[str, Any], base: str) -> list[str]:
    groups = _list(table(values, "env_base", base).get("factors"))
    return ["-".join((base, *names)) for names in product(*map(_factors, groups))]


def _env_names(item: object) -> list[str]:
    if not isinstance(item, dict):
        return list(texts(item))
    if "product" not in item:
        return _factors(item)
    left_out = texts(item.get("exclude"))
    names = ("-".join(group) for group in product(*map(_factors, _list(item["product"]))))
    return [name for name in names if name not in left_out]


def _factors(group: object) -> list[str]:
    """Return the factors of a list, of `{prefix = "py3", start = 10, stop = 14}`, or of a label."""
    if not isinstance(group, dict):
        return list(texts(group))
    if "prefix" not in group:
        return [name for names in group.values() for name in texts(names)]
    low, high = group.get("start", 11), group.get("stop", 15)
    is_range = isinstance(low, int) and isinstance(high, int)
    return [f"{group['prefix']}{number}" for number in range(low, high + 1)] if is_range else []


def _arguments(
    value: object, factors: set[str], values: dict[str, Any], depth: int = 0
) -> Iterator[list[str]]:
    """Yield the commands of a list that apply to an environment, each as its arguments."""
    for item in _list(value) if depth < _DEEPEST else ():
        if isinstance(item, list):
            yield [text for text in item if isinstance(text, str)]
        for replacement in tables([item]):
            inner = _replaced(replacement, factors, values)
            yield from _arguments(inner, factors, values, depth + 1)


def _replaced(item: dict[str, Any], factors: set[str], values: dict[str, Any]) -> object:
    """Return what stands for `{replace = …}`; None where only tox could tell."""
    *path, last = texts(item.get("of")) or ("",)
    condition = _FACTOR.fullmatch(str(item.get("condition", "")).strip())
    if item.get("replace") == "ref":
        return table(values, *path).get(last)
    if item.get("replace") != "if" or condition is None:
        return None
    return item.get("then" if (condition[2] in factors) != bool(condition[1]) else "else")
