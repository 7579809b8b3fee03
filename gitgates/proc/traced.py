"""What a command that strace(1) observes has left running when it has ended.

strace waits for all that the command has started, also for a service in a session of its own; and
without strace, such a process could not open a file any more. So it is ended with the command.
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
    """Return whether the command itself has ended, and strace waits for what it has left running.

    Source: proc(5), /proc/PID/task/TID/children: what else it traces are no children of its own.
    Not all kernels have that file.
    """
    path = f"/proc/{strace_pid}/task/{strace_pid}/children"
    if read_or_empty(path).strip():
        return False  # the usual case, told by one file
    left = _statuses(strace_pid)  # before its children: the command may be starting just now
    is_running = any(b"\nPPid:\t%d\n" % strace_pid in status for status in left.values())
    return bool(left) and not (is_running or read_or_empty(path).strip())


def left_running(strace_pid: int) -> set[int]:
    """Return the processes that strace observes."""
    return {*_statuses(strace_pid)}


def _statuses(strace_pid: int) -> dict[int, bytes]:
    """Return the processes that strace observes → what proc(5), /proc/PID/status, says of each."""
    mark = b"\nTracerPid:\t%d\n" % strace_pid
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    statuses = {int(name): read_or_empty(f"/proc/{name}/status") for name in names}
    return {pid: status for pid, status in statuses.items() if mark in status}


def end_left(strace_pid: int, number: int = int(_signal.SIGKILL)) -> None:
    """Signal what the command has left running; strace ends then as the command has ended."""
    for pid in left_running(strace_pid):
        try:
            os.kill(pid, number)
        except OSError:  # it has ended
            continue
