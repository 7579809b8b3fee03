"""Run the hook that was there before ours: with the same arguments, input and environment.

It keeps the terminal, the process group and git's own variables, as if git had started it.
"""

from __future__ import annotations

import errno
import os
import select

from gitgates.record import Record
from gitgates.system.signals import SignalPipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX = ".before-gitgates"


class KeptHook(Record):
    """One hook of somebody else's, and what git gave to it."""

    path_abs: str
    argv: tuple[str, ...]
    stdin: bytes | None  # None: it has our standard input
    env: Mapping[str, str]

    def exists(self) -> bool:
        """Tell whether git would run it: it is there, and executable."""
        return os.path.isfile(self.path_abs) and os.access(self.path_abs, os.X_OK)

    def run(self) -> int:
        """Run it to its end; return its exit status, or 128 and the signal that ended it.

        Signals that ask us to end are handed on. Raises: OSError where it cannot be started.
        """
        with SignalPipe() as signals:
            pid = self._start()
            poll = select.poll()
            poll.register(signals.fd, select.POLLIN)
            while True:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
                poll.poll()
                signals.drain()
                while signals.received:
                    os.kill(pid, signals.received.pop())

    def _start(self) -> int:
        actions: list[tuple[int, int, int]] = []
        stdin_fd = -1
        if self.stdin is not None:
            stdin_fd = _pipe_from(self.stdin)
            actions.append((os.POSIX_SPAWN_DUP2, stdin_fd, 0))
        argv = (self.path_abs, *self.argv)
        try:
            try:
                return os.posix_spawn(self.path_abs, argv, self.env, file_actions=actions)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                    # No interpreter in its first line: git then asks the shell, and so do we.
                return os.posix_spawn("/bin/sh", ("sh", *argv), self.env, file_actions=actions)
        finally:
            if stdin_fd >= 0:
                os.close(stdin_fd)


def _pipe_from(content: bytes) -> int:
    """Return a descriptor to read `content` from.

    A pipe holds 64 KiB; what is longer is written by a child of its own, so that we never wait for
    a reader that does not read.
    """
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    written = os.write(write_fd, content) if content else 0
    if written < len(content) and os.fork() == 0:
        os.set_blocking(write_fd, True)
        os.close(read_fd)
        rest = content[written:]
        try:
            while rest:
                rest = rest[os.write(write_fd, rest) :]
        finally:
            os._exit(0)
    os.close(write_fd)
    return read_fd
