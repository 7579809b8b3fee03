"""Start one process with `posix_spawn`, and say why where that is not possible."""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    Actions: TypeAlias = Sequence[tuple[Any, ...]]  # as os.posix_spawn takes them

    from gitgates.types import Command
else:
    import _signal

# Python ignores these; a program expects their defaults.
_RESET = [number for name in ("SIGPIPE", "SIGXFSZ") if (number := int(getattr(_signal, name, 0)))]


def spawn(command: Command, output_fd: int) -> int:
    """Start a process in a session of its own; return its id, which is its group's too.

    A session of its own has no terminal: a program that asks for one is refused at once, where in
    a background group of ours it would be stopped for ever.

    Raises: OSError where the folder or the program is not there or cannot be used.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, command.stdin_abs or os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output_fd, 1),
        (os.POSIX_SPAWN_DUP2, output_fd, 2),
    ]
    env = dict(command.env)
    here = os.open(".", os.O_RDONLY)
    os.chdir(command.cwd_abs)  # posix_spawn has no working directory, and we have one thread
    try:
        program = which(command.argv[0], env.get("PATH", os.defpath))
        return spawn_apart(program, command.argv, env, actions)
    finally:
        os.fchdir(here)
        os.close(here)


def spawn_apart(
    program: str, argv: tuple[str, ...], env: Mapping[str, str], actions: Actions
) -> int:
    """Start a program in a session of its own, and where there is none, in a group of its own.

    Raises: OSError where it cannot be started.
    """
    try:
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsigdef=_RESET, setsid=True
        )
    except NotImplementedError:  # an old libc
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsigdef=_RESET, setpgroup=0
        )


def which(program: str, path: str) -> str:
    """Return the file that runs as `program`; the name itself where it names a path.

    Raises: FileNotFoundError, or PermissionError where only files that may not run have the name.
    """
    if "/" in program:
        return program
    found = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", program)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            found = found or candidate
    if found:
        raise PermissionError(errno.EACCES, "not executable", found)
    raise FileNotFoundError(errno.ENOENT, "not found", program)


def why_not_started(command: Command, error: OSError) -> str:
    """Say why a process could not be started, and what would help."""
    program = command.argv[0]
    if not os.path.isdir(command.cwd_abs):
        return f"working_dir does not exist: {command.cwd_abs}"
    if isinstance(error, FileNotFoundError):
        if "/" in program and os.path.exists(os.path.join(command.cwd_abs, program)):
            return f"command not found: the interpreter in the first line of {program}"
        return f"command not found: {program}"
    if isinstance(error, PermissionError):
        return f"not executable: {error.filename or program} (chmod +x would make it so)"
    if error.errno == errno.ENOEXEC:
        return f"not executable: {program} has no #! line and is no program"
    return f"could not be started: {program}: {error.strerror}"


def argument_limit(env: Mapping[str, str]) -> int:
    """Return how many bytes the arguments of one command may take beside this environment.

    Half of what the system allows, because the program may add arguments when it starts another;
    at most 1 MiB, because a Linux with an unlimited stack names no true limit. Source: execve(2).
    """
    allowed = os.sysconf("SC_ARG_MAX")
    environment = sum(len(os.fsencode(f"{name}={value}")) + 9 for name, value in env.items())
    return max(min(allowed // 2, 1 << 20) - environment, 4096)


def find_runner(name: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of `pre-commit` or `prek`: the one in the PATH, else the one beside us."""
    try:
        return (which(name, env.get("PATH", os.defpath)),)
    except OSError:
        beside = os.path.join(os.path.dirname(sys.executable), name)
        return (beside,) if os.access(beside, os.X_OK) else (name,)
