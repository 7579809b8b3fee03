"""The table of checks; those of git, the configuration, and what the gates need."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from gitgates import environ
from gitgates.clean import counted
from gitgates.config.load import inspect
from gitgates.doctor.agents import check_agents
from gitgates.doctor.findings import Finding, Subject
from gitgates.doctor.hooks import check_hooks, check_hooks_path, check_stages
from gitgates.doctor.hosts import check_hosts
from gitgates.errors import ConfigError, IntentsError
from gitgates.git.index import NAME as INDEX_NAME
from gitgates.git.repo import Repo
from gitgates.install.framework import FILE, Framework
from gitgates.intents.file import load
from gitgates.intents.intent import ACTIVE
from gitgates.proc.call import find_runner, which
from gitgates.store.rescue import Rescue
from gitgates.types import Gate
from gitgates.worktree.locks import Lock

Check: TypeAlias = Callable[[Subject], Iterable[Finding]]

# Before it, `git config --show-scope` and much else that we ask for are not there.
OLDEST_GIT = (2, 31)
# What the shell knows by itself, or makes more of than a program and its arguments.
_SHELL = (
    ". : [ break case cd command continue echo eval exec exit export false for if printf read "
    "return set shift source test time trap true type ulimit umask unset until wait while"
)
_SHELL_WORDS = frozenset(_SHELL.split())
_SHELL_SIGNS = frozenset("$`(){}*?~<>|&;#=!")


def examine(subject: Subject) -> list[Finding]:
    """Make every check; return the findings in the order of the table.

    Raises: GitError where git cannot be asked at all.
    """
    return [finding for check in CHECKS for finding in check(subject)]


def check_git(subject: Subject) -> Iterator[Finding]:
    """Find a git that is too old."""
    said = os.fsdecode(subject.repo.git.out("version")).strip()
    match = re.search(r"(\d+)\.(\d+)", said)
    oldest = ".".join(map(str, OLDEST_GIT))
    if match and (int(match[1]), int(match[2])) >= OLDEST_GIT:
        yield Finding("ok", "git", "git", said)
        return
    what = f"{said or 'its version cannot be told'}; gitgates needs {oldest} or later"
    yield Finding("problem", "git", "git", what, f"install git {oldest} or later")


def check_config(subject: Subject) -> Iterator[Finding]:
    """Find what is wrong with the configuration."""
    root_abs = subject.repo.root_abs
    try:
        config, problems = inspect(root_abs)
    except ConfigError as error:
        yield Finding("problem", "configuration", root_abs, error.message, error.hint)
        return
    if config is None:
        what = "no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
        yield Finding("problem", "configuration", root_abs, what, "gitgates init")
        return
    for problem in problems:
        yield Finding("problem", "configuration", problem.where, problem.message, problem.hint)
    if not problems:
        text = f"{counted(len(config.gates), 'gate')}, {counted(len(config.hooks), 'hook')}"
        yield Finding("ok", "configuration", " and ".join(config.sources), text)


def check_environment(subject: Subject) -> Iterator[Finding]:
    """Find variables of this shell that switch gates off."""
    env = subject.repo.env
    if environ.is_off(env):
        what = "GITGATES=0 is set here: no hook runs any gate"
        yield Finding("problem", "environment", "GITGATES", what, "unset GITGATES")
        return
    for gate, name in environ.skipped_gates(env).items():
        what = f"set here, and skips gate `{gate}`"
        yield Finding("note", "environment", name, what, f"unset {name}")


def check_gates(subject: Subject) -> Iterator[Finding]:
    """Find what the gates need and do not have."""
    gates, repo = subject.config.gates if subject.config else (), subject.repo
    yield from find_missing(gates, repo.root_abs, subject.here.framework, repo.env)


def find_missing(
    gates: tuple[Gate, ...], root_abs: str, framework: Framework, env: Mapping[str, str]
) -> Iterator[Finding]:
    """Find programs, folders and hooks of the framework that gates name and that are not there."""
    for gate in gates:
        if gate.pre_commit is not None:
            for what, mend in _missing_hooks(gate, gate.pre_commit, framework, env):
                yield Finding("problem", "pre-commit", f"gate `{gate.name}`", what, mend)
        elif gate.command is not None:
            for what, mend in _missing_program(gate, root_abs, env):
                yield Finding("note", "command", f"gate `{gate.name}`", what, mend)


def _missing_hooks(
    gate: Gate, ids: tuple[str, ...], framework: Framework, env: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    program = find_runner(gate.runner, env)[0]
    if not os.access(program, os.X_OK):
        yield f"its runner {gate.runner} is not found", f"pipx install {gate.runner}"
    if not framework.exists:
        what = f"it runs hooks of {FILE}, which is not there"
        yield what, f"{gate.runner} sample-config > {FILE}"
    missing = [f"`{name}`" for name in ids if name not in framework.ids]
    if missing and framework.exists and not framework.broken:
        what = f"{FILE} has no hook {', '.join(missing)}"
        yield what, f"add it there, or take it out of `{gate.name}`"


def _missing_program(
    gate: Gate, root_abs: str, env: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    folder_abs = os.path.join(root_abs, gate.working_dir)
    program = program_of(gate)
    if not os.path.isdir(folder_abs):
        what = f"its working_dir `{gate.working_dir}` is not there"
        yield what, f"mkdir -p {shlex.quote(gate.working_dir)}"
    elif "/" in program:
        if not os.access(os.path.join(folder_abs, program), os.X_OK):
            what = f"its program {program} is not there, or not executable"
            yield what, f"look at: ls -l {program}"
    elif program:
        try:
            which(program, dict(gate.env).get("PATH") or env.get("PATH", os.defpath))
        except OSError:
            what = f"its program `{program}` is not found in the PATH"
            yield what, "install it, or name its folder in the PATH of the gate's env"


def program_of(gate: Gate) -> str:
    """Return the program that a gate starts first; empty if only a shell could tell."""
    if isinstance(gate.command, tuple):
        return gate.command[0]
    words = (gate.command or "").split()
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words.pop(0)
    first = words[0].strip("'\"") if words else ""
    if first in _SHELL_WORDS or _SHELL_SIGNS & set(first):
        return ""
    return first


def check_intents(subject: Subject) -> Iterator[Finding]:
    """Find what is wrong with the intents file, and whether agents can select an intent at all."""
    settings = subject.config.intents if subject.config else None
    if not (subject.config and settings):
        return
    try:
        intents = load(subject.repo, subject.config)
    except IntentsError as error:
        for line in error.message.splitlines():
            where, _, what = line.partition(": ")
            yield Finding("problem", "intents", where, what, error.hint)
        return
    total, active = counted(len(intents.intents), "intent"), len(intents.active)
    if settings.required and not active:
        what = f"{total}, none is {ACTIVE}: an agent needs one to change anything (`required`)"
        yield Finding("problem", "intents", settings.file, what, f"set one to {ACTIVE}")
    else:
        yield Finding("ok", "intents", settings.file, f"{total}, {active} of them {ACTIVE}")


def check_leftovers(subject: Subject) -> Iterator[Finding]:
    """Find the leftovers of killed runs in the worktrees."""
    for worktree in subject.worktrees:
        repo = worktree.repo
        is_hidden = Rescue(f"{repo.state_abs}/rescue").is_in_use()
        indexes = [name for name in sorted(os.listdir(repo.git_dir_abs)) if INDEX_NAME in name]
        if not (is_hidden or indexes) or _is_running(repo):
            continue
        if is_hidden:
            what = "a run that was killed has hidden unstaged work, which is not back yet"
            mend = worktree.command("gitgates recover")
            yield Finding("problem", "left over", repo.root_abs, what, mend)
        for name in indexes:
            index_abs = os.path.join(repo.git_dir_abs, name)
            what = f"a run that was killed has left {index_abs}"
            yield Finding("note", "left over", repo.root_abs, what, f"rm {shlex.quote(index_abs)}")


def check_missing_worktrees(subject: Subject) -> Iterator[Finding]:
    """Find worktrees that git lists and that do not exist."""
    what = "a worktree that git lists, and that is not there any more"
    for where in subject.gone:
        yield Finding("note", "worktree", where, what, "git worktree prune")


def _is_running(repo: Repo) -> bool:
    """Return whether a run of ours holds the worktree now: then nothing is left over."""
    lock = Lock(repo.state_abs)
    try:
        return not lock.acquire(alone=True)
    except OSError:
        return False
    finally:
        lock.release()


CHECKS: tuple[Check, ...] = (
    check_git,
    check_config,
    check_environment,
    check_hooks_path,
    check_hooks,
    check_stages,
    check_agents,
    check_hosts,
    check_gates,
    check_intents,
    check_leftovers,
    check_missing_worktrees,
)
