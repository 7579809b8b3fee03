"""What a look at one thing found."""

from __future__ import annotations

import shlex

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # problem: gates do not run, or not as configured. note: worth knowing, and maybe meant so.
    Severity: TypeAlias = Literal["ok", "problem", "note"]


class Finding(Record):
    """One thing that was looked at."""

    severity: Severity
    check: str  # which look it was: a stable word for scripts
    where: str  # the file, the hook, the worktree
    what: str
    mend: str = ""  # the command, or the edit, that mends it


def in_folder(folder_abs: str, command: str, here_abs: str) -> str:
    """Return a command that does its work in a folder, called from the current root."""
    return command if folder_abs == here_abs else f"(cd {shlex.quote(folder_abs)} && {command})"
