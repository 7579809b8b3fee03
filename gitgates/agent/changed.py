"""What a session has changed since its first snapshot, committed or not."""

from __future__ import annotations

import os

from gitgates.agent.place import note
from gitgates.errors import GitError, GitgatesError
from gitgates.system.journal import FOLDER, Journal
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


def first_tree(place: Place, session: Session) -> str:
    """Return what was there when the session began; empty where that is not known.

    In a worktree that the session came to later, that is the commit which was checked out there
    when the session began elsewhere, or when the worktree was made.
    """
    if session.base:
        return session.base
    began = _began_elsewhere(place)
    if not began:
        return ""
    # The log of HEAD counts in seconds: what is of the same one belongs to the session.
    then = f"HEAD@{{{int(began) - 1} +0000}}^{{tree}}"
    asked = place.git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", then)
    return "" if asked.exit_status else asked.stdout.decode().split()[-1]


def _began_elsewhere(place: Place) -> float:
    """Return when the session began in another worktree of the repository; 0 where it did not."""
    name = os.path.basename(place.journal.path_abs)
    times = []
    for state_abs in place.roots.states_abs[1:]:
        facts = Journal(f"{state_abs}/{FOLDER}/{name}").read()
        times += [float(fact["t"]) for fact in facts[:1]]
    return min(times, default=0.0)


def session_paths(place: Place, session: Session, now: str) -> tuple[tuple[str, ...], str]:
    """Return the files that the session has changed and that are there, and what to know of it."""
    from gitgates.system.facts import changed_paths, tree_paths  # most often, nothing has changed

    if session.base and now:
        try:
            git = place.git._replace(env=object_env(place.roots, place.git.env))
            return tree_paths(git, session.base, now), ""
        except GitError as error:
            note(place, f"the session's first snapshot is gone: {error.message}")
    why = session.no_base or "there is no first snapshot of the session"
    return changed_paths(place.git), f"{why}; taken is what differs from HEAD"
