"""Tidy up after runs that were killed: keep their work, put back what they have changed beside."""

from __future__ import annotations

import os

from gitgates.features.headless import run_state
from gitgates.features.headless.begin import ground_of
from gitgates.features.headless.turn import RUN_NAME
from gitgates.proc.descendants import Descendants
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Repo

_ORPHANS_S = 30.0  # what a killed run has started is ended by its watchdogs before that


def pending(repo: Repo) -> list[str]:
    """Return messages about killed runs that `recover` would tidy up after. Raises: StateError."""
    runs = [state.run for state in _killed_runs(repo)]
    return [f"the headless run {run} was killed; to tidy up: gitgates recover" for run in runs]


def recover(repo: Repo, *, in_place: bool = True) -> list[str]:
    """Tidy up after killed runs, those in place only if that is asked for; return messages.

    May be repeated. Raises: GitError, StateError, OSError.
    """
    states = (state for state in _killed_runs(repo) if in_place or not state.in_place)
    return [line for state in states for line in _settle(repo, state)]


def _killed_runs(repo: Repo) -> Iterator[RunState]:
    """Yield the runs that were killed; each is locked meanwhile. Raises: StateError."""
    for state in list(run_state.begun(repo)):
        fd = run_state.lock_killed(repo, state.run)
        if fd < 0 and not is_alive(state.pid):  # what it has started is left
            Descendants(f"{RUN_NAME}={state.run}").end()
            fd = run_state.lock_killed(repo, state.run, _ORPHANS_S)
        if fd >= 0:
            try:
                yield state
            finally:
                os.close(fd)


def _settle(repo: Repo, state: RunState) -> list[str]:
    run = state.run
    Descendants(f"{RUN_NAME}={run}").end()
    ground = ground_of(repo, state)
    notes = ground.put_back()
    ref, more = ground.settle()
    ground.close()
    work = [f"its work is kept as {ref}: gitgates runs restore {run}"] if ref else []
    how = f"gitgates headless --resume {run}"
    first = f"the headless run {run} was killed; to go on with it: {how}"
    return [first, *(f"  {note}" for note in (*work, *notes, *more))]
