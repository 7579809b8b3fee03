"""What `gitgates recover` and `gitgates gc` do for headless runs that were killed."""

from __future__ import annotations

from gitgates.features.headless.leftovers import killed_runs, settle_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


def pending(repo: Repo) -> list[str]:
    """Return messages about killed runs that `recover` would tidy up after. Raises: StateError."""
    runs = [state.run for state in killed_runs(repo)]
    return [f"the headless run {run} was killed; to tidy up: gitgates recover" for run in runs]


def recover(repo: Repo) -> list[str]:
    """Tidy up after killed runs; return messages. Raises: GitError, StateError, OSError."""
    return settle_all(repo, in_place=True)
