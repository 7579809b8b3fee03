"""Our program that serves one run: it gets requests on a socket, and ends with the run."""

from __future__ import annotations

import os
import sys
import time

from gitgates.proc.call import spawn_detached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping
else:
    import _signal

_MOST_S = 5.0  # to end by itself
# The program must not be imported from the folder where it starts, which is the repository.
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); __import__(sys.argv[2], fromlist=['main']).main()"
)
_POLL_S = 0.002
FD_BYTES = 4  # of a file descriptor in a message


def python_argv(module: str, *options: str) -> tuple[str, ...]:
    """Return the arguments that run `main` of one of our modules in another Python process."""
    home = os.path.abspath(f"{__file__}/../../..")
    return sys.executable, "-I", *options, "-c", _START, home, module


class Helper:
    """A program that runs until `close`, or until we end, which closes its standard input."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        """Start it. Raises: OSError if that is not possible."""
        import _socket  # `socket` takes longer to import than most gates to start

        self._has_work = False
        self._rights = _socket.SOL_SOCKET, _socket.SCM_RIGHTS
        self._socket, theirs = _socket.socketpair()
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self._pid = spawn_detached(argv[0], argv, env, actions)
        finally:
            theirs.close()

    def send(self, *fds: int) -> None:
        """Send it a byte, with file descriptors. Raises: OSError if it has ended."""
        self._has_work = True
        content = b"".join([fd.to_bytes(FD_BYTES, sys.byteorder) for fd in fds])
        self._socket.sendmsg([b"."], [(*self._rights, content)])

    def close(self) -> None:
        """Let it end, wait, and kill it if it does not."""
        self._socket.close()
        until = time.monotonic() + (_MOST_S if self._has_work else 0)
        while not os.waitpid(self._pid, os.WNOHANG)[0]:
            if time.monotonic() > until:
                os.kill(self._pid, _signal.SIGKILL)
            time.sleep(_POLL_S)
