"""Call a program of ours, git above all: bytes in, bytes out, with a deadline."""

from __future__ import annotations

import os
import select
import time

from gitgates.proc.alarm import OutOfTime
from gitgates.proc.spawn import which
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping
else:
    import _signal

_DEADLINE_S = 120.0


class Called(Record):
    """What a program answered. An exit status below zero is the signal that ended it."""

    exit_status: int
    stdout: bytes
    stderr: bytes


class Talk(Record):
    """A program that has been started, and how to talk to it."""

    pid: int
    in_fd: int
    out_fd: int
    err_fd: int


def call(
    argv: tuple[str, ...], env: Mapping[str, str], stdin: bytes = b"", *, apart: bool = False
) -> Called:
    """Run a program in the current folder and return what it answered.

    It stays in our process group, so that ^C reaches it as it reaches us; unless it runs `apart`,
    where half of a thing done would be worse than a moment more.

    Raises: OSError where it cannot be started; TimeoutError after two minutes.
    """
    return finish(begin(argv, env, apart=apart), stdin)


def begin(argv: tuple[str, ...], env: Mapping[str, str], *, apart: bool = False) -> Talk:
    """Start a program, as `call` does. Each one that was begun is to be finished or abandoned."""
    program = which(argv[0], env.get("PATH", os.defpath))
    (in_read, in_write), (out, out_write), (err, err_write) = os.pipe(), os.pipe(), os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, in_read, 0),
            (os.POSIX_SPAWN_DUP2, out_write, 1),
            (os.POSIX_SPAWN_DUP2, err_write, 2),
        ]
        pid = _spawn(program, (argv, env), actions, apart=apart)
    except OSError:
        for fd in (in_write, out, err):
            os.close(fd)
        raise
    finally:
        for fd in (in_read, out_write, err_write):
            os.close(fd)
    return Talk(pid, in_write, out, err)


def finish(talk: Talk, stdin: bytes) -> Called:
    """Hand a program its input, and return what it answered when it has ended.

    Raises: TimeoutError after two minutes.
    """
    return _converse(talk.pid, talk.in_fd, {talk.out_fd: [], talk.err_fd: []}, stdin)


def abandon(talk: Talk) -> None:
    """End a program whose answer nobody waits for any more."""
    os.kill(talk.pid, _signal.SIGKILL)
    for fd in (talk.in_fd, talk.out_fd, talk.err_fd):
        os.close(fd)
    os.waitpid(talk.pid, 0)


def _spawn(
    program: str,
    call: tuple[tuple[str, ...], Mapping[str, str]],
    actions: list[tuple[int, int, int]],
    *,
    apart: bool,
) -> int:
    reset = [int(_signal.SIGPIPE)]
    if apart:
        return os.posix_spawn(program, *call, file_actions=actions, setsigdef=reset, setpgroup=0)
    return os.posix_spawn(program, *call, file_actions=actions, setsigdef=reset)


def _converse(pid: int, in_write: int, outputs: dict[int, list[bytes]], stdin: bytes) -> Called:
    deadline = time.monotonic() + _DEADLINE_S
    open_fds = set(outputs)
    poll = select.poll()
    for fd in outputs:
        poll.register(fd, select.POLLIN)
    os.set_blocking(in_write, False)
    poll.register(in_write, select.POLLOUT)
    try:
        while open_fds:
            for fd, _events in _wait(poll, deadline):
                if fd == in_write:
                    stdin = _write(fd, stdin)
                    if not stdin:
                        poll.unregister(fd)
                        os.close(fd)
                        in_write = -1
                elif data := os.read(fd, 1 << 16):
                    outputs[fd].append(data)
                else:
                    poll.unregister(fd)
                    open_fds.discard(fd)
    except (OutOfTime, TimeoutError):
        os.kill(pid, _signal.SIGKILL)
        raise
    finally:
        for fd in (in_write, *outputs):
            if fd >= 0:
                os.close(fd)
        _pid, status = os.waitpid(pid, 0)
    stdout, stderr = (b"".join(parts) for parts in outputs.values())
    return Called(os.waitstatus_to_exitcode(status), stdout, stderr)


def _wait(poll: select.poll, deadline: float) -> list[tuple[int, int]]:
    ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    if not ready:
        raise TimeoutError(f"no end after {_DEADLINE_S:.0f} s")
    return ready


def _write(fd: int, data: bytes) -> bytes:
    """Write what fits; return the rest, or nothing where nobody reads any more."""
    if not data:
        return b""
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""
