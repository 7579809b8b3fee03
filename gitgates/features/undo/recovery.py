"""What `gitgates recover` does for undo: it finishes a killed undo."""

from __future__ import annotations

from gitgates.features.undo.put_back import finish, is_under_way, locked
from gitgates.features.undo.settings import repository_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


_WAIT_S = 2.0  # a git that the killed undo just started may hold the lock


def pending(repo: Repo) -> list[str]:
    """Return messages about what `recover` would do."""
    return ["an undo was killed; gitgates recover finishes it"] if is_under_way(repo) else []


def recover(repo: Repo) -> list[str]:
    """Finish a killed undo; return messages, none if there is nothing to do.

    Raises: LockError if the undo is still running; StateError that names what cannot be put back;
    GitError, OSError.
    """
    if not is_under_way(repo):
        return []
    with locked(repo, _WAIT_S):
        return finish(repo, repository_limits(repo))
