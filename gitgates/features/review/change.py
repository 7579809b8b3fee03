"""What a session has changed since it began, and which reviews of that are valid."""

from __future__ import annotations

from gitgates.core.errors import GitError
from gitgates.core.record import Record, lazy
from gitgates.features.review.config import settings_of
from gitgates.features.review.facts import COMPLETE, DECISION, SKIP, evidence_of, is_strict
from gitgates.features.review.significance import Significance, kinds_of, weigh
from gitgates.git.authorship import Span, with_changes
from gitgates.git.diff import file_differences, patch_id
from gitgates.git.without_writes import without_writes
from gitgates.session.facts import TIMELINE
from gitgates.session.start import first_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Point
    from gitgates.features.review.facts import Marker
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
        self.notes = tuple(filter(None, (self.began_note, *call.snapshot.doubts)))
        self.evidence, self.timeline = evidence_of(call), call.state(TIMELINE)
        self.is_strict = is_strict(call)
        self._also = tuple(call.elsewhere)
        self._comparisons: dict[tuple[str, str, bool], tuple[bool, str]] = {}

    def since(self, start: Point) -> Span:
        """Return the span from a point until now, without the known changes of others."""
        later = [period for period in self.timeline.quiet if period.ended >= start.stamp]
        times = tuple((period.began, period.ended) for period in later)
        trees = [
            (period.before, period.after, period.written)
            for period in later
            if period.before != period.after
        ]
        if trees:
            start = start._replace(tree=with_changes(self.repo, start.tree, trees))
        return Span(self.repo, start, self.now, self._also, times, self.timeline.stashes)

    def without_others(self, span: Span) -> Span:
        """Return a span without the writes of our gates."""
        writes = [write for write in self.timeline.others_writes if write.stamp >= span.start.stamp]
        if not writes:
            return span
        start, now = without_writes(self.repo, span.start.tree, span.now.tree, writes)
        return span._replace(start=span.start._replace(tree=start), now=span.now._replace(tree=now))

    @lazy
    def whole(self) -> Span:
        """Return the span of the whole session."""
        return self.since(self.base)

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
        return patch_id(self.without_others(self.whole))

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

    def _weigh(self, span: Span) -> Significance:
        changed_files = file_differences(self.without_others(span))
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
        since = self._weigh(self.since(marker.point))
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
