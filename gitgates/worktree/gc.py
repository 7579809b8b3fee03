"""Remove old state: session journals, runs, checkouts, kept texts, objects.

Nothing is removed that is in use, or that is not ours. What cannot be removed stays.
"""

from __future__ import annotations

import os
import sys
import time

from gitgates.core.errors import GitgatesError
from gitgates.git import object_store
from gitgates.store import runs
from gitgates.store.files import lock_file, open_state
from gitgates.store.slots import prune_slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

DAY_S = 24 * 3600.0
KEPT_S = 30 * DAY_S  # a journal, since something was written to it
_PRUNE_S = 5.0
_OURS = (".jsonl", ".folded", ".lock")


def collect(
    repo: Repo, config: Config, now_s: float | None = None, *, most_runs: int = runs.AT_ONCE
) -> dict[str, int]:
    """Prune the state of this worktree, and the objects of all worktrees.

    Return how many of each were removed.
    """
    from contextlib import suppress

    from gitgates.files.prune import FOREVER_S, prune
    from gitgates.store.rescue import prune_restored
    from gitgates.worktree.cache import cache_path, remove_orphans
    from gitgates.worktree.checkouts import FOLDER
    from gitgates.worktree.restore import prune_kept  # this is done once a day

    now = time.time() if now_s is None else now_s
    with suppress(GitgatesError, OSError):  # it is tried again
        # Only what sessions and runs saw: points have limits of their own.
        prune(repo, now, keep_s=FOREVER_S, max_size=sys.maxsize, limit_s=_PRUNE_S)
    return {
        "journals": _prune_journals(f"{repo.state_abs}/sessions", now),
        "runs": runs.prune(repo.state_abs, config.keep_runs, most=most_runs),
        "checkouts": prune_slots(f"{cache_path(repo)}/{FOLDER}"),
        "orphans": remove_orphans(repo.env),
        "kept": prune_kept(repo),
        "restored": prune_restored(repo.state_abs, now),
        "objects": object_store.prune(repo, now),
    }


def collect_if_due(repo: Repo, config: Config, now_s: float | None = None) -> dict[str, int]:
    """Prune unless that was done within a day, which one file records."""
    now = time.time() if now_s is None else now_s
    stamp_abs = f"{repo.state_abs}/collected"
    try:
        if abs(now - os.stat(stamp_abs).st_mtime) < DAY_S:
            return {}
    except OSError:
        pass
    try:
        # First, so that no other hook does the same meanwhile.
        with open(stamp_abs, "ab", buffering=0, opener=open_state):
            os.utime(stamp_abs, (now, now))
    except OSError:
        return {}  # there is no state, or it is not ours to write
    return collect(repo, config, now)


def _prune_journals(sessions_abs: str, now: float) -> int:
    removed = 0
    try:
        for entry in list(os.scandir(sessions_abs)):
            # A killed hook leaves its event's lock. A waiter checks whether the file still exists.
            is_journal = entry.name.endswith(".jsonl")
            is_lock = entry.name.endswith(".lock")
            is_ours = entry.is_file(follow_symlinks=False) and entry.name.endswith(_OURS)
            if is_ours and _remove_unused(entry.path, now - (DAY_S if is_lock else KEPT_S)):
                removed += is_journal
    except OSError:
        return removed
    return removed


def _remove_unused(path_abs: str, before_s: float) -> bool:
    """Remove a file if nobody has written to it since, or holds its lock."""
    fd = lock_file(path_abs, flags=os.O_RDWR)
    if fd < 0:
        return False
    try:
        is_unused = os.fstat(fd).st_mtime < before_s
        if is_unused:
            os.unlink(path_abs)
    finally:
        os.close(fd)
    return is_unused
