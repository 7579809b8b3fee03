"""One gate's commands, their environment, and what their exit statuses mean.

A gate's environment is the person's, without what git sets for its own hooks. With git's
variables, a gate that runs `git init && git commit` in a scratch folder would commit into the real
repository; without any of them, `git diff --cached` would be wrong under `commit -a` and
`commit -- path`. So a gate gets none of them, but a private copy of the index if that is not the
worktree's own.
"""

from __future__ import annotations

import os

from gitgates.core.lifecycle import KEPT_SUFFIX
from gitgates.core.types import Command, Ending, Event, Gate, GateResult, Step
from gitgates.engine.plan.walk import ENDED
from gitgates.git.repo import without_git
from gitgates.proc.call import find_runner
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import Status

# Stages that pre-commit takes `--files` for; elsewhere its hooks run as before a commit.
FILE_STAGES = ("pre-commit", "pre-merge-commit", "pre-push", "manual")
MESSAGE_STAGES = ("commit-msg", "prepare-commit-msg")

ACTIVE = "GITGATES_ACTIVE"  # the hooks that are running already: process, name, git folder

HELD = "GITGATES_RESOURCES"  # what a gate and those around it hold, one a line

# The worst of a gate's runs decides for all of them.
_WORSE: tuple[Status, ...] = ("passed", "failed", "killed", "timed-out", "not-started")
# Exit statuses of a POSIX shell for a command that it could not run. Source: sh(1), EXIT STATUS.
NOT_FOUND = "command not found"
_SHELL_CANNOT = {
    127: NOT_FOUND,
    126: "not executable",
}


def make_commands(
    step: Step, event: Event, *, root_abs: str, env: Mapping[str, str], stdin_abs: str, limit: int
) -> list[Command]:
    """Return the commands of a step, in order, to be run with this environment.

    `stdin_abs` is the hook's standard input, kept in a file; `limit` is how many bytes the
    arguments of one command may take.
    """
    gate = step.gate
    if gate.program.pre_commit is not None:
        fixed = _pre_commit_commands(gate, event, find_runner(gate.program.runner, env))
    else:
        fixed = (_base(gate, event),)
    paths = tuple(_argument(path, gate.program.working_dir) for path in step.paths)
    is_of_files = gate.program.pre_commit is not None and event.name not in MESSAGE_STAGES
    passes = gate.program.pass_files or is_of_files
    cwd_abs = (
        root_abs if gate.program.working_dir == "." else f"{root_abs}/{gate.program.working_dir}"
    )
    return [
        Command(
            argv=(*argv, *chunk),
            cwd_abs=cwd_abs,
            env=env,
            stdin_abs=stdin_abs if gate.program.pass_hook_input else "",
            shell=isinstance(gate.program.command, str),
        )
        for argv in fixed
        for chunk in (chunks(paths, limit - _cost(argv)) if passes else ((),))
    ]


