"""What a session has changed, since when, whose work it is, and which reviews of it still hold."""

from __future__ import annotations

import os
import time

from gitgates.agent_types import UNCHANGING, Point
from gitgates.errors import GitError
from gitgates.git.authorship import Span, with_changes
from gitgates.git.changes import changes, patch_id
from gitgates.git.snapshot import Snapshot, take
from gitgates.lifecycle import kind_of
from gitgates.policies.asking import IN_TRANSCRIPT, Facts, Ruling, Standing, judge
from gitgates.policies.evidence import Quiet, fold, is_strict
from gitgates.policies.needs import hears_all
from gitgates.policies.retry import BLOCKED, PASSED
from gitgates.policies.reviewer_commands import only_shows
from gitgates.policies.significance import Significance, kinds_of, weigh
from gitgates.policies.transcript import Unread, calls_since, find_review, may_have_acted
from gitgates.record import Record
from gitgates.store.files import length_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gitgates.git.repo import Git, Repo
    from gitgates.lifecycle import EventKind
    from gitgates.policies.evidence import Decision, Evidence, Fact
    from gitgates.types import Config, Review


_MOST_MARKERS = 3  # the newest: each one costs a comparison


class Scene(Record):
    """What a change is assessed in."""

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


_POINTS = ("snapshot", "rest")
_TOOL_EVENTS = ("before-tool", "after-tool")


def own_since(
    journals: Sequence[Sequence[Fact]], transcript_abs: str, root_abs: str, *, hears_all: bool
) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None where they may have written any file, or where that is not known. `journals` are those of
    the session, that of this worktree first; `hears_all` tells whether events tell of all tools.
    """
    point, since = _since_last(journals[0])
    if point is None or point.get("running"):
        return None
    since += [fact for facts in journals[1:] for fact in facts if _stamp(fact) > _stamp(point)]
    events = [fact for fact in since if _kind(fact) in _TOOL_EVENTS]
    # What a sub-agent does is in no transcript of the session, and not every client tells of it.
    tells = hears_all and any(fact.get("agent") for fact in events)
    quiet = (*UNCHANGING, "writes", *(("agent",) if tells else ()))
    if any(fact.get("tool_kind") not in quiet and fact.get("shows") is not True for fact in events):
        return None
    own = {str(fact["path"]) for fact in since if fact.get("what") == "wrote" and "path" in fact}
    start, size = point.get("transcript"), length_of(transcript_abs)
    if not isinstance(start, int) or size < max(start, 0):
        heard = hears_all and any(_kind(fact) in _TOOL_EVENTS for fact in journals[0])
        return sorted(own) if heard else None
    written = _written(transcript_abs, start, root_abs, quiet)
    return None if written is None else sorted(own | written)


def with_open_span(evidence: Evidence, own: list[str] | None, now: Point) -> Evidence:
    """Return evidence that tells apart, too, what others have changed since the last snapshot."""
    point = evidence.point
    if own is None or point is None or not now.tree:
        return evidence
    span = Quiet(
        began=point.stamp, ended=time.time(), before=point.tree, after=now.tree, own=tuple(own)
    )
    return evidence._replace(quiet=(*evidence.quiet, span))


def _since_last(facts: Sequence[Fact]) -> tuple[Fact | None, list[Fact]]:
    """Return the last fact with a snapshot, and those after it."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].get("what") in _POINTS and facts[at].get("tree"):
            return facts[at], list(facts[at + 1 :])
    return None, []


def _kind(fact: Fact) -> EventKind:
    return kind_of(str(fact.get("event", "")))


def _stamp(fact: Fact) -> float:
    stamp = fact.get("t")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def _written(
    transcript_abs: str, start: int, root_abs: str, quiet: Iterable[str]
) -> set[str] | None:
    """Return the files that tools wrote since a place of the transcript; None for any file."""
    found: set[str] = set()
    real_abs = os.path.realpath(root_abs)
    try:
        for call in calls_since(transcript_abs, start):
            if call.is_result or (call.kind == "shell" and only_shows(call.command)):
                continue
            if call.kind not in quiet or (call.kind == "writes" and not os.path.isabs(call.path)):
                return None
            if call.kind == "writes":
                found.add(os.path.relpath(os.path.realpath(call.path), real_abs))
    except Unread:
        return None
    return found


_UNKNOWN = "this session's beginning was not heard of here"
_NOW = "HEAD, so that all that differs from HEAD counts as its work"


class Beginning(Record):
    """What a session's change is measured from."""

    point: Point
    note: str = ""  # what stands in for a beginning that was not heard of; empty: it was
    also: tuple[str, ...] = ()  # git folders of other worktrees that the session has come to


def beginning(git: Git, evidence: Evidence, elsewhere: Mapping[str, Sequence[Fact]]) -> Beginning:
    """Return where the session began here. `elsewhere`: git folder → its facts in that worktree.

    Where that was not heard of: what was checked out when it began elsewhere, else what is now. The
    log of HEAD counts in seconds: what is of the same one belongs to the session.

    Raises: GitError where git cannot be asked.
    """
    also = tuple(folder for folder, facts in elsewhere.items() if facts)
    if evidence.base:
        return Beginning(evidence.base, evidence.base_note, also)
    began = min((_stamp(facts[0]) for facts in elsewhere.values() if facts), default=0.0)
    names = [(f"HEAD@{{{int(began) - 1} +0000}}", "what was checked out when it began")]
    for name, said in [*(names if began else []), ("HEAD", _NOW)]:
        asked = git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if not asked.exit_status:
            head = asked.stdout.decode().split()[-1]
            tree = git.lines("rev-parse", "--verify", f"{head}^{{tree}}")[0]
            point = Point(tree=tree, head=head, stamp=began)
            return Beginning(point, f"{_UNKNOWN}: compared with {said}", also)
    empty = git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    point = Point(tree=empty, stamp=began)
    return Beginning(point, f"{_UNKNOWN}: everything is taken for its work", also)


class Survey(Record):
    """What there is to review, and in which form."""

    scene: Scene
    snapshot: Snapshot
    strict: bool
    base_is_known: bool
    notes: tuple[str, ...] = ()


def survey(
    repo: Repo,
    config: Config,
    facts: Sequence[Sequence[Fact]],
    *,
    elsewhere: Mapping[str, Sequence[Fact]],
    evidence: Evidence,
    transcript_abs: str,
) -> Survey:
    """Return what a session's change is measured between, with a snapshot of what is there now.

    `facts`: of its journals, that of this worktree first; `elsewhere`: git folder → of the others.

    Raises: GitError where no snapshot can be taken; StateError where it cannot be stored.
    """
    snapshot = take(repo)
    began = beginning(repo.git, evidence, elsewhere)
    now = Point(tree=snapshot.tree, head=snapshot.head)
    own = own_since(facts, transcript_abs, repo.root_abs, hears_all=hears_all(config))
    scene = Scene(
        repo=repo,
        review=config.review,
        base=began.point,
        now=now,
        also=began.also,
        quiet=with_open_span(evidence, own, now).quiet,
    )
    return Survey(
        scene=scene,
        snapshot=snapshot,
        strict=is_strict(config.review, map(fold, facts)),
        base_is_known=not began.note,
        notes=tuple(text for text in (began.note, *snapshot.why_unprovable) if text),
    )
