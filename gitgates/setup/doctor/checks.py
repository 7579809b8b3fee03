"""The list of checks, and the checks of git, the configuration and the gates' needs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from gitgates.config.load import inspect
from gitgates.core import environ
from gitgates.core.clean import counted, first_few
from gitgates.core.errors import ConfigError
from gitgates.core.parts import feature_parts
from gitgates.core.types import Config, Gate, Problem
from gitgates.git.index import NAME as INDEX_NAME
from gitgates.git.repo import Repo
from gitgates.observed.command import install_command, why_not_here
from gitgates.proc.call import call, find_runner
from gitgates.proc.pool import VARIABLE, open_pool, pool_folder
from gitgates.setup.doctor.agents import check_agents
from gitgates.setup.doctor.hooks import Subject, check_hooks, check_hooks_path
from gitgates.setup.install import hookspath
from gitgates.setup.install.framework import FILE, find_ids
from gitgates.store.owners import fix_owner_command, owner_of
from gitgates.store.rescue import Rescue
from gitgates.verbs.finding import Finding
from gitgates.verbs.idle import FEW_FILES, NO_GATES, files_text, find_unmatched, has_gates
from gitgates.verbs.repository import first_step
from gitgates.worktree.locks import Lock
from gitgates.worktree.restored import list_missing

Check: TypeAlias = Callable[[Subject], Iterable[Finding]]

# Older ones lack `git config --show-scope` and much else that we use.
OLDEST_GIT = (2, 31)
# The first word of a command, behind variables that are set for it.
_PROGRAM = re.compile(r"""\s*(?:[A-Za-z_]\w*=[^\s(`]*\s+)*(["']?)([\w./+-]+)\1(?=\s|$)""")
_IS_FOUND = ("/bin/sh", "-c", 'command -v "$1"', "sh")  # also for builtins
_FIRST_GATE = 'add one, such as: [gates.test] with command = "make test", and list it in a hook'
_GITS = ("objects", "checkouts", "kept", "restored")  # whose modes git or the user sets


def examine(subject: Subject) -> list[Finding]:
    """Run all checks; return the findings in the order of the list.

    Raises: GitError if git fails.
    """
    return [finding for check in CHECKS for finding in check(subject)]


def check_git(subject: Subject) -> Iterator[Finding]:
    """Find a git that is too old, and a repository on a Windows drive."""
    version = os.fsdecode(subject.repo.git.out("version")).strip()
    numbers, oldest = re.findall(r"\d+", version), ".".join(map(str, OLDEST_GIT))
    if tuple(map(int, numbers[:2])) >= OLDEST_GIT:
        yield Finding("ok", "git", "git", version)
    else:
        what = f"{version or 'unknown version'}; gitgates needs {oldest} or later"
        yield Finding("problem", "git", "git", what, f"install git {oldest} or later")
    for note in hookspath.drive_remarks(subject.repo.root_abs):
        what, _, mend = note.partition("\n  ")
        yield Finding("note", "drive", subject.repo.root_abs, what, mend)


def check_config(subject: Subject) -> Iterator[Finding]:
    """Find problems in the configuration."""
    root_abs = subject.repo.root_abs
    try:
        config, problems = inspect(root_abs)
    except ConfigError as error:
        config, problems = None, (Problem(root_abs, error.message, error.hint),)
    if config is None and not problems:
        what = "no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
        yield Finding("problem", "configuration", root_abs, what, first_step(subject.repo))
    for problem in problems:
        yield Finding("problem", "configuration", problem.location, problem.message, problem.hint)
    if config and not problems:
        text = f"{counted(len(config.gates), 'gate')}, {counted(len(config.hooks), 'hook')}"
        yield Finding("ok", "configuration", files_text(config), text)


def check_environment(subject: Subject) -> Iterator[Finding]:
    """Find environment variables that disable gates, or that gitgates cannot use."""
    env = subject.repo.env
    if environ.is_off(env):
        what = "GITGATES=0 is set: hooks run no gates"
        yield Finding("problem", "environment", "GITGATES", what, "unset GITGATES")
        return
    for gate, name in environ.skipped_gates(env).items():
        what = f"set, and skips gate `{gate}`"
        yield Finding("note", "environment", name, what, f"unset {name}")
    try:
        if env.get(VARIABLE) != "0" and not open_pool(env, 1, is_urgent=False):
            what = "cannot be used: it is missing, another user's, or others may write to it"
            mend = f"set {VARIABLE} to a folder that only you can write to, or to 0"
            yield Finding("note", "pool", pool_folder(env), what, mend)
    except ConfigError as error:
        yield Finding("problem", "pool", VARIABLE, error.message, error.hint)


def check_gates(subject: Subject) -> Iterator[Finding]:
    """Find missing gates, and missing programs, folders and pre-commit hooks that gates name."""
    if subject.config:
        if not has_gates(subject.config):
            yield Finding("note", "gates", files_text(subject.config), NO_GATES, _FIRST_GATE)
        yield from find_missing(subject.config.gates, subject.repo.root_abs, subject.repo.env)


def check_files(subject: Subject) -> Iterator[Finding]:
    """Find gates whose `files` match no tracked file."""
    config = subject.config or Config()
    for name, what in find_unmatched(config, subject.repo):
        hook = next((f"{hook.name} " for hook in config.hooks if name in hook.gates), "")
        yield Finding(
            "note", "files", f"gate `{name}`", what, f"gitgates explain {hook}--all-files"
        )


def check_reuse(subject: Subject) -> Iterator[Finding]:
    """Find why passes that gates would reuse cannot be observed here."""
    gates = [gate.name for gate in (subject.config or Config()).gates if gate.reuse.mode]
    if gates and (why_not := why_not_here(subject.repo.env)):
        what = f"passes of {first_few(gates, FEW_FILES)} are not reused: {why_not}"
        yield Finding("note", "reuse", "strace", what, install_command(subject.repo.env))


def find_missing(
    gates: tuple[Gate, ...], root_abs: str, env: Mapping[str, str]
) -> Iterator[Finding]:
    """Find programs, folders and hooks of the framework that gates name and that are missing."""
    for gate in gates:
        is_framework = gate.program.pre_commit is not None
        missing = _no_hooks if is_framework else _no_program
        for what, fix in (
            missing(gate, root_abs, env) if is_framework or gate.program.command else ()
        ):
            check = "pre-commit" if is_framework else "command"
            yield Finding("problem", check, f"gate `{gate.name}`", what, fix)


def _no_hooks(gate: Gate, root_abs: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not os.access(find_runner(gate.program.runner, env)[0], os.X_OK):
        yield (
            f"its runner {gate.program.runner} is not found",
            f"pipx install {gate.program.runner}",
        )
    ids_in_file = find_ids(root_abs)
    if ids_in_file is None:
        yield (
            f"it runs hooks of {FILE}, which cannot be read",
            f"{gate.program.runner} validate-config",
        )
    elif missing := [
        f"`{name}`" for name in gate.program.pre_commit or () if name not in ids_in_file
    ]:
        what = f"{FILE} has no hook {', '.join(missing)}"
        yield what, f"add it there, or remove it from `{gate.name}`"


def _no_program(gate: Gate, root_abs: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a gate's program lacks, and how to fix it."""
    folder_abs, program = os.path.join(root_abs, gate.program.working_dir), program_of(gate)
    path = dict(gate.program.env).get("PATH") or env.get("PATH", os.defpath)
    if not os.path.isdir(folder_abs):
        what = f"its working_dir `{gate.program.working_dir}` does not exist"
        yield what, f"mkdir -p {shlex.quote(gate.program.working_dir)}"
    elif "/" in program:
        if not os.access(os.path.join(folder_abs, program), os.X_OK):
            what = f"its program {program} is missing or not executable"
            yield what, f"look at: ls -l {program}"
    elif program and call((*_IS_FOUND, program), {"PATH": path}).exit_status:
        what = f"its program `{program}` was not found in PATH"
        yield what, "install it, or add its folder to PATH in the gate's env"


def program_of(gate: Gate) -> str:
    """Return the program or builtin that a gate starts first; empty if only a shell can tell."""
    if isinstance(gate.program.command, tuple):
        return gate.program.command[0]
    match = _PROGRAM.match(gate.program.command or "")
    return match[2] if match else ""


def check_features(subject: Subject) -> Iterator[Finding]:
    """Find problems that the features report."""
    if subject.config:
        for module in feature_parts("checks"):
            yield from module.check(subject.repo, subject.config)


def check_owners(subject: Subject) -> Iterator[Finding]:
    """Find state that this user cannot read or write, for example after a `sudo git commit`."""
    for folder_abs in sorted(subject.repo.states_abs):
        if others := [path_abs for path_abs in _walk(folder_abs) if not _is_usable(path_abs)]:
            count, owner = counted(len(others), "path"), owner_of(others[0])
            what = f"{count} of {owner} cannot be read or written, such as {others[0]}"
            yield Finding("problem", "owner", folder_abs, what, fix_owner_command(folder_abs))


def _walk(folder_abs: str) -> Iterator[str]:
    """Yield a state folder and the paths in it."""
    yield from (folder_abs,) if os.path.lexists(folder_abs) else ()
    for where_abs, folders, files in os.walk(folder_abs):
        folders[:] = [name for name in folders if where_abs != folder_abs or name not in _GITS]
        yield from (os.path.join(where_abs, name) for name in (*folders, *files))


def _is_usable(path_abs: str) -> bool:
    mode = os.R_OK | os.W_OK | (os.X_OK if os.path.isdir(path_abs) else 0)
    return os.path.islink(path_abs) or os.access(path_abs, mode)


def check_left_over(subject: Subject) -> Iterator[Finding]:
    """Find leftovers of a killed run, and restored files that have changed again."""
    for folder_abs in subject.missing:
        what = "a worktree that git lists, and that no longer exists"
        yield Finding("note", "worktree", folder_abs, what, "git worktree prune")
    for worktree in subject.worktrees:
        repo, recover = worktree.repo, worktree.command("gitgates recover")
        problem = Finding("problem", "left over", repo.root_abs, "", recover)
        note = problem._replace(severity="note")
        is_stashed = Rescue(f"{repo.state_abs}/rescue").is_in_use()
        names = [name for name in sorted(os.listdir(repo.git_dir_abs)) if INDEX_NAME in name]
        is_left = bool(is_stashed or names) and not _is_running(repo)
        if is_left and is_stashed:
            what = "a killed run stashed unstaged work, which is not restored yet"
            yield problem._replace(what=what)
        for index_abs in [f"{repo.git_dir_abs}/{name}" for name in names] if is_left else ():
            what, fix = f"a killed run left {index_abs}", f"rm {shlex.quote(index_abs)}"
            yield note._replace(what=what, mend=fix)
        for part in feature_parts("recovery"):
            yield from (problem._replace(what=what) for what in part.pending(repo))
        for file in (file for file in list_missing(repo) if file.is_doubtful):
            what = f"`{file.path}` was restored after {file.when}, and has changed since"
            yield note._replace(check="restored", what=what)


def _is_running(repo: Repo) -> bool:
    """Return whether a run holds the worktree now: then nothing is left over."""
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
    check_agents,
    check_gates,
    check_files,
    check_reuse,
    check_features,
    check_owners,
    check_left_over,
)
