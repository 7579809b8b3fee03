"""The program that started us, ignoring shells in between. Linux only: from /proc."""

from __future__ import annotations

import os

from gitgates.core.record import Record

# Programs in between: shells, and what starts Python programs.
_BETWEEN = ("sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout", "uv", "uvx", "pipx")
_BEGINNINGS = ("python", "gitgates", "pytest")
_MOST = 20
_PARENT, _STARTED = 1, 19  # after the name. Source: proc(5), /proc/PID/stat


class Program(Record):
    """What identifies a process."""

    pid: int
    started: int  # in ticks since the machine was booted


def who_started() -> Program | None:
    """Return the nearest ancestor that is neither a shell nor Python; None if unknown."""
    pid = os.getppid()
    for _ in range(_MOST):
        name, fields = _stat(pid)
        if not fields or pid <= 1:
            return None
        if name not in _BETWEEN and not name.startswith(_BEGINNINGS):
            return Program(pid, int(fields[_STARTED]))
        pid = int(fields[_PARENT])
    return None


def is_running(program: Program) -> bool:
    """Return whether a process has not ended."""
    _name, fields = _stat(program.pid)
    return bool(fields) and int(fields[_STARTED]) == program.started


def _stat(pid: int) -> tuple[str, list[bytes]]:
    """Return a process's name, and its fields from the kernel; empty if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            head, _, rest = file.read().rpartition(b")")
    except OSError:
        return "", []
    return os.fsdecode(head.partition(b"(")[2]), rest.split()
