"""Clear away what has grown old: journals of sessions, runs, checkouts, kept texts, objects.

Nothing goes that somebody uses, and nothing that is not ours. What cannot be removed stays.
"""

from __future__ import annotations

import os
import time

from gitgates.git import object_store
from gitgates.store import runs
from gitgates.store.files import lock_file, open_state
from gitgates.store.slots import prune_slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.types import Config

DAY_S = 24 * 3600.0
KEPT_S = 30 * DAY_S  # a journal, since something was written to it
KEPT_JOURNALS = 200
_JOURNAL = ".jsonl"
_LOCK = ".lock"


def collect(repo: Repo, config: Config, now_s: float | None = None) -> dict[str, int]:
    """Remove what is old or too many in the state of this worktree, and old objects of all.

    Return how many of each went.
    """
    from gitgates.worktree.restore import prune_kept  # this is done once a day

    now = time.time() if now_s is None else now_s
    return {
        "journals": _prune_journals(f"{repo.state_abs}/sessions", now),
        "runs": runs.prune(repo.state_abs, config.keep_runs),
        "checkouts": prune_slots(f"{repo.state_abs}/checkouts"),
        "kept": prune_kept(repo),
        "objects": object_store.prune(repo, now, at_once=True),
    }


def collect_if_due(repo: Repo, config: Config, now_s: float | None = None) -> dict[str, int]:
    """Do the same where nobody has for a day; otherwise look at one file, and that is all."""
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
    try:
        entries = [e for e in os.scandir(sessions_abs) if e.is_file(follow_symlinks=False)]
        found = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
    except OSError:
        return 0
    journals = sorted((name for name in found if name.endswith(_JOURNAL)), key=found.__getitem__)
    many = set(journals[: max(len(journals) - KEPT_JOURNALS, 0)])
    gone = 0
    for name in journals:
        age_s = now - found[name]
        if age_s > KEPT_S or (name in many and age_s > DAY_S):
            # `s.jsonl` is locked itself; each event of it has a lock of its own, `s.1234abcd.lock`.
            stem = name.removesuffix(_JOURNAL)
            locks = [n for n in found if n.startswith(f"{stem}.") and n.endswith(_LOCK)]
            paths_abs = [f"{sessions_abs}/{n}" for n in (name, *locks)]
            gone += _remove_unlocked(paths_abs, now - DAY_S)
    for name, used_s in found.items():
        # Of an event whose hook was killed. Whoever waits for one looks whether it is still there.
        if name.endswith(_LOCK) and now - used_s > DAY_S:
            _remove_unlocked([f"{sessions_abs}/{name}"], now - DAY_S)
    return gone


def _remove_unlocked(paths_abs: list[str], before_s: float) -> bool:
    """Remove files while holding all of their locks; none if somebody holds one."""
    held: list[int] = []
    try:
        for path_abs in paths_abs:
            fd = lock_file(path_abs, flags=os.O_RDWR)
            if fd < 0:
                return False
            held.append(fd)
        if any(os.fstat(fd).st_mtime > before_s for fd in held):
            return False  # a session has just gone on
        for path_abs in paths_abs:
            os.unlink(path_abs)
    except OSError:
        return False
    finally:
        for fd in held:
            os.close(fd)
    return True
