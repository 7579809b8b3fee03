"""Tell the person, if an agent stops in a linked worktree, whose changes conflict with its own."""

from __future__ import annotations

import time

from gitgates.core.clean import first_few
from gitgates.core.errors import GitgatesError
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.files.overlap import overlaps
from gitgates.journal.entries import NoteEntry
from gitgates.journal.journal import of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call

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
