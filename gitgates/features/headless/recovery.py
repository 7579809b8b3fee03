"""Begin a run; clean up after a killed one, whose work is kept."""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitError, GitgatesError
from gitgates.features.headless import run_state
from gitgates.features.headless.ground import (
    BRANCHES,
    Ground,
    commit_uncommitted,
    folder_for,
    head_ref,
)
from gitgates.features.headless.in_place import InPlace
from gitgates.features.headless.run_state import RunState
from gitgates.features.headless.turn import RUN_NAME
from gitgates.proc.descendants import Descendants
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.features.headless.outcomes import HeadlessOptions
    from gitgates.git.repo import Repo

_ORPHANS_S = 30.0  # by then, watchdogs have ended what a killed run started


def begin(home: Repo, run: str, options: HeadlessOptions, say: Callable[[str], None]) -> Ground:
    """Make and lock the place where a run works.

    In a worktree, what gates need is installed; `say` gets the messages.

    Raises: GitError, StateError, LockError, SetupError, Interrupted.
    """
    earlier, head = options.earlier, home.head
    if not head:
        raise GitError("there is no commit to begin with", "Create a commit first.")
    start, home_ref = (earlier.start if earlier else "") or head, head_ref(home)
    folder_abs = earlier.root_abs if earlier else folder_for(home, run)
    ref = f"refs/heads/{options.branch or f'{BRANCHES}{run}'}"
    if options.in_place:
        if earlier and earlier.work_ref and start != head:
            hint = f"Switch to it, or inspect the changes: git show {earlier.work_ref}"
            raise GitError(f"the earlier run began at {start}, which is not HEAD", hint)
        start, folder_abs = head, home.root_abs
        ref = ref if options.branch else home_ref
    elif os.path.lexists(folder_abs):
        hint = "Another run is using it, or left it behind: git worktree list"
        raise GitError(f"{folder_abs}: already exists", hint)
    if options.uncommitted:
        start = commit_uncommitted(home, f"{run_state.folder_of(home, run)}/uncommitted.index")
    state = RunState(
        run=run,
        root_abs=folder_abs,
        home_abs=home.root_abs,
        ref=ref,
        start=start,
        began_s=time.time(),
        pid=os.getpid(),
        home_ref=home_ref,
        home_head=head,
    )
    ground = _ground_of(home, run_state.save(home, state))
    run_state.write(home, ground.state)
    try:
        run_state.hold(home, run)
        ground.make(options.worktree, say)
    except GitgatesError:
        ground.leave()
        ground.close()
        raise
    return ground


def _ground_of(home: Repo, state: RunState) -> Ground:
    return (InPlace if state.in_place else Ground)(home, state)


def pending(repo: Repo) -> list[str]:
    """Return messages about killed runs that `recover` would clean up after. Raises: StateError."""
    runs = [state.run for state in _killed_runs(repo)]
    return [f"the headless run {run} was killed; to clean up: gitgates recover" for run in runs]


def recover(repo: Repo, *, in_place: bool = True) -> list[str]:
    """Clean up after killed runs, with `in_place` also after runs in place; return messages.

    May be repeated. Raises: GitError, StateError, OSError.
    """
    lines = list[str]()
    run_state.forget_unbegun(repo)
    for state in _killed_runs(repo):
        if in_place or not state.in_place:
            run, ground = state.run, _ground_of(repo, state)
            Descendants(f"{RUN_NAME}={run}").end()
            notes = ground.put_back()
            ref, more = ground.settle()
            ground.close()
            how = f"to continue it: gitgates headless --resume {run}"
            work = [f"its work is kept as {ref}: gitgates runs restore {run}"] if ref else []
            lines += [f"the headless run {run} was killed; {how}"]
            lines += [f"  {note}" for note in (*work, *notes, *more)]
    return lines


def _killed_runs(repo: Repo) -> Iterator[RunState]:
    """Yield the runs that were killed; each is locked meanwhile. Raises: StateError."""
    for state in run_state.begun(repo):
        fd = run_state.lock_killed(repo, state.run)
        if fd < 0 and not is_alive(state.pid):  # processes that it started remain
            Descendants(f"{RUN_NAME}={state.run}").end()
            fd = run_state.lock_killed(repo, state.run, _ORPHANS_S)
        if fd >= 0:
            try:
                yield state
            finally:
                os.close(fd)
