"""Start processes with `posix_spawn`; run a program, mostly git, with a deadline.

Without `subprocess`: importing that takes longer than starting a gate.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Actions: TypeAlias = Sequence[tuple[Any, ...]]  # as os.posix_spawn takes them

    from gitgates.core.types import Command
else:
    import _signal

_DEADLINE_S = 120.0
_SHORTEST_S = 0.001  # the least time for each of several programs
# Python ignores these; a program expects their defaults.
_RESET = [number for name in ("SIGPIPE", "SIGXFSZ") if (number := int(getattr(_signal, name, 0)))]


class DeadlineExceeded(BaseException):
    """The deadline has passed. Not an `Exception`, so no `except Exception` catches it."""


class CompletedProcess(Record):
    """Exit status and output of a program. A negative status is the signal that ended it."""

    exit_status: int
    stdout: bytes
    stderr: bytes


class RunningProcess(Record):
    """A started program, and its pipes."""

    pid: int
    in_fd: int
    out_fd: int
    err_fd: int


def call(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    stdin: bytes = b"",
    *,
    apart: bool = False,
    most_bytes: int = 0,
) -> CompletedProcess:
    """Run a program in the current folder; return its exit status and output.

    It stays in our process group, so ^C reaches it, too; not if it runs `apart`, because half its
    work would be worse than a moment's wait.

    Raises: OSError if it cannot be started, or prints more than `most_bytes` (0: no limit);
    TimeoutError after two minutes.
    """
    return communicate(start_program(argv, env, apart=apart), stdin, most_bytes=most_bytes)


def call_all(
    commands: Iterable[tuple[tuple[str, ...], bytes]],
    env: Mapping[str, str],
    limit_s: float = _DEADLINE_S,
    *,
    apart: bool = False,
) -> list[CompletedProcess]:
    """Run several programs in parallel, each with its input, as `call` does.

    None may write what another one reads. Raises: as `call`; then none of them keeps running.
    """
    running, completed, until_s = [], [], time.monotonic() + limit_s
    try:
        for argv, stdin in commands:
            running.append((start_program(argv, env, apart=apart), stdin))
        while running:
            left_s = max(until_s - time.monotonic(), _SHORTEST_S)
            completed.append(communicate(*running.pop(0), left_s, whole_group=apart))
    finally:
        for process, _stdin in running:
            kill_program(process, whole_group=apart)  # otherwise it would keep holding our locks
    return completed


def call_detached(
    argv: tuple[str, ...], env: Mapping[str, str], stdin: bytes, limit_s: float
) -> CompletedProcess:
    """Run a program that must not ask anybody: in its own session, it has no terminal.

    Raises: OSError if it cannot be started; TimeoutError past the limit, after its whole session
    was killed.
    """
    talk = start_program(argv, env, detached=True)
    return communicate(talk, stdin, limit_s, whole_group=True)


def start_program(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    apart: bool = False,
    detached: bool = False,
) -> RunningProcess:
    """Start a program, as `call` does. Every one must be waited for or killed."""
    program = which(argv[0], env.get("PATH", os.defpath))
    (in_read, in_write), (out, out_write), (err, err_write) = os.pipe(), os.pipe(), os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, in_read, 0),
            (os.POSIX_SPAWN_DUP2, out_write, 1),
            (os.POSIX_SPAWN_DUP2, err_write, 2),
        ]
        group: dict[str, Any] = {"setpgroup": 0} if apart else {}
        if detached:
            pid = spawn_detached(program, argv, env, actions)
        else:
            pid = os.posix_spawn(
                program, argv, env, file_actions=actions, setsigdef=[_signal.SIGPIPE], **group
            )
    except OSError:
        for fd in (in_write, out, err):
            os.close(fd)
        raise
    finally:
        for fd in (in_read, out_write, err_write):
            os.close(fd)
    return RunningProcess(pid, in_write, out, err)


def start_unattended(code: str, env: Mapping[str, str]) -> None:
    """Run our own Python code in a process that outlives us, and that nobody waits for.

    Raises: OSError if it cannot be started.
    """
    whole = f"import sys; sys.path[:] = {sys.path!r}; {code}"
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0o600) for fd in (0, 1, 2)]
    spawn_detached(sys.executable, (sys.executable, "-I", "-c", whole), env, quiet)


def communicate(
    talk: RunningProcess,
    stdin: bytes,
    limit_s: float = _DEADLINE_S,
    *,
    whole_group: bool = False,
    most_bytes: int = 0,
) -> CompletedProcess:
    """Write a program's input, wait for its end, and return its exit status and output.

    Raises: TimeoutError past the limit, OSError if it prints more than `most_bytes` (0: no limit);
    then it, or the whole group that it leads, is killed.
    """
    inputs = {talk.in_fd: stdin}
    outputs: dict[int, list[bytes]] = {talk.out_fd: [], talk.err_fd: []}
    try:
        _transfer(inputs, outputs, limit_s, most_bytes)
    except (DeadlineExceeded, OSError):
        os.kill(-talk.pid if whole_group else talk.pid, _signal.SIGKILL)
        raise
    finally:
        for fd in (*inputs, *outputs):
            os.close(fd)
        _pid, status = os.waitpid(talk.pid, 0)
    stdout, stderr = map(b"".join, outputs.values())
    return CompletedProcess(os.waitstatus_to_exitcode(status), stdout, stderr)


def _transfer(
    inputs: dict[int, bytes], outputs: dict[int, list[bytes]], limit_s: float, most_bytes: int
) -> None:
    """Write and read until all outputs have ended. A written input is closed and removed."""
    deadline, total = time.monotonic() + limit_s, 0
    open_fds = set(outputs)
    poll = select.poll()
    for fd in outputs:
        poll.register(fd, select.POLLIN)
    for fd in inputs:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLOUT)
    while open_fds:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TimeoutError(f"no end after {limit_s:.0f} s")
        for fd, _events in ready:
            if remaining := inputs.get(fd):
                inputs[fd] = _write(fd, remaining)
            elif fd in inputs:
                poll.unregister(fd)
                del inputs[fd]
                os.close(fd)
            elif data := os.read(fd, 1 << 16):
                outputs[fd].append(data)
                total += len(data)
                if most_bytes and total > most_bytes:
                    raise OSError(errno.EFBIG, f"it prints more than {most_bytes >> 20} MiB")
            else:
                poll.unregister(fd)
                open_fds.discard(fd)


def kill_program(talk: RunningProcess, *, whole_group: bool = False) -> None:
    """Kill a program whose output is no longer needed; `whole_group`: and what it started."""
    os.kill(-talk.pid if whole_group else talk.pid, _signal.SIGKILL)
    for fd in (talk.in_fd, talk.out_fd, talk.err_fd):
        os.close(fd)
    os.waitpid(talk.pid, 0)


def _write(fd: int, data: bytes) -> bytes:
    """Write what the pipe takes; return the rest, or nothing if its reader is gone."""
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def spawn(command: Command, output_fd: int) -> int:
    """Start a process in a new session; return its id, which is also that of its group.

    Its own session has no terminal: a program that asks for one is refused at once, but in one of
    our background groups, it would be stopped forever.

    Raises: OSError if the folder or the program does not exist or cannot be used.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, command.stdin_abs or os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output_fd, 1),
        (os.POSIX_SPAWN_DUP2, output_fd, 2),
    ]
    cwd_fd = os.open(".", os.O_RDONLY)
    try:
        os.chdir(command.cwd_abs)  # posix_spawn has no working directory, and we have one thread
        program = which(command.argv[0], command.env.get("PATH", os.defpath))
        return spawn_detached(program, command.argv, command.env, actions)
    finally:
        os.fchdir(cwd_fd)
        os.close(cwd_fd)


