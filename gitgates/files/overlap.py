"""Which worktrees of a repository have changes that conflict, by their last points."""

from __future__ import annotations

import os
import time

from gitgates.files.points import latest_everywhere
from gitgates.git.merging import conflicting_paths, merges_in_memory
from gitgates.git.repo import find_repo, without_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

_LIVE_S = 24 * 3600.0  # a worktree in which nothing has happened for longer is nobody's work


def overlaps(repo: Repo, until_s: float) -> Iterator[tuple[str, list[str]]]:
    """Yield the root of each other worktree that conflicts, and the paths, as far as time allows.

    Raises: GitError, OSError.
    """
    points = {point.root_abs: point for point in latest_everywhere(repo)}
    own = points.pop(repo.root_abs, None)
    if not (own and points and merges_in_memory(repo)):
        return
    for root_abs, other in points.items():
        if time.monotonic() > until_s:
            return
        is_live = time.time() - other.time_s < _LIVE_S and os.path.isdir(root_abs)
        if is_live and (paths := _conflicts(repo, own, other)):
            yield root_abs, paths


def _conflicts(repo: Repo, own: Point, other: Point) -> list[str]:
    """Return the paths that both have changed, so that they conflict."""
    base = repo.git.ask("merge-base", own.head, other.head).stdout.decode().strip()
    paths = conflicting_paths(repo, base, (own.tree, other.tree)) if base else []
    if paths:  # the memory has raw bytes, which may differ from git's if nobody changed them
        known = {*repo.git.names("ls-tree", "-r", "-z", "--name-only", base, "--", *paths)}
        for root_abs in (own.root_abs, other.root_abs):
            git = find_repo(root_abs, without_git(repo.env)).git
            changed = {*git.names("diff", "--name-only", "-z", base, "--", *paths)}
            paths = [path for path in paths if path in changed or path not in known]
    return paths
