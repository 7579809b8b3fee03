"""How a run begins, and who tidies up after one that was killed."""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitError, GitgatesError
from gitgates.features.headless import commit, run_state, shared
from gitgates.features.headless.ground import BRANCHES, Ground, folder_for, head_ref
from gitgates.features.headless.in_place import InPlace
from gitgates.features.headless.run_state import RunState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.features.headless.outcomes import HeadlessOptions
    from gitgates.git.repo import Repo


def ground_of(home: Repo, state: RunState) -> Ground:
    """Return where a run works."""
    return (InPlace if state.in_place else Ground)(home, state)


def begin(
    home: Repo,
    run: str,
    options: HeadlessOptions,
    say: Callable[[str], None],
) -> Ground:
    """Make the place where a run works, whose lock is held.

    What gates need is installed in a worktree, and `say` is told.
    Raises: GitError, StateError, LockError, SetupError, Interrupted.
    """
    earlier, head = options.earlier, home.head
    if not head:
        raise GitError("there is no commit yet to begin at", "Create a commit first.")
    start = (earlier.start if earlier else "") or head
    if options.in_place:
        folder_abs, ref = home.root_abs, head_ref(home)
        if earlier and earlier.work_ref and start != head:
            hint = f"Switch to it, or inspect the changes: git show {earlier.work_ref}"
            raise GitError(f"the earlier run began at {earlier.start}, which is not HEAD", hint)
        start = head
    else:
        folder_abs = earlier.root_abs if earlier else folder_for(home, run)
        ref = f"refs/heads/{BRANCHES}{run}"
        if os.path.lexists(folder_abs):
            hint = "Another run is using it, or left it behind: git worktree list"
            raise GitError(f"{folder_abs}: already exists", hint)
    if options.uncommitted:
        start = commit.commit_uncommitted(home, run_state.folder_of(home, run))
    state = RunState(
        run=run,
        root_abs=folder_abs,
        home_abs=home.root_abs,
        ref=f"refs/heads/{options.branch}" if options.branch else ref,
        start=start,
        began_s=time.time(),
        pid=os.getpid(),
        home_ref=head_ref(home),
        home_head=head,
    )
    ground = ground_of(home, shared.save(home, state))
    run_state.write(home, ground.state)
    try:
        shared.hold(home, run)
        ground.make(options.worktree, say)
    except GitgatesError:
        ground.leave()
        ground.close()
        raise
    return ground
