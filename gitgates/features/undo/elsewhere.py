"""Save points of the other worktrees that a command is about to change, or to remove.

A worktree that is gone has nobody who could record that. Its point says that its files were as
committed then, as those of a worktree are that is added in its place.
"""

from __future__ import annotations

import os
import shlex

from gitgates.engine.command import without_git
from gitgates.features.undo.points import Author, append, record
from gitgates.features.undo.states import current, load, removed
from gitgates.git.repo import find_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.features.undo.settings import UndoSettings
    from gitgates.git.repo import Repo


def save(repo: Repo, settings: UndoSettings, roots_abs: Iterable[str]) -> dict[str, str]:
    """Record what has changed in other worktrees; return root → state.

    Raises: as `points.record`.
    """
    states = {}
    for root_abs in roots_abs:
        if root_abs != repo.root_abs and os.path.isdir(root_abs):
            other = find_repo(root_abs, without_git(repo.env))
            record(other, settings, Author())
            states[root_abs] = current(other.state_abs)
    return states


def record_ended(
    repo: Repo, settings: UndoSettings, states: Mapping[str, str], author: Author
) -> list[str]:
    """Record what a command has changed in other worktrees; return how each comes back.

    Raises: as `points.record`.
    """
    ways = []
    for root_abs, state_id in states.items():
        shown = shlex.quote(root_abs)
        if os.path.lexists(f"{root_abs}/.git"):
            point = record(find_repo(root_abs, without_git(repo.env)), settings, author)
            if point:
                ways.append(f"cd {shown} && gitgates undo {point.id}")
            continue
        state = load(repo, state_id)
        gone = repo._replace(root_abs=root_abs)
        point = append(gone, state_id, removed(repo, state), author)
        place = shlex.quote(state.branch.removeprefix("refs/heads/") or state.head)
        add = f"git worktree add -f {shown} {place}"
        ways.append(f"{add} && cd {shown} && gitgates undo {point.id}")
    return ways
