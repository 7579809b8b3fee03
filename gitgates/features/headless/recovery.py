"""What `gitgates recover` and `gitgates gc` do for headless runs that were killed."""

from __future__ import annotations

from gitgates.features.headless.leftovers import killed_runs, settle_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.headless.leftovers import Settled
    from gitgates.git.repo import Repo


def pending(repo: Repo) -> list[str]:
    """Return messages about killed runs that `recover` would tidy up after. Raises: StateError."""
    runs = [state.run for state in killed_runs(repo)]
    return [f"the headless run {run} was killed; to tidy up: gitgates recover" for run in runs]


def recover(repo: Repo) -> list[str]:
    """Tidy up after killed runs; return messages. Raises: GitError, StateError, OSError."""
    return [line for settled in settle_all(repo, in_place=True) for line in lines_of(settled)]


def lines_of(settled: Settled) -> list[str]:
    """Return what is said of a run that was killed."""
    lines = [f"the headless run {settled.run} was killed; to go on with it: {_resume(settled)}"]
    if settled.ref:
        lines.append(f"  its work is kept as {settled.ref}: gitgates runs restore {settled.run}")
    return lines + [f"  {note}" for note in settled.notes]


def _resume(settled: Settled) -> str:
    return f"gitgates headless --resume {settled.run}"
