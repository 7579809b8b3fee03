"""What a session has changed since it began, and which reviews of that are valid."""

from __future__ import annotations

from gitgates.core.errors import GitError
from gitgates.core.record import Record, lazy
from gitgates.features.review.config import settings_of
from gitgates.features.review.facts import (
    COMPLETE,
    DECISION,
    EVIDENCE,
    SKIP,
    evidence_of,
    is_strict,
)
from gitgates.features.review.significance import Significance, kinds_of, weigh
from gitgates.files.changes import FOREVER_S, trees_of
from gitgates.files.origins import in_tree
from gitgates.git.diff import Trees, file_differences, patch_id
from gitgates.session.start import first_point
from gitgates.session.writers import own_history, unheard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Point
    from gitgates.features.review.facts import Marker
    from gitgates.files.changes import History
    from gitgates.files.versions import Changes
    from gitgates.session.call import Call


MOST_MARKERS = 3  # the newest: each one costs a comparison


_CHANGE = "change"


class MarkerStatus(Record):
    """A marker, and whether it is valid for the present content."""

    marker: Marker
    holds: bool
    why: str  # in words


class SessionChange:
    """What a session has changed, and which reviews are valid; each is computed once.

    What compares content raises GitError if git fails.
    """

    def __init__(self, call: Call, now: Point | None = None) -> None:
        """Read where a session began. `now`: the point to compare with; None: the present."""
        self.repo, self.review = call.repo, settings_of(call.config)
        self.base, self.began_note = first_point(call)
        self.now = now or call.point
        self.evidence = evidence_of(call)
        self.is_strict = is_strict(call)
        self._call = call
        self._comparisons: dict[tuple[str, str, bool], tuple[bool, str]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the comparison cannot know, as far as it was made."""
        texts = (self.began_note, unheard(self._call), *self._call.snapshot.doubts)
        return tuple(filter(None, texts))

    @lazy
    def _history(self) -> History | None:
        return own_history(self._call)

    def at(self, now: Point) -> Trees:
        """Return what the session had changed at a point."""
        if self._history is None:
            return Trees(self.repo, self.base.tree, now.tree, self.base.stamp)
        return self._trees(self._history.changes(until_s=now.stamp or FOREVER_S), self.base.stamp)

    def since(self, marker: Marker) -> Trees:
        """Return what it has changed since a review, which may have been in another worktree."""
        reviewed = marker.point
        if self._history is None:
            return Trees(self.repo, reviewed.tree, self.now.tree, reviewed.stamp)
        since_s = reviewed.stamp if marker in self._call.state(EVIDENCE).markers else 0.0
        by_path = self._history.changes(since_s, self.now.stamp or FOREVER_S)
        # A command may have written it before, and have ended after; or it has come back.
        unchanged = in_tree(self.repo, reviewed.tree, by_path)
        return self._trees({p: by_path[p] for p in by_path if p not in unchanged}, reviewed.stamp)

    def _trees(self, by_path: Changes, began_s: float) -> Trees:
        if not by_path:
            return Trees(self.repo, self.now.tree, self.now.tree, began_s)
        return Trees(self.repo, *trees_of(self.repo, by_path), began_s)

    @lazy
    def whole(self) -> Trees:
        """Return what it has changed since it began."""
        return self.at(self.now)

    @lazy
    def weight(self) -> Significance:
        """Return its significance."""
        return self._weigh(self.whole)

    @property
    def is_wanted(self) -> bool:
        """Whether it needs a review: in the strict form, anything that counts does."""
        return self.weight.counts if self.is_strict else self.weight.significant

    @lazy
    def patch(self) -> str:
        """Return its patch id; empty if there is none."""
        return patch_id(self.whole)

    @lazy
    def standings(self) -> tuple[MarkerStatus, ...]:
        """Return the newest markers and their validity, the newest first."""
        newest = reversed(self.evidence.markers[-MOST_MARKERS:])
        return tuple(
            MarkerStatus(marker, *self._holds(marker, strict=self.is_strict)) for marker in newest
        )

    @lazy
    def decision(self) -> Marker | None:
        """Return the last decision of the reviewer."""
        decided = (marker for marker in reversed(self.evidence.decisions) if marker.how == DECISION)
        return next(decided, None)

    @property
    def decision_holds(self) -> bool:
        """Whether that is about the present content."""
        last = self.decision
        return last is not None and self.is_of_now(last)

    @property
    def is_reviewed(self) -> bool:
        """Whether there is the required evidence."""
        holding = [status.marker for status in self.standings if status.holds]
        if not self.is_strict:
            return bool(holding)
        if any(marker.how == SKIP and marker.by_person for marker in holding):
            return True
        last = self.decision
        return last is not None and last.name == COMPLETE and self.is_of_now(last)

    def is_of_now(self, marker: Marker) -> bool:
        """Return whether nothing relevant has changed since a review."""
        return self._holds(marker, strict=True)[0]

    def _weigh(self, span: Trees) -> Significance:
        changed_files = file_differences(span)
        paths = (
            *(file.path for file in changed_files),
            *(file.was for file in changed_files if file.was),
        )
        return weigh(changed_files, kinds_of(paths, self.review), self.review)

    def _holds(self, marker: Marker, *, strict: bool) -> tuple[bool, str]:
        """Return whether a review is still valid, and why.

        It holds for the same content, for the same patch, and as long as what has changed since is
        not significant; if `strict`, nothing that counts may have changed.
        """
        key = (marker.point.tree, marker.patch, strict)
        if key not in self._comparisons:
            try:
                self._comparisons[key] = self._compare(marker, strict=strict)
            except GitError as error:  # of one review alone
                self._comparisons[key] = False, f"it cannot be compared: {error.message}"
        return self._comparisons[key]

    def _compare(self, marker: Marker, *, strict: bool) -> tuple[bool, str]:
        if not marker.point.tree:
            return False, "what it covered is unknown"
        if marker.point.tree == self.now.tree:
            return True, "nothing has changed since"
        since = self._weigh(self.since(marker))
        if not since.counts:
            return True, "nothing relevant has changed since"
        # White space is in no patch id, and in a critical file it may have a meaning.
        is_critical = any(file.critical for file in since.files)
        if marker.patch and not is_critical and marker.patch == self.patch:
            return True, "it is the same change as before"
        if strict:
            return False, f"it has changed since: {since.why}"
        if since.significant:
            return False, f"what has changed since is significant: {since.why}"
        return True, f"what has changed since is below the thresholds: {since.why}"


def change_of(call: Call) -> SessionChange:
    """Return the session's change, computed once for a call."""
    if _CHANGE not in call.rests_on:
        call.rests_on[_CHANGE] = SessionChange(call)
    change: SessionChange = call.rests_on[_CHANGE]
    return change
