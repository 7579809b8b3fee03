"""What a review is about, and all evidence of reviews: for the handling of an agent's event."""

from __future__ import annotations

from gitgates.agent.changed import elsewhere, first_point, snapshot_now
from gitgates.agent_types import Point
from gitgates.git.object_store import reading_git
from gitgates.git.paths import tree_paths
from gitgates.policies.change import Scene, own_since, with_open_span
from gitgates.policies.evidence import fold, is_strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent_types import Payload
    from gitgates.policies.evidence import Evidence
    from gitgates.policies.session import Fact
    from gitgates.types import Review


def evidence_of(place: Place, facts: list[Fact]) -> Evidence:
    """Return what is known of the session's reviews, those in its other worktrees included."""
    return fold(facts).joined(fold(elsewhere(place)))


def is_shell_running(payload: Payload) -> bool:
    """Tell whether something runs in the background that may write any file."""
    return any(one.status == "running" and one.kind != "subagent" for one in payload.background)


def own_now(place: Place, facts: list[Fact], *, hears_all: bool) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None where they may have written any file.
    """
    payload = place.payload
    if is_shell_running(payload):
        return None
    has_agents = any(task.kind == "subagent" for task in payload.background)
    if not hears_all and (payload.agent_id or has_agents):
        return None  # what a sub-agent does is in no transcript of the session
    journals = (facts, elsewhere(place))
    paths = (payload.transcript_abs, place.repo.root_abs)
    return own_since(journals, *paths, hears_all=hears_all)


def changed_by_others(place: Place, now_tree: str, *, hears_all: bool) -> tuple[str, ...]:
    """Return the files that somebody else has changed since the session began, as far as is known.

    Raises: GitError where a tree is not there.
    """
    facts = place.journal.read()
    own = own_now(place, facts, hears_all=hears_all)
    git = reading_git(place.repo)
    found: set[str] = set()
    for span in with_open_span(fold(facts), own, Point(tree=now_tree)).quiet:
        if span.before != span.after:
            changed, gone = tree_paths(git, span.before, span.after)
            found.update({*changed, *gone}.difference(span.own))
    return tuple(sorted(found))


def is_strict_here(place: Place, review: Review, evidence: Evidence) -> bool:
    """Tell whether the strict form is in force."""
    return is_strict(review, (evidence, fold(elsewhere(place))))


def point_now(place: Place) -> Point:
    """Return what is there now; its tree is empty where no snapshot can be taken."""
    now = snapshot_now(place)
    return Point(tree=now.tree, head=now.head)


def scene_of(place: Place, review: Review, evidence: Evidence, now: Point) -> tuple[Scene, str]:
    """Return what a change lies between, and what is to be known of its beginning.

    Raises: GitError where git cannot be asked.
    """
    began = first_point(place, evidence)
    scene = Scene(
        repo=place.repo,
        review=review,
        base=began.point,
        now=now,
        also=began.also,
        quiet=evidence.quiet,
    )
    return scene, began.note
