"""Note that a review ran, and on what."""

from __future__ import annotations

from gitgates.agent.scenes import evidence_of, point_now, scene_of
from gitgates.agent.telling import event_key
from gitgates.errors import GitError
from gitgates.git.changes import patch_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent_types import Point
    from gitgates.policies.change import Scene
    from gitgates.policies.session import Fact
    from gitgates.types import Review


def mark(place: Place, review: Review, facts: list[Fact], told: tuple[str, str]) -> None:
    """Note that a review ran: how, and by which name. It saw what is there now.

    A sub-agent saw what there was when it started, whatever others have done since.
    """
    evidence = evidence_of(place, facts)
    point = dict(evidence.began).get(place.payload.agent_id) if told[0] == "agent" else None
    point = point or point_now(place)
    try:
        scene, _note = scene_of(place, review, evidence, point)
    except GitError as error:
        place.say(error.message)
        return
    place.journal.append(marker(place, scene, told))


def marker(place: Place, scene: Scene, told: tuple[str, str]) -> Fact:
    """Return what the journal keeps of a review of what is there now in the scene."""
    how, name = told
    return {
        "what": "marker",
        "how": how,
        "name": name,
        "agent": place.payload.agent_id,
        "prompt_id": place.payload.prompt_id,
        "tree": scene.now.tree,
        "head": scene.now.head,
        "patch": _patch(place, scene, scene.now),
        "key": event_key(place.payload),
    }


def _patch(place: Place, scene: Scene, point: Point) -> str:
    if not point.tree:
        return ""
    try:
        return patch_id(scene.since(scene.base))
    except GitError as error:
        place.say(error.message)
        return ""