def spawn_detached(
    program: str, argv: tuple[str, ...], env: Mapping[str, str], actions: Actions
) -> int:
    """Start a program in a new session, or if that is not possible, in a new group.

    Raises: OSError if it cannot be started.
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
    """Return the file that runs as `program`; the name itself if it is a path.

    Raises: FileNotFoundError, or PermissionError if only files that may not run have the name.
    """
    if "/" in program:
        return program
    not_executable = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", program)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            not_executable = not_executable or candidate
    if not_executable:
        raise PermissionError(errno.EACCES, "not executable", not_executable)
    raise FileNotFoundError(errno.ENOENT, "not found", program)


def describe_start_error(command: Command, error: OSError) -> str:
    """Return why a process could not be started, and how to fix it."""
    program = command.argv[0]
    if not os.path.isdir(command.cwd_abs):
        return f"working_dir does not exist: {command.cwd_abs}"
    if isinstance(error, FileNotFoundError):
        if "/" in program and os.path.exists(os.path.join(command.cwd_abs, program)):
            return f"command not found: the interpreter in the first line of {program}"
        return f"command not found: {program}"
    if isinstance(error, PermissionError):
        return f"not executable: {error.filename or program} (try chmod +x)"
    if error.errno == errno.ENOEXEC:
        return f"not executable: {program} has no #! line and is not a program"
    return f"could not be started: {program}: {error.strerror}"


def argument_limit(env: Mapping[str, str]) -> int:
    """Return how many bytes a command's arguments may take in addition to this environment.

    Half of what the system allows, because the program may add arguments when it starts another;
    at most 1 MiB, because with an unlimited stack, Linux reports no real limit. Source: execve(2).
    """
    allowed = os.sysconf("SC_ARG_MAX")
    environment = sum([len(os.fsencode(f"{name}={value}")) + 9 for name, value in env.items()])
    return max(min(allowed // 2, 1 << 20) - environment, 4096)


def find_runner(name: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of `pre-commit` or `prek`: from PATH, else next to gitgates."""
    try:
        return (which(name, env.get("PATH", os.defpath)),)
    except OSError:
        beside = os.path.join(os.path.dirname(sys.executable), name)
        return (beside,) if os.access(beside, os.X_OK) else (name,)
