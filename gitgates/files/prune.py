"""Remove old points, and what only they need."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

KEEP_S = 14 * 24 * 3600.0
MAX_SIZE = 2 << 30


def prune(
    repo: Repo,
    now_s: float,
    *,
    keep_s: float = KEEP_S,
    max_size: int = MAX_SIZE,
    at_once: bool = False,
    limit_s: float = 30.0,
) -> str:
    """Remove points that are too old, and the oldest while all take more than `max_size` bytes.

    Return what a person should know; empty for nothing. It looks once in an hour, or `at_once`, and
    goes on the next time if `limit_s` is over. The last point of a worktree stays.

    Raises: StateError, GitError.
    """
    raise NotImplementedError
