"""Find out what a session has changed, and which reviews of it still hold."""

from __future__ import annotations

from gitgates.errors import GitError
from gitgates.git.merge_tree import begin, take_over
from gitgates.git.session_change import Span, changes, patch_id
from gitgates.policies.asking import IN_TRANSCRIPT, Facts, Ruling, Standing, judge
from gitgates.policies.retry import BLOCKED, PASSED
from gitgates.policies.review import Significance, weigh
from gitgates.record import Record
from gitgates.review.kinds import kinds_of
from gitgates.review.transcript import find_review, may_have_acted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.policies.reviews import Decision, Evidence, Quiet
    from gitgates.types import Point, Review

_MOST_MARKERS = 3  # the newest: each one costs a comparison


class Scene(Record):
    """What a change is assessed in."""

    repo: Repo
    git: Git
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
            work = begin(self.repo)
            start = start._replace(tree=take_over(work, start.tree, trees))
        return Span(self.repo, start, self.now, self.also, times)


class StopRequest(Record):
    """Who wants to stop, and how often that was refused."""

    strict: bool
    session: str
    prompt: str
    blocks: tuple[int, int]  # by all gates: in this prompt, and in the session
    limits: tuple[int, int]
    transcript_abs: str
    agent: str = ""  # the sub-agent's id; empty: the main thread


class Decided(Record):
    """Whether an agent may stop, and what that was decided by."""

    found: Assessment
    facts: Facts
    ruling: Ruling
    told: tuple[str, str] | None = None  # how a review came about that only the transcript shows


class Assessment(Record):
    """What a session has changed, and what is known of reviews of it."""

    change: Significance  # since the session began
    standings: tuple[Standing, ...] = ()  # the newest first
    decision: Decision | None = None  # the reviewer's last one
    decision_holds: bool = False


def assess(scene: Scene, evidence: Evidence, *, strict: bool) -> Assessment:
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


def decide(scene: Scene, evidence: Evidence, request: StopRequest) -> Decided:
    """Return whether an agent may stop, as far as reviews go; nothing is written.

    Raises: GitError where git cannot compare.
    """
    strict, path_abs = request.strict, request.transcript_abs
    found = assess(scene, evidence, strict=strict)
    wanted = found.change.counts if strict else found.change.significant
    facts = Facts(
        strict=strict,
        wanted=wanted,
        standings=found.standings,
        decision=found.decision,
        decision_holds=found.decision_holds,
        evidence=evidence,
        prompt=request.prompt,
        blocks=request.blocks,
        limits=request.limits,
        acted=evidence.acted or (wanted and may_have_acted(path_abs)),
        tree=scene.now.tree,
    )
    ruling = judge(facts)
    if ruling.outcome != BLOCKED or strict or request.agent:
        return Decided(found, facts, ruling)
    # A review before the newest marker is none that is not known, nor is one before the session.
    since = max([scene.base.stamp, *(one.point.stamp for one in evidence.markers)])
    told = find_review(path_abs, scene.review, since, request.session)
    if told is None:
        return Decided(found, facts, ruling)
    return Decided(found, facts, Ruling(PASSED, why=IN_TRANSCRIPT), told)


def still_holds(scene: Scene, point: Point, patch: str, *, strict: bool) -> tuple[bool, str]:
    """Tell whether a review of `point` holds for what is there now, and why.

    Raises: GitError where git cannot compare.
    """
    return _Comparison(scene, strict=strict).holds(point, patch)


def _weigh(scene: Scene, start: Point) -> Significance:
    found = changes(scene.since(start))
    paths = (*(one.path for one in found), *(one.was for one in found if one.was))
    kinds = kinds_of(paths, scene.review)
    return weigh(found, kinds, scene.review)


class _Comparison:
    """Compares what a review saw with what is there now; each thing is found out once."""

    def __init__(self, scene: Scene, *, strict: bool) -> None:
        self._scene = scene
        self._strict = strict
        self._patch = ""
        self._known: dict[tuple[str, str], tuple[bool, str]] = {}

    def holds(self, point: Point, patch: str) -> tuple[bool, str]:
        """Tell whether a review of this still holds, and why."""
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
