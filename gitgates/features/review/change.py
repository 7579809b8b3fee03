"""What a session has changed since it began, and which reviews are still valid."""

from __future__ import annotations

from gitgates.core.errors import GitError
from gitgates.core.record import Record, lazy
from gitgates.drivers.start import first_point
from gitgates.drivers.writers import own_history, unheard
from gitgates.features.review.config import settings_of, weighting_of
from gitgates.features.review.facts import (
    COMPLETE,
    DECISION,
    EVIDENCE,
    SKIP,
    evidence_of,
    is_strict,
)
from gitgates.features.review.significance import Significance, weigh
from gitgates.files.changes import FOREVER_S, in_tree, trees_of
from gitgates.git.diff import Trees, file_differences, patch_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import FileDifference, WorktreeState
    from gitgates.drivers.call import Call
    from gitgates.features.review.facts import Marker
    from gitgates.features.review.weakened import Weakening
    from gitgates.files.changes import Changes, History

MOST_MARKERS = 3  # the newest only: each one costs a comparison
_CHANGE = "change"


class MarkerStatus(Record):
    """A marker, and whether it is valid for the current content."""

    marker: Marker
    holds: bool
    why: str  # as text


class SessionChange:
    """What a session has changed, and which reviews are valid; each is computed once.

    Members that compare content raise GitError if git fails.
    """

    def __init__(self, call: Call) -> None:
        """Read where a session began."""
        self.repo, self.review = call.repo, settings_of(call.config)
        self.weighting = weighting_of(call.config)
        self.base, self.began_note = first_point(call)
        self.now = call.point
        self.evidence = evidence_of(call)
        self.is_strict = is_strict(call)
        self._call = call

    @property
    def notes(self) -> tuple[str, ...]:
        """What the comparisons made so far could not tell."""
        texts = (self.began_note, unheard(self._call), *self._call.snapshot.doubts)
        return tuple(filter(None, texts))

    @lazy
    def _history(self) -> History | None:
        return own_history(self._call)

    def at(self, now: WorktreeState) -> Trees:
        """Return the session's changes up to a point."""
        if self._history is None:
            return Trees(self.repo, self.base.tree, now.tree, self.base.stamp)
        return self._trees(self._history.changes(until_s=now.stamp or FOREVER_S), self.base.stamp)

    def since(self, marker: Marker) -> Trees:
        """Return its changes since a review, which may have been in another worktree."""
        reviewed = marker.point
        if self._history is None:
            return Trees(self.repo, reviewed.tree, self.now.tree, reviewed.stamp)
        since_s = reviewed.stamp if marker in self._call.state(EVIDENCE).markers else 0.0
        by_path = self._history.changes(since_s, self.now.stamp or FOREVER_S)
        # A command may have written a file before the review and ended after it, or undone it.
        unchanged = in_tree(self.repo, reviewed.tree, by_path)
        return self._trees({p: by_path[p] for p in by_path if p not in unchanged}, reviewed.stamp)

    def _trees(self, by_path: Changes, began_s: float) -> Trees:
        if not by_path:
            return Trees(self.repo, self.now.tree, self.now.tree, began_s)
        return Trees(self.repo, *trees_of(self.repo, by_path), began_s)

    @lazy
    def whole(self) -> Trees:
        """Return its changes since it began."""
        return self.at(self.now)

    @lazy
    def _files(self) -> tuple[FileDifference, ...]:
        return file_differences(self.whole)

    @lazy
    def weight(self) -> Significance:
        """Return its significance."""
        return weigh(self._files, self.weighting)

    @lazy
    def weakened(self) -> tuple[Weakening, ...]:
        """Return the changes that weaken the checks."""
        return self._weakened(self.whole, self._files)

    def _weakened(self, trees: Trees, files: tuple[FileDifference, ...]) -> tuple[Weakening, ...]:
        from gitgates.features.review.weakened import find_weakened  # only if something changed

        return find_weakened(trees, files, self.weighting) if files else ()

    @property
    def is_wanted(self) -> bool:
        """Whether it needs a review; in the strict form, any change that counts does."""
        if self.weight.counts if self.is_strict else self.weight.significant:
            return True
        return self.review.weakened == "block" and bool(self.weakened)

    @lazy
    def patch(self) -> str:
        """Return its patch id; empty if there is none."""
        return patch_id(self.whole)

    @lazy
    def standings(self) -> tuple[MarkerStatus, ...]:
        """Return the newest markers and their validity, newest first."""
        newest = reversed(self.evidence.markers[-MOST_MARKERS:])
        return tuple(
            MarkerStatus(marker, *self._holds(marker, strict=self.is_strict)) for marker in newest
        )

    @lazy
    def decision(self) -> Marker | None:
        """Return the last decision of the reviewer."""
        decided = (marker for marker in reversed(self.evidence.decisions) if marker.how == DECISION)
        return next(decided, None)

    @lazy
    def decision_holds(self) -> bool:
        """Whether that decision is about the current content."""
        return self.decision is not None and self.is_of_now(self.decision)

    @property
    def is_reviewed(self) -> bool:
        """Whether the required evidence exists."""
        holding = [status.marker for status in self.standings if status.holds]
        if not self.is_strict:
            return bool(holding)
        if any(marker.how == SKIP and marker.by_person for marker in holding):
            return True
        return bool(self.decision and self.decision.name == COMPLETE and self.decision_holds)

    def is_of_now(self, marker: Marker) -> bool:
        """Return whether nothing relevant has changed since a review."""
        return self._holds(marker, strict=True)[0]

    def _holds(self, marker: Marker, *, strict: bool) -> tuple[bool, str]:
        """Return whether a review is still valid, and why.

        It holds for the same content, for the same patch, and as long as the changes since then are
        not significant; if `strict`, nothing that counts may have changed.
        """
        if not marker.point.tree:
            return False, "what it covered is unknown"
        if marker.point.tree == self.now.tree:
            return True, "nothing has changed since"
        try:
            return self._compare(marker, strict=strict)
        except GitError as error:  # it concerns this review only
            return False, f"it cannot be compared: {error.message}"

    def _compare(self, marker: Marker, *, strict: bool) -> tuple[bool, str]:
        trees = self.since(marker)
        files = file_differences(trees)
        since = weigh(files, self.weighting)
        if not since.counts:
            return True, "nothing relevant has changed since"
        # Patch ids ignore white space, which may matter in a critical file.
        is_critical = any(file.critical for file in since.files)
        if marker.patch and not is_critical and marker.patch == self.patch:
            return True, "it is the same change as before"
        if strict:
            return False, f"it has changed since: {since.why}"
        if since.significant:
            return False, f"the changes since then are significant: {since.why}"
        if self.review.weakened == "block" and self._weakened(trees, files):
            return False, "the changes since then weaken the checks"
        return True, f"the changes since then are below the thresholds: {since.why}"


def change_of(call: Call) -> SessionChange:
    """Return the session's change, computed once for a call."""
    if _CHANGE not in call.explanations:
        call.explanations[_CHANGE] = SessionChange(call)
    change: SessionChange = call.explanations[_CHANGE]
    return change
