"""Texts that could not be in their place: kept as files and under refs, for a month."""

from __future__ import annotations

import os
import time

from gitgates.system.rescue import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git

REFS = "refs/gitgates/kept"
KEPT_S = 30 * 24 * 3600


def prune_kept(git: Git, kept_abs: str) -> None:
    """Remove what has been kept for a month, the refs with it."""
    try:
        stamps = os.listdir(kept_abs)
    except OSError:
        return
    for stamp in stamps:
        folder_abs = f"{kept_abs}/{stamp}"
        if time.time() - os.stat(folder_abs).st_mtime < KEPT_S:
            continue
        for name in git.lines("for-each-ref", "--format=%(refname)", f"{REFS}/{stamp}"):
            git.ask("update-ref", "-d", name)
        remove_tree(folder_abs)
