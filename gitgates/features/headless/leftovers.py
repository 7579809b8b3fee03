"""Tidy up after a run that was killed: keep its work, put back what it has changed beside."""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.features.headless import linked, run_state
from gitgates.features.headless.commit import FAILED_REFS
from gitgates.features.headless.ground import Ground
from gitgates.features.headless.turn import RUN_NAME
from gitgates.proc.descendants import Descendants
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Git, Repo

_ORPHANS_S = 30.0  # what a killed run has started is ended by its watchdogs before that


class Settled(Record):
    """How a run had ended that was killed."""

    run: str
    commit: str = ""  # of one that had passed
    ref: str = ""  # holds the work of another one
    notes: tuple[str, ...] = ()


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


def settle_all(repo: Repo, *, in_place: bool = False) -> list[Settled]:
    """Settle each run that was killed; those in place only if that is asked for."""
    return [settle(repo, state) for state in killed_runs(repo) if in_place or not state.in_place]


def settle(repo: Repo, state: RunState) -> Settled:
    """Tidy up after a killed run, whose lock is held. May be repeated.

    Raises: GitError, StateError, OSError.
    """
    Descendants(f"{RUN_NAME}={state.run}").end()
    ground = ground_of(repo, state)
    notes = ground.put_back()
    tip = repo.git.resolve(state.ref) if state.ref else ""
    if tip and tip != state.start and is_of(repo.git, tip, state.run) and not state.in_place:
        linked.remove_worktree(repo, state.root_abs)
        settled = Settled(state.run, commit=tip)
        notes.append(f"it had passed; its commit is on {state.branch}: git merge {state.branch}")
    elif state.in_place or ground.reopened():
        failed_work = ground.leave()
        settled = Settled(state.run, ref=failed_work.ref)
        notes += failed_work.notes
        if failed_work.left_abs:
            notes.append(left_note(failed_work.left_abs))
    else:  # git had not finished making it, or removing it
        linked.remove_worktree(repo, state.root_abs)
        ref = f"{FAILED_REFS}/{state.run}"
        settled = Settled(state.run, ref=ref if repo.git.resolve(ref) else "")
        notes += ground.remove_branch(settled.ref)
    ground.close()
    return settled._replace(notes=tuple(notes))


def ground_of(repo: Repo, state: RunState) -> Ground:
    """Return where a run worked that was killed."""
    if state.in_place:
        from gitgates.features.headless.in_place import InPlace

        return InPlace(repo, state, repo)
    return Ground(repo, state, linked.open_worktree(repo, state.root_abs) or repo)


def is_of(git: Git, tip: str, run: str) -> bool:
    """Return whether a commit is the one of a run."""
    message = git.out("log", "-1", "--format=%B", tip).decode("utf-8", "replace")
    return f"Gitgates-Run: {run}" in message.splitlines()


def left_note(folder_abs: str) -> str:
    """Return how to remove the worktree of a run that stays."""
    return f"{folder_abs} was kept; to remove it: git worktree remove --force {folder_abs}"
