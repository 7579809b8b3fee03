"""The chain of candidates: which commits to test now, and which may land.

The links are each built on the one before, the first on the target. A commit that passes lands
with all below it. Of those that fail, the lowest is searched for: its branch is at fault.
"""

from __future__ import annotations

from gitgates.features.land.trial import TrialOutcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.features.land.queue import Landing

UNTESTED, TESTING, GREEN, RED = "untested", "testing", "green", "red"


class Link:
    """One candidate."""

    def __init__(self, entry: Landing, commit: str) -> None:
        self.entry, self.commit = entry, commit
        self.state = UNTESTED
        self.outcome = TrialOutcome(passed=False)


def due(states: Sequence[str], *, batch: int, free: int) -> list[int]:
    """Return the links to test now, in `free` slots: ends of batches, or what tells who fails."""
    if RED in states:
        below = [at for at in range(states.index(RED)) if states[at] == UNTESTED]
        if len(below) <= free:
            return below
        return [below[(number + 1) * len(below) // (free + 1)] for number in range(free)]
    last = max((at for at, state in enumerate(states) if state != UNTESTED), default=-1)
    ends = [
        min(end, len(states) - 1) for end in range(last + batch, len(states) + batch - 1, batch)
    ]
    return ends[: max(free, 0)]


def landable(states: Sequence[str], *, batch: int) -> int:
    """Return the highest link that may land; -1: none. With `batch` 1, each below has passed."""
    green = [at for at, state in enumerate(states) if state == GREEN]
    if batch == 1:
        green = [at for at in green if {*states[:at]} <= {GREEN}]
    return max(green, default=-1)
