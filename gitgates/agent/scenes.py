"""What a review is about, and all evidence of reviews: for the handling of an agent's event."""

from __future__ import annotations

from gitgates.agent.changed import elsewhere, first_point, snapshot_now
from gitgates.policies.evidence import fold
from gitgates.policies.reviews import is_strict
from gitgates.review.assess import Scene
from gitgates.review.others import foreign_paths
from gitgates.types import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.policies.reviews import Evidence
    from gitgates.policies.session import Fact
    from gitgates.types import Review


def evidence_of(place: Place, facts: list[Fact]) -> Evidence:
    """Return what is known of the session's reviews, those in its other worktrees included."""
    return fold(facts).joined(fold(elsewhere(place)))


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
        roots=place.roots,
        git=place.git,
        review=review,
        base=began.point,
        now=now,
        foreign=foreign_paths(place.roots, place.journal.path_abs, began.point.stamp),
        also=began.also,
        idle=evidence.idle,
    )
    return scene, began.note
