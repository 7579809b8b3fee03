"""What a session has changed since its first snapshot, committed or not."""

from __future__ import annotations

from gitgates.agent.place import note
from gitgates.errors import GitError, GitgatesError
from gitgates.system.facts import changed_paths, tree_paths
from gitgates.system.own_objects import object_env
from gitgates.system.snapshot import take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.policies.session import Session


def snapshot_now(place: Place) -> tuple[str, bool]:
    """Return the tree of what is there now, and whether the same tree means the same content.

    Where no snapshot can be taken, that is said, and the tree is empty.
    """
    try:
        snapshot = take(place.roots, place.git)
    except GitgatesError as error:
        note(place, error.message)
        return "", False
    return snapshot.tree, snapshot.provable


def session_paths(place: Place, session: Session, now: str) -> tuple[tuple[str, ...], str]:
    """Return the files that the session has changed and that are there, and what to know of it."""
    if session.base and now:
        try:
            git = place.git._replace(env=object_env(place.roots, place.git.env))
            return tree_paths(git, session.base, now), ""
        except GitError as error:
            note(place, f"the session's first snapshot is gone: {error.message}")
    why = session.no_base or "there is no first snapshot of the session"
    return changed_paths(place.git), f"{why}; taken is what differs from HEAD"
