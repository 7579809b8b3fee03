"""What a reviewer has seen of a change. Pure."""

from __future__ import annotations

from gitgates.policies.reviews import GATE
from gitgates.types import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.policies.evidence import Fact


def last_seen(journals: Iterable[Iterable[Fact]], agent: str) -> Point | None:
    """Return what was there when a reviewer was started, or sent back to look again, last.

    None where that is not known, and where no snapshot could be taken then.
    """
    points = [
        Point(tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"]))
        for facts in journals
        for fact in facts
        if _is_look(fact, agent)
    ]
    newest = max(points, key=lambda point: point.stamp, default=None)
    return newest if newest and newest.tree else None


def _is_look(fact: Fact, agent: str) -> bool:
    if fact.get("agent") != agent or not isinstance(fact.get("t"), int | float):
        return False
    if not isinstance(fact.get("tree"), str):
        return False
    sent_back = fact.get("gates") == GATE and bool(fact.get("sent_back"))
    return fact.get("what") == "review-began" or (fact.get("what") == "round" and sent_back)
