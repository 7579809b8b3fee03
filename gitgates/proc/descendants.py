"""End every process that a command started, even those that have left its process group.

A process leaves its group with setsid(2), and its parent if the parent ends first. It stays in its
control group, if one can be made, and keeps a variable of the command's environment unless somebody
removes it. What another service starts for it (cron, systemd, docker) is not found.

Source: cgroups(7), "Cgroups version 2"; proc(5), /proc/PID/environ.
"""

from __future__ import annotations

import os
import time

from gitgates.proc.call import call
from gitgates.proc.processes import GRACE_S
from gitgates.store.files import read_or_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_POLL_S = 0.02
_KILLED_S = 1.0  # until the kernel has removed killed processes
_RECOVERY_S = 5.0  # for the guardian of a hook among them, which restores stashed work
_LEFT_NS = 60 * 10**9  # much longer than from making a control group to entering it
_NAME = "gitgates-"  # of a control group, then PID-MONOTONIC_NS
_GUARDIAN = b"\0rescue\0"  # in its arguments


class Descendants:
    """All processes of a command whose environment has `mark`, which is `NAME=value`."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.cgroup_abs = _make_cgroup()  # empty: there is none

    def pids(self) -> set[int]:
        """Return the running processes."""
        pids = _in_cgroup(self.cgroup_abs) | marked(os.fsencode(self.mark))
        return pids - {os.getpid()}

    def end(self) -> None:
        """Ask all of them to end; kill those that do not, and wait until they are gone."""
        self._signal_until_gone(_signal.SIGTERM, GRACE_S)
        self._signal_until_gone(_signal.SIGKILL, _KILLED_S)
        until_s = time.monotonic() + _RECOVERY_S
        while self.pids() and time.monotonic() < until_s:
            time.sleep(_POLL_S)
        self._signal_until_gone(_signal.SIGKILL, _KILLED_S, guardians=True)
        _remove_cgroup(self.cgroup_abs)

    def _signal_until_gone(self, number: int, limit_s: float, *, guardians: bool = False) -> None:
        """Signal each process once, new ones included, until none is left or time is up."""
        until_s, signalled = time.monotonic() + limit_s, set[int]()
        while running := {pid for pid in self.pids() if guardians or not _is_guardian(pid)}:
            for pid in running - signalled:
                _send(pid, number)
            signalled |= running
            if time.monotonic() >= until_s:
                return
            time.sleep(_POLL_S)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:  # it has ended, or is another user's
        return


def _is_guardian(pid: int) -> bool:
    return _GUARDIAN in read_or_empty(f"/proc/{pid}/cmdline")


def marked(mark: bytes) -> set[int]:
    """Return the processes that were started with a variable in their environment."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    if not names:
        return _marked_by_ps(mark)
    marker = b"\0" + mark + b"\0"
    return {int(name) for name in names if marker in b"\0" + read_or_empty(f"/proc/{name}/environ")}


def _marked_by_ps(mark: bytes) -> set[int]:
    """Ask ps(1) for the same, as on macOS, whose -E shows the environment after the command."""
    shows = "-axEww" if os.uname().sysname == "Darwin" else "axeww"
    try:
        argv = ("ps", shows, "-o", "pid=,command=")
        lines = call(argv, {"PATH": os.defpath}).stdout.splitlines()
    except OSError:
        return set()
    return {int(line.split()[0]) for line in lines if mark in line.split()[1:]}


# Control groups.


def _make_cgroup() -> str:
    """Make a control group below our own; return its folder, empty if that is not possible."""
    parent_abs = _own_cgroup()
    path_abs = f"{parent_abs}/{_NAME}{os.getpid()}-{time.monotonic_ns()}"
    try:
        if not parent_abs:
            return ""
        _remove_left(parent_abs)
        os.mkdir(path_abs)
    except OSError:  # read-only, as in many containers, or not ours to divide
        return ""
    return path_abs


def _remove_left(parent_abs: str) -> None:
    """Remove empty control groups that killed runs have left.

    Raises: OSError.
    """
    now_ns = time.monotonic_ns()
    for name in os.listdir(parent_abs):
        made_ns = name.rpartition("-")[2] if name.startswith(_NAME) else ""
        if made_ns.isdigit() and now_ns - int(made_ns) > _LEFT_NS:
            _remove_below(f"{parent_abs}/{name}")


def _own_cgroup() -> str:
    """Return the folder of our control group, version 2; empty if there is none.

    Source: cgroups(7), /proc/PID/cgroup; proc(5), /proc/PID/mountinfo.
    """
    paths = [
        line[3:] for line in read_or_empty("/proc/self/cgroup").splitlines() if line[:3] == b"0::"
    ]
    for line in read_or_empty("/proc/self/mountinfo").splitlines():
        fields, _, kind = line.partition(b" - ")
        if paths and kind.split(b" ")[0] == b"cgroup2":
            root, mounted = fields.split(b" ")[3:5]
            inside = paths[0].removeprefix(root.rstrip(b"/"))
            return os.fsdecode(mounted + inside).rstrip("/")
    return ""


def _in_cgroup(cgroup_abs: str) -> set[int]:
    """Return the processes in a control group and those below it."""
    folders = [folder_abs for folder_abs, _, _ in os.walk(cgroup_abs)] if cgroup_abs else []
    members = (read_or_empty(f"{folder_abs}/cgroup.procs").split() for folder_abs in folders)
    return {int(pid) for pids in members for pid in pids}


def _remove_cgroup(cgroup_abs: str) -> None:
    """Remove a control group and those below it; a process that is just ending keeps it busy."""
    until_s = time.monotonic() + _RECOVERY_S
    while cgroup_abs and os.path.isdir(cgroup_abs) and time.monotonic() < until_s:
        if not _remove_below(cgroup_abs):
            time.sleep(_POLL_S)


def _remove_below(cgroup_abs: str) -> bool:
    """Remove a control group and those below it; return whether no process was in them."""
    try:
        for folder_abs in reversed([folder_abs for folder_abs, _, _ in os.walk(cgroup_abs)]):
            os.rmdir(folder_abs)
    except OSError:
        return False
    return True
