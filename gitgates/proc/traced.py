"""Processes that a command observed by strace(1) leaves running when it ends.

strace waits for everything that the command started, even for a service in its own session; and
without strace, such a process could no longer open a file. So it is ended with the command.
"""

from __future__ import annotations

import os

from gitgates.store.files import read_or_empty

STRACE = "GITGATES_STRACE"  # the variable that marks the processes of one observed command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal


def command_has_ended(strace_pid: int) -> bool:
    """Return whether the command itself has ended, and strace waits for what it left running.

    Source: proc(5), /proc/PID/task/TID/children: other traced processes are not strace's children.
    Not all kernels have that file.
    """
    path = f"/proc/{strace_pid}/task/{strace_pid}/children"
    if read_or_empty(path).strip():
        return False  # the usual case, which needs only one file
    left = _statuses(strace_pid)  # before its children: the command may be starting just now
    is_running = any(b"\nPPid:\t%d\n" % strace_pid in status for status in left.values())
    return bool(left) and not (is_running or read_or_empty(path).strip())


def left_running(strace_pid: int) -> set[int]:
    """Return the processes that strace observes."""
    return {*_statuses(strace_pid)}


def _statuses(strace_pid: int) -> dict[int, bytes]:
    """Return observed process → its /proc/PID/status, see proc(5)."""
    mark = b"\nTracerPid:\t%d\n" % strace_pid
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    statuses = {int(name): read_or_empty(f"/proc/{name}/status") for name in names}
    return {pid: status for pid, status in statuses.items() if mark in status}


def end_left(strace_pid: int, number: int = int(_signal.SIGKILL)) -> None:
    """Signal what the command left running; then strace ends as the command ended."""
    for pid in left_running(strace_pid):
        try:
            os.kill(pid, number)
        except OSError:  # it has ended
            continue
