"""Tell the person, if an agent stops in a linked worktree, whose changes conflict with its own."""

from __future__ import annotations

import os
import time

from gitgates.core.clean import first_few
from gitgates.core.errors import GitgatesError
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.files.points import latest_everywhere
from gitgates.git.merging import conflicting_paths, merges_in_memory
from gitgates.git.repo import find_repo, without_git
from gitgates.journal.entries import NoteEntry
from gitgates.journal.journal import of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.drivers.call import Call
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

_LIMIT_S = 1.0  # of all comparisons
_MOST = 3


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Say it once for each worktree and its files."""
    repo = call.repo
    if call.is_dry or so_far.level >= BLOCK or repo.git_dir_abs == repo.common_dir_abs:
        return so_far
    was_told = {note["text"] for note in of_kind(call.entries, NoteEntry)}
    try:
        for root_abs, paths in overlaps(repo, time.monotonic() + _LIMIT_S):
            files = first_few(paths, _MOST)
            text = f"gitgates: what {root_abs} has not landed yet conflicts with this: {files}"
            if text not in was_told:
                note = NoteEntry(text, "conflicts")
                so_far = so_far.joined(Verdict(WARN, to_person=text, entries=(note,)))
    except (GitgatesError, OSError) as error:
        call.say(f"other worktrees were not compared: {error}")
    return so_far


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
