"""The guardian: a watchdog process that starts the recovery when we are killed, and ends gates.

It is a small shell that outlives us, started before the first file is moved. It has its own
session, so signals to our group do not reach it, and no parent, so it is not found among our
descendants; its standard streams are /dev/null, so no host waits for it. It only reads from a pipe
that we alone hold open: a word there dismisses it, and the end of the pipe means that we are gone.
"""

from __future__ import annotations

import os
import sys
import time

from gitgates.proc.processes import GRACE_S, group_lives

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
else:
    import _signal

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
_POLL_S = 0.02


class Guardian:
    """The shell that watches one run."""

    def __init__(self, repo: Repo, git_locks: Mapping[str, int], git_pid: int) -> None:
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        locks = [word for path_abs, ns in git_locks.items() for word in (path_abs, str(ns))]
        about = ("rescue", repo.root_abs, repo.git_dir_abs, str(git_pid), *locks)
        recovery = (sys.executable, "-I", "-S", "-c", _START, home, *about)
        # Without what git has set for a hook: git is gone when it is used.
        env = {name: value for name, value in repo.env.items() if not name.startswith("GIT_")}
        read_fd, self._fd = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            actions = [
                *((os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, read_fd, 3),
            ]
            argv = ("sh", "-c", _WATCH, "gitgates-guardian", *recovery)
            pid = os.posix_spawn("/bin/sh", argv, env, file_actions=actions, setsid=True)
        finally:
            os.close(read_fd)
            os.close(null)
        os.waitpid(pid, 0)

    def trigger(self) -> None:
        """Let the guardian start the recovery, as if we had died."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def release(self) -> None:
        """End the guardian: nothing needs to be recovered."""
        if self._fd >= 0:
            try:
                os.write(self._fd, b"done\n")
            except BrokenPipeError:
                return  # somebody killed it, and there is nothing left to watch over
            finally:
                os.close(self._fd)
                self._fd = -1


def terminate_gates(token: str, groups: set[int]) -> None:
    """Terminate a run's gates, and kill those that do not end within part of the grace.

    Those are all processes with its token in their environment, and the process groups that it has
    noted, as long as their numbers still mean the same: /proc is not needed.
    """
    from gitgates.proc.descendants import marked  # after a kill

    pids = marked(f"GITGATES_RUN={token}".encode()) if token else ()
    groups = (groups | {*filter(None, map(_group_of, pids))}) - {os.getpgrp()}
    _send(groups, _signal.SIGTERM)
    end_s = time.monotonic() + GRACE_S / 4  # nobody is there to wait politely for
    while any(group_lives(group) for group in groups) and time.monotonic() < end_s:
        time.sleep(_POLL_S)
    _send(groups, _signal.SIGKILL)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:  # it has just ended
        return 0


def _send(groups: set[int], number: int) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            continue
