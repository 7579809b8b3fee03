"""A small shell that outlives us: when we die with something hidden, it starts the recovery.

It is there before the first file is moved. It has a session of its own, so that no signal to our
group reaches it, and no parent, so that nobody who ends our descendants finds it; its standard
streams are /dev/null, so that no host waits for it. It does nothing but read from a pipe that only
we hold open: a word there lets it go, and the end of the pipe means that we are gone.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.locks import Held
    from gitgates.git.repo import Repo

# The inner shell is left by the outer one at once; `exec` keeps it a single small process.
_WATCH = """
(
    read -r word
    [ "$word" = done ] || exec "$@"
) <&3 3<&- &
"""
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from gitgates.__main__ import main; main()"
)


class Guardian:
    """The shell that watches over one run."""

    def __init__(self, repo: Repo, git_locks: Held) -> None:
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        held, git_pid = git_locks
        locks = [word for path_abs, changed_ns in held for word in (path_abs, str(changed_ns))]
        about = ("rescue", repo.root_abs, repo.git_dir_abs, str(git_pid), *locks)
        recovery = (sys.executable, "-I", "-S", "-c", _START, home, *about)
        read_fd, self._fd = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            actions = [
                *((os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, read_fd, 3),
            ]
            argv = ("sh", "-c", _WATCH, "gitgates-guardian", *recovery)
            pid = os.posix_spawn(
                "/bin/sh", argv, _clean(repo.env), file_actions=actions, setsid=True
            )
        finally:
            os.close(read_fd)
            os.close(null)
        os.waitpid(pid, 0)

    def wake(self) -> None:
        """Let the guardian start its work, as if we had died."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def let_go(self) -> None:
        """Tell the guardian that all is well."""
        if self._fd >= 0:
            try:
                os.write(self._fd, b"done\n")
            except BrokenPipeError:
                return  # somebody killed it, and there is nothing left to watch over
            finally:
                os.close(self._fd)
                self._fd = -1


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what git set for a hook: git is gone when it is used."""
    return {name: value for name, value in env.items() if not name.startswith("GIT_")}
