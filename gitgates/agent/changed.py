"""What a session has changed since its first snapshot, committed or not."""

from __future__ import annotations

import os

from gitgates.agent.place import note
from gitgates.errors import GitError, GitgatesError
from gitgates.git.object_store import reading_git
from gitgates.git.snapshot import Snapshot, take
from gitgates.policies.session import fold
from gitgates.store.log import FOLDER, Journal, git_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.checks import Changes
    from gitgates.agent.place import Place
    from gitgates.policies.change import Beginning
    from gitgates.policies.evidence import Evidence
    from gitgates.policies.session import Fact, Session


def snapshot_now(place: Place) -> Snapshot:
    """Return what is there now. Where no snapshot can be taken, that is said: its tree is empty."""
    try:
        return take(place.repo)
    except GitgatesError as error:
        note(place, error.message)
        return Snapshot(tree="", why_unprovable=(error.message,))


def is_unchanged(session: Session, now: Snapshot) -> bool:
    """Tell whether all is as it was when the session began, in what no tree holds, too."""
    return bool(now.tree) and now.tree == session.base and now.not_seen == session.not_seen


def keep_base(place: Place, session: Session, now: Snapshot) -> Session:
    """Note what stands in for the first snapshot of a session whose beginning was not heard of.

    Otherwise the next event would take one, and what is there by then would be nobody's work.
    Returns the session with it.

    Raises: GitError where git cannot be asked; OSError where the journal cannot be written.
    """
    from gitgates.policies import evidence  # seldom: hooks were installed in mid-session

    began = first_point(place, evidence.fold(place.journal.read()))
    # In a worktree that the session came to later, it began when it did elsewhere.
    elsewhere_s = {"t": began.point.stamp} if began.point.stamp else {}
    why = session.no_base or ("" if elsewhere_s else began.note)
    fact = {"tree": began.point.tree, "head": began.point.head, "why": why, "note": began.note}
    place.journal.append({"what": "snapshot", **fact, "not_seen": now.not_seen, **elsewhere_s})
    return fold(place.journal.read())


def first_point(place: Place, evidence: Evidence) -> Beginning:
    """Return what was there when the session began, for its reviews.

    Raises: GitError where git cannot be asked.
    """
    from gitgates.policies.change import beginning  # only reviews need it

    return beginning(place.git, evidence, _facts_elsewhere(place))


def elsewhere(place: Place) -> list[Fact]:
    """Return what the session's journals in other worktrees of the repository hold."""
    return [fact for facts in _facts_elsewhere(place).values() for fact in facts]


def blocks_elsewhere(place: Place) -> tuple[int, int]:
    """Return how often the session was kept from stopping in other worktrees: now, and at all."""
    others = [fold(facts) for facts in _facts_elsewhere(place).values()]
    prompt_id = place.payload.prompt_id
    now = sum(one.blocks(prompt) for one in others if (prompt := one.prompt_of(prompt_id)))
    return now, sum(one.blocks() for one in others)


def _facts_elsewhere(place: Place) -> dict[str, list[Fact]]:
    """Return git folder → what the session's journal in another worktree of it holds."""
    name = os.path.basename(place.journal.path_abs)
    journals = [Journal(f"{state_abs}/{FOLDER}/{name}") for state_abs in place.repo.states_abs[1:]]
    found = {git_dir_of(one.path_abs): one.read() for one in journals}
    return {folder: facts for folder, facts in found.items() if facts}


def session_changes(place: Place, session: Session, now: str) -> Changes:
    """Return the files that the session has changed and that are there, and what to know of it."""
    from gitgates.agent.checks import Changes  # most often, nothing has changed
    from gitgates.git.paths import changed_paths, tree_paths

    if session.base and now:
        try:
            git = reading_git(place.repo)
            return Changes(*tree_paths(git, session.base, now), note=session.no_base)
        except GitError as error:
            note(place, f"the session's first snapshot is gone: {error.message}")
    why = session.no_base or "there is no snapshot"
    return Changes(*changed_paths(place.git), note=f"{why}; taken is what differs from HEAD")
