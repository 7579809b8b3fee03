"""A finding of `gitgates doctor`; features have checks of their own."""

from __future__ import annotations

from typing import Literal, TypeAlias

from gitgates.core.record import Record

# problem: gates do not run, or not as configured. note: worth knowing, but maybe intended.
Severity: TypeAlias = Literal["ok", "problem", "note"]


class Finding(Record):
    """The result of one check."""

    severity: Severity
    check: str  # the check's name, which is stable, for scripts
    where: str  # the file, the hook, the worktree
    what: str
    mend: str = ""  # the command or edit that fixes it