def split(step: Step, count: int) -> list[Step]:
    """Split the paths of a step into `count` parts of about the same number, in order."""
    most = -(-len(step.paths) // count)
    starts = range(0, len(step.paths), most) if most else ()
    return [step._replace(paths=step.paths[start : start + most]) for start in starts]


def chunks(paths: tuple[str, ...], limit: int) -> tuple[tuple[str, ...], ...]:
    """Split paths into chunks of at most `limit` bytes, in order; a chunk has at least one."""
    batches: list[list[str]] = [[]]
    room = limit
    for path in paths:
        cost = _cost((path,))
        if batches[-1] and cost > room:
            batches.append([])
            room = limit
        batches[-1].append(path)
        room -= cost
    return tuple(tuple(chunk) for chunk in batches)


def _base(gate: Gate, event: Event) -> tuple[str, ...]:
    hook_args = event.argv if gate.program.pass_hook_input else ()
    if isinstance(gate.program.command, tuple):
        return (*gate.program.command, *hook_args)
    text = gate.program.command or ""
    if (hook_args or gate.program.pass_files) and not uses_arguments(text):
        text = f'{text.rstrip()} "$@"'
    return ("/bin/sh", "-c", text, gate.name, *hook_args)


def uses_arguments(text: str) -> bool:
    """Return whether a shell command refers to its arguments.

    `$1` counts only in double quotes: elsewhere it is more often awk's than the shell's.
    """
    places = ("$@", "${@", "$*", "${*", *(f'"${digit}"' for digit in range(1, 10)))
    return any(place in text for place in places)


def _argument(path: str, working_dir: str) -> str:
    """Return a path relative to the command's folder, never looking like an option."""
    if working_dir != ".":
        inside = path.startswith(working_dir + "/")
        up = "../" * (working_dir.count("/") + 1)
        path = path[len(working_dir) + 1 :] if inside else up + path
    return f"./{path}" if path.startswith("-") else path


def _pre_commit_commands(
    gate: Gate, event: Event, runner: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    stage = event.name if event.name in (*FILE_STAGES, *MESSAGE_STAGES) else "pre-commit"
    about: tuple[str, ...] = ("--files",)
    if stage in MESSAGE_STAGES:
        # Without files it would hide unstaged work first, which is not wanted here.
        about = ("--commit-msg-filename", event.message_file_abs, "--files", event.message_file_abs)
    ids: tuple[tuple[str, ...], ...] = tuple((name,) for name in gate.program.pre_commit or ()) or (
        (),
    )
    return tuple((*runner, "run", *name, "--hook-stage", stage, *about) for name in ids)


def _cost(argv: tuple[str, ...]) -> int:
    # Each argument costs its bytes, a NUL and a pointer. execve(2)
    return sum(len(arg.encode("utf-8", "surrogateescape")) + 9 for arg in argv)


def gate_env(
    base: Mapping[str, str],
    event: Event,
    gate: Gate,
    *,
    index_file: str = "",
    git_dir_abs: str = "",
    root_abs: str = "",
) -> dict[str, str]:
    """Return the environment of one gate.

    `index_file` is the private copy of the index; empty: the worktree's own is right.
    `git_dir_abs` and `root_abs` are given if the folder does not lead to the repository.
    """
    env = without_git(base)
    if event.payload:
        from gitgates.hosts import agent_host  # git hooks have no agent

        for name in agent_host(event.payload.host).ENVIRONMENT.secrets:
            if name not in gate.program.pass_env:
                env.pop(name, None)
    if git_dir_abs:
        env["GIT_DIR"] = git_dir_abs
        env["GIT_WORK_TREE"] = root_abs
    if index_file and gate.program.git_env != "clean":
        env["GIT_INDEX_FILE"] = index_file
    env["GITGATES_HOOK"] = event.name
    env.update(gate.program.env)
    if gate.program.pre_commit is not None and "SKIP" in base and env["SKIP"] != base["SKIP"]:
        env["SKIP"] += f",{base['SKIP']}"  # what a person skips comes on top
    return env


def with_hook(env: Mapping[str, str], hook: str, git_dir_abs: str) -> dict[str, str]:
    """Return an environment that marks a hook of a worktree as running."""
    active = f"{env.get(ACTIVE, '')}\n{os.getpid()} {hook} {git_dir_abs}"
    return {**env, ACTIVE: active.lstrip("\n")}


def is_running_here(env: Mapping[str, str], git_dir_abs: str, hook: str = "") -> bool:
    """Return whether a live ancestor process runs this hook (empty: any) here."""
    for line in env.get(ACTIVE, "").split("\n"):
        pid, _, rest = line.partition(" ")
        name, _, hook_git_dir_abs = rest.partition(" ")
        is_meant = name == hook if hook else not name.endswith(KEPT_SUFFIX)
        # What a gate leaves running keeps the variable for ever.
        is_alive_here = hook_git_dir_abs == git_dir_abs and pid.isdigit() and is_alive(int(pid))
        if is_meant and is_alive_here:
            return True
    return False


def make_result(gate: str, endings: tuple[Ending, ...], *, shell: bool) -> GateResult:
    """Return the result of a gate from the ends of its runs (at least one), without its output."""
    return max(
        (_make_command_result(gate, ending, shell=shell) for ending in endings), key=_badness
    )


def _badness(result: GateResult) -> tuple[int, int]:
    return _WORSE.index(result.status), result.exit_status or 0


def _make_command_result(gate: str, end: Ending, *, shell: bool) -> GateResult:
    status: Status
    reason = end.not_started
    if reason:
        status = "not-started"
    elif end.timed_out:
        status = "timed-out"
    elif end.ended_by_us:
        status, reason = "killed", ENDED
    elif end.signal:
        status = "killed"
    elif shell and end.exit_status in _SHELL_CANNOT:
        status, reason = "not-started", _SHELL_CANNOT[end.exit_status]
    else:
        status = "passed" if end.exit_status == 0 else "failed"
    return GateResult(
        gate=gate, status=status, exit_status=end.exit_status, signal=end.signal, reason=reason
    )


# dash: `NAME: 1: PROGRAM: not found`; bash: `NAME: line 1: PROGRAM: command not found`; zsh;
# env(1), which the first line of a script starts.
_SAID = (
    rb"(?m)(?:(?:^|: )([^\s:]+): (?:command )?not found|command not found: (\S+)"
    rb"|env: \W*([\w./+-]+)\W*: No such file or directory)\s*$"
)
# All that a program has in PATH that a desktop starts, as macOS does: launchctl(1).
_BARE = frozenset(("/usr/bin", "/bin", "/usr/sbin", "/sbin"))


def with_program(result: GateResult, gate: Gate, env: Mapping[str, str]) -> GateResult:
    """Return the result of a gate whose command was not found, with the name of the program."""
    import re  # few programs are missing

    from gitgates.core.clean import plain_line

    reason, path = (
        result.reason,
        dict(gate.program.env).get("PATH") or without_git(env).get("PATH", ""),
    )
    programs = re.findall(_SAID, result.output) if reason == NOT_FOUND else []
    if programs:
        program = b"".join(programs[-1])  # of the groups, one has matched
        reason = f"{reason}: {plain_line(program.decode('utf-8', 'replace'))}"
    if path and _BARE.issuperset(path.split(":")):
        reason += f"; PATH is only {path}, as in a client that was not started from a terminal"
    return result._replace(reason=reason)
