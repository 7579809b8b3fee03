"""Tidy up after a run that was killed: keep its work, put back what it has changed beside."""

from __future__ import annotations

import os

from gitgates.features.headless import linked, run_state
from gitgates.features.headless.commit import FAILED_REFS
from gitgates.features.headless.ground import Ground
from gitgates.features.headless.in_place import InPlace
from gitgates.features.headless.turn import RUN_NAME
from gitgates.proc.descendants import Descendants
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Git, Repo

_ORPHANS_S = 30.0  # what a killed run has started is ended by its watchdogs before that


def killed_runs(repo: Repo) -> Iterator[RunState]:
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


def settle_all(repo: Repo, *, in_place: bool = False) -> list[str]:
    """Settle each run that was killed, those in place only if that is asked for; return messages.

    Raises: GitError, StateError, OSError.
    """
    states = (state for state in killed_runs(repo) if in_place or not state.in_place)
    return [line for state in states for line in _settle(repo, state)]


def _settle(repo: Repo, state: RunState) -> list[str]:
    """Tidy up after a killed run, whose lock is held. May be repeated."""
    Descendants(f"{RUN_NAME}={state.run}").end()
    run, ground = state.run, (InPlace if state.in_place else Ground)(repo, state)
    notes, ref = ground.put_back(), ""
    tip = repo.git.resolve(state.ref) if state.ref else ""
    if tip and tip != state.start and is_of(repo.git, tip, run) and not state.in_place:
        linked.remove_worktree(repo, state.root_abs)
        notes.append(f"it had passed; its commit is on {state.branch}: git merge {state.branch}")
    elif ground.reopened():
        ref, more = ground.leave()
        notes += more
    else:  # git had not finished making it, or removing it
        ref = f"{FAILED_REFS}/{run}"
        ref = ref if repo.git.resolve(ref) else ""
        notes += ground.drop(ref)
    ground.close()
    if ref:
        notes.insert(0, f"its work is kept as {ref}: gitgates runs restore {run}")
    how = f"gitgates headless --resume {run}"
    first = f"the headless run {run} was killed; to go on with it: {how}"
    return [first, *(f"  {note}" for note in notes)]


def is_of(git: Git, tip: str, run: str) -> bool:
    """Return whether a commit is the one of a run."""
    message = git.out("log", "-1", "--format=%B", tip).decode("utf-8", "replace")
    return f"Gitgates-Run: {run}" in message.splitlines()
