"""A finding of `gitgates doctor`, whose checks also lie in the folders of features."""

from __future__ import annotations

from typing import Literal, TypeAlias

from gitgates.core.record import Record

# problem: gates do not run, or not as configured. note: worth knowing, and maybe meant so.
Severity: TypeAlias = Literal["ok", "problem", "note"]


class Finding(Record):
    """The result of one check."""

    severity: Severity
    check: str  # which check it was: a stable word for scripts
    where: str  # the file, the hook, the worktree
    what: str
    mend: str = ""  # the command, or the edit, that fixes it
