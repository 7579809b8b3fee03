"""What other sessions of the same worktree have written, so that it is not this session's."""

from __future__ import annotations

import os

from gitgates.policies.evidence import fold
from gitgates.system.journal import Journal, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.evidence import Fact
    from gitgates.system.roots import Roots


def foreign_paths(roots: Roots, journal_path_abs: str, since_stamp: float) -> frozenset[str]:
    """Return the files that only tools of other sessions have written in this worktree since.

    What a shell command has written is nobody's here: it may be this session's.
    """
    others = [path for path in sessions(roots.state_abs) if path != journal_path_abs]
    found = {path for other in others for path in _written(other, since_stamp)}
    if not found:
        return frozenset()
    try:
        own = fold(Journal(journal_path_abs).read()).wrote
    except OSError:
        return frozenset()  # then all may be its own
    return frozenset(found - own)


def _written(path_abs: str, since_stamp: float) -> list[str]:
    try:
        if os.stat(path_abs).st_mtime < since_stamp:
            return []
        facts = Journal(path_abs).read()
    except OSError:
        return []
    return [str(fact["path"]) for fact in facts if _is_write(fact, since_stamp)]


def _is_write(fact: Fact, since_stamp: float) -> bool:
    stamp = fact.get("t")
    return (
        fact.get("what") == "wrote"
        and "path" in fact
        and isinstance(stamp, int | float)
        and stamp > since_stamp
    )
