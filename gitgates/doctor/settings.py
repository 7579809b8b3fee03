"""Problems of the configuration, and what its gates need: programs, folders, pre-commit hooks."""

from __future__ import annotations

import os
import shlex

from gitgates.config.load import inspect
from gitgates.doctor.finding import Finding
from gitgates.doctor.framework import FILE
from gitgates.errors import ConfigError
from gitgates.proc.call import find_runner, which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.framework import Framework
    from gitgates.types import Config, Gate

# What the shell knows by itself, or makes more of than a program and its arguments.
_SHELL = (
    ". : [ break case cd command continue echo eval exec exit export false for if printf read "
    "return set shift source test time trap true type ulimit umask unset until wait while"
)
_SHELL_WORDS = frozenset(_SHELL.split())
_SHELL_SIGNS = frozenset("$`(){}*?~<>|&;#=!")


def check_settings(root_abs: str) -> tuple[Config | None, list[Finding]]:
    """Return the configuration, as far as it can be read, and what is wrong with it."""
    wrong = Finding(severity="problem", check="configuration", where=root_abs, what="", mend="")
    try:
        config, problems = inspect(root_abs)
    except ConfigError as error:
        return None, [wrong._replace(what=error.message, mend=error.hint)]
    if config is None:
        what = "no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
        return None, [wrong._replace(what=what, mend="gitgates init")]
    found = [wrong._replace(where=p.where, what=p.message, mend=p.hint) for p in problems]
    counted = f"{_count(config.gates, 'gate')}, {_count(config.hooks, 'hook')}"
    fine = wrong._replace(severity="ok", where=" and ".join(config.sources), what=counted)
    return config, found or [fine]


def check_gates(
    config: Config, root_abs: str, framework: Framework, env: Mapping[str, str]
) -> list[Finding]:
    """Return what the gates need and do not have."""
    found: list[Finding] = []
    for gate in config.gates:
        if gate.pre_commit is not None:
            found += _pre_commit(gate, gate.pre_commit, framework, env)
        elif gate.command is not None:
            found += _command(gate, root_abs, env)
    return found


def _pre_commit(
    gate: Gate, ids: tuple[str, ...], framework: Framework, env: Mapping[str, str]
) -> list[Finding]:
    wrong = Finding(severity="problem", check="pre-commit", where=f"gate `{gate.name}`", what="")
    found = []
    program = find_runner(gate.runner, env)[0]
    if not os.access(program, os.X_OK):
        what = f"its runner {gate.runner} is not found"
        found.append(wrong._replace(what=what, mend=f"pipx install {gate.runner}"))
    if not framework.exists:
        what = f"it runs hooks of {FILE}, which is not there"
        found.append(wrong._replace(what=what, mend=f"{gate.runner} sample-config > {FILE}"))
    elif not framework.broken:
        missing = [f"`{name}`" for name in ids if name not in framework.ids]
        what = f"{FILE} has no hook {', '.join(missing)}"
        mend = f"add it there, or take it out of `{gate.name}`"
        found += [wrong._replace(what=what, mend=mend)] if missing else []
    return found


def _command(gate: Gate, root_abs: str, env: Mapping[str, str]) -> list[Finding]:
    noted = Finding(severity="note", check="command", where=f"gate `{gate.name}`", what="")
    folder_abs = os.path.join(root_abs, gate.working_dir)
    if not os.path.isdir(folder_abs):
        what = f"its working_dir `{gate.working_dir}` is not there"
        return [noted._replace(what=what, mend=f"mkdir -p {shlex.quote(gate.working_dir)}")]
    program = program_of(gate)
    if not program:
        return []
    path = dict(gate.env).get("PATH") or env.get("PATH", os.defpath)
    if "/" in program:
        there = os.access(os.path.join(folder_abs, program), os.X_OK)
        what = f"its program {program} is not there, or not executable"
        return [] if there else [noted._replace(what=what, mend=f"look at: ls -l {program}")]
    try:
        which(program, path)
    except OSError:
        what = f"its program `{program}` is not found in the PATH"
        return [
            noted._replace(
                what=what, mend="install it, or name its folder in the PATH of the gate's env"
            )
        ]
    return []


def program_of(gate: Gate) -> str:
    """Return the program that a gate starts first; empty where only a shell could tell."""
    if isinstance(gate.command, tuple):
        return gate.command[0]
    words = (gate.command or "").split()
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words.pop(0)
    first = words[0].strip("'\"") if words else ""
    if first in _SHELL_WORDS or _SHELL_SIGNS & set(first):
        return ""
    return first


def _count(items: tuple[object, ...], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"
