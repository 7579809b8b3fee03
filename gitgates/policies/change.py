"""What a session has changed since it began, and which reviews of it still hold."""

from __future__ import annotations

from gitgates.agent_types import Point
from gitgates.errors import GitError
from gitgates.git.authorship import Span, with_changes
from gitgates.git.diff import changes, patch_id
from gitgates.policies.authorship import own_files_now, with_open_span
from gitgates.policies.beginning import first_point
from gitgates.policies.evidence import EVIDENCE, Quiet, Standing, fold, is_strict
from gitgates.policies.significance import Significance, kinds_of, weigh
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.policies.call import Call
    from gitgates.policies.evidence import Evidence, ReviewDecision
    from gitgates.types import Review


_MOST_MARKERS = 3  # the newest: each one costs a comparison


class ChangeRange(Record):
    """What a session's change lies between, and which of it is not its own."""

    repo: Repo
    review: Review
    base: Point  # what there was when the session began
    now: Point
    also: tuple[str, ...] = ()  # git folders of other worktrees that the session has worked in
    quiet: tuple[Quiet, ...] = ()

    def since(self, start: Point) -> Span:
        """Return the span from a point until now, without what others are known to have done.

        Raises: GitError where git cannot tell that apart.
        """
        later = [one for one in self.quiet if one.ended >= start.stamp]
        times = tuple((one.began, one.ended) for one in later)
        trees = [(one.before, one.after, one.own) for one in later if one.before != one.after]
        if trees:
            start = start._replace(tree=with_changes(self.repo, start.tree, trees))
        return Span(self.repo, start, self.now, self.also, times)


class Assessment(Record):
    """What a session has changed, and what is known of reviews of it."""

    change: Significance  # since the session began
    standings: tuple[Standing, ...] = ()  # the newest first
    decision: ReviewDecision | None = None  # the reviewer's last one
    decision_holds: bool = False


def assess(scene: ChangeRange, evidence: Evidence, *, strict: bool) -> Assessment:
    """Return what the session has changed, and which reviews hold.

    A marker holds for the same content, for the same patch, and as long as what has changed since
    is not significant. In the strict form nothing that counts may have changed.

    Raises: GitError where git cannot compare.
    """
    change = _weigh(scene, scene.base)
    wanted = change.counts if strict else change.significant
    if not wanted:
        return Assessment(change)
    compare = _Comparison(scene, strict=strict)
    newest = tuple(reversed(evidence.markers))[:_MOST_MARKERS]
    standings = tuple(Standing(one, *compare.holds(one.point, one.patch)) for one in newest)
    decided = [one for one in evidence.decisions if one.counts]
    if not decided:
        return Assessment(change, standings)
    last = decided[-1]
    return Assessment(change, standings, last, compare.holds(last.point, last.patch)[0])


def still_holds(scene: ChangeRange, point: Point, patch: str, *, strict: bool) -> tuple[bool, str]:
    """Return whether a review of `point` holds for what is there now, and why.

    Raises: GitError where git cannot compare.
    """
    return _Comparison(scene, strict=strict).holds(point, patch)


def _weigh(scene: ChangeRange, start: Point) -> Significance:
    found = changes(scene.since(start))
    paths = (*(one.path for one in found), *(one.was for one in found if one.was))
    kinds = kinds_of(paths, scene.review)
    return weigh(found, kinds, scene.review)


class _Comparison:
    """Compares what a review saw with what is there now; each thing is found out once."""

    def __init__(self, scene: ChangeRange, *, strict: bool) -> None:
        self._scene = scene
        self._strict = strict
        self._patch = ""
        self._known: dict[tuple[str, str], tuple[bool, str]] = {}

    def holds(self, point: Point, patch: str) -> tuple[bool, str]:
        """Return whether a review of this still holds, and why."""
        key = (point.tree, patch)
        if key not in self._known:
            try:
                self._known[key] = self._compare(point, patch)
            except GitError as error:  # of one review alone
                self._known[key] = False, f"it cannot be compared: {error.message}"
        return self._known[key]

    def _compare(self, point: Point, patch: str) -> tuple[bool, str]:
        scene = self._scene
        if not point.tree:
            return False, "what it saw is not known"
        if point.tree == scene.now.tree:
            return True, "nothing has changed since"
        since = _weigh(scene, point)
        if not since.counts:
            return True, "nothing that counts has changed since"
        # White space is in no patch id, and in a critical file it may have a meaning.
        is_critical = any(one.critical for one in since.files)
        if patch and not is_critical and patch == self._patch_now():
            return True, "it is the same change as then"
        if self._strict:
            return False, f"it has changed since: {since.why}"
        if since.significant:
            return False, f"what has changed since is significant: {since.why}"
        return True, f"what has changed since is below the thresholds: {since.why}"

    def _patch_now(self) -> str:
        if not self._patch:
            self._patch = patch_id(self._scene.since(self._scene.base))
        return self._patch


class Survey(Record):
    """What there is to review, and in which form."""

    scene: ChangeRange
    evidence: Evidence
    strict: bool
    began_note: str = ""  # what stands in for a beginning that was not heard of; empty: it was
    notes: tuple[str, ...] = ()  # that, and why not all of what is there is known


def survey(call: Call, now: Point | None = None) -> Survey:
    """Return what a session's change is measured between. `now`: None for what is there now.

    Raises: GitError where git cannot be asked.
    """
    evidence, now = evidence_of(call), now or call.point
    if call.is_dry:  # at the end of work, policies/authorship.py has recorded that
        evidence = with_open_span(evidence, own_files_now(call), now)
    began = first_point(call)
    scene = ChangeRange(
        repo=call.repo,
        review=call.config.review,
        base=began.point,
        now=now,
        also=began.also,
        quiet=evidence.quiet,
    )
    return Survey(
        scene=scene,
        evidence=evidence,
        strict=is_strict_here(call),
        began_note=began.note,
        notes=tuple(filter(None, (began.note, *call.snapshot.why_unprovable))),
    )


def evidence_of(call: Call) -> Evidence:
    """Return what is known of the session's reviews, those in its other worktrees included."""
    here, others = call.state(EVIDENCE), call.entries_elsewhere
    return here.joined(fold(others)) if others else here


def is_strict_here(call: Call) -> bool:
    """Return whether the strict form is in force."""
    return is_strict(call.config.review, (call.state(EVIDENCE), fold(call.entries_elsewhere)))
