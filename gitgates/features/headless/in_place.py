"""A run in the working tree itself, from a clean one: for CI, where everything is installed.

What there was is a point of the memory of files; a run that fails goes back to it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, GitgatesError, LockError, StateError
from gitgates.features.headless import commit, run_state, shared
from gitgates.features.headless.ground import (
    MOST_NAMED,
    Ground,
    Location,
    head_ref,
    start_of,
    state_of,
    under_way,
)
from gitgates.files import points
from gitgates.files.changes import changes_to
from gitgates.files.git_state import WAITING
from gitgates.files.memory import Memory
from gitgates.files.permissions import usual
from gitgates.git.index import copy_index
from gitgates.git.listing import list_changed
from gitgates.store.files import remove_file, remove_tree, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.headless.commit import Staged
    from gitgates.features.headless.run_state import RunState
    from gitgates.files.versions import Version
    from gitgates.git.repo import Repo

# What is removed from the git folder: a run begins without. Source: git's refs.c, bisect.c.
_NONE_BEFORE = (
    *(*WAITING, "AUTO_MERGE", "BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS"),
    *("index.lock", "HEAD.lock"),
)


def begin_in_place(home: Repo, run: str, location: Location) -> Ground:
    """Record what there is, and switch to the branch of the run, whose lock is held.

    Raises: GitError, StateError, LockError.
    """
    start = start_of(home, Location())
    _require_clean(home, start, location)
    point = _record(home)
    ref = f"refs/heads/{location.branch}" if location.branch else head_ref(home)
    state = state_of(home, run, root_abs=home.root_abs, ref=ref, start=start)
    ground = InPlace(home, state)
    copy_index(f"{home.git_dir_abs}/index", ground.index_abs)
    ground.note_known(commit.others_in(commit.git_with(home, ground.index_abs)))
    ground.state = state._replace(point=point, known=tuple(sorted(ground.known)))
    run_state.write(home, ground.state)
    try:
        _require_alone(home, run)  # also if another one has begun at the same time
        shared.hold(home, run)
        if location.branch:
            home.git.out("switch", "-q", "--no-track", "-c", location.branch)
    except GitgatesError:
        ground.close()
        raise
    return ground


def _require_alone(home: Repo, run: str = "") -> None:
    """Raise an error if another run works here, or was killed here."""
    for state in run_state.begun(home):
        if state.root_abs != home.root_abs or state.run == run:
            continue
        if (lock := run_state.lock_killed(home, state.run)) < 0:
            raise LockError("another headless run is in progress here", "Omit --in-place, or wait.")
        os.close(lock)
        hint = "To go back to before it: gitgates recover"
        raise GitError(f"the headless run {state.run} was killed here", hint)


def _require_clean(home: Repo, start: str, location: Location) -> None:
    _require_alone(home)
    if waiting := under_way(home):
        raise GitError(f"{home.root_abs}: {waiting}", "`git status` says how to end it.")
    if changed := list_changed(home):
        paths = first_few(changed, MOST_NAMED)
        hint = "Commit or stash them, or omit --in-place: the run has a worktree of its own then."
        raise GitError(f"--in-place needs a clean working tree; uncommitted changes: {paths}", hint)
    if location.work and home.git.resolve(f"{location.start}^{{commit}}") != start:
        hint = f"Switch to it, or inspect the changes: git show {location.work}"
        raise GitError(f"the earlier run began at {location.start}, which is not HEAD", hint)


def _record(home: Repo) -> str:
    """Record what there is as a point; return its id."""
    author, facts = points.Author(kind=points.PERSON), points.Facts(event="headless")
    tree_look = points.look_and_record(home, author, facts).look
    if left_out := {**tree_look.left_out, **tree_look.ignored_out}:
        paths = first_few(sorted(left_out), MOST_NAMED)
        hint = "Omit --in-place: the run has a worktree of its own then."
        raise StateError(f"these could not be restored if the run changed them: {paths}", hint)
    point = points.latest(home)
    return point.id if point else ""


class InPlace(Ground):
    """The working tree of whoever started the run."""

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the working tree."""
        return self.home.git_dir_abs

    def reopened(self) -> Repo | None:
        """Return the working tree."""
        return self.home

    def without_commits(self, staged: Staged, message: str) -> None:
        """Leave what has passed uncommitted."""
        del staged, message
        self.repo.git.out("reset", "-q", self.state.start)

    def take(self, log_abs: str, on_tick: object, *, commits: bool) -> list[str]:
        """Leave what has passed where it is."""
        del log_abs, on_tick, commits
        return []

    def leave(self, *, keeps: bool = False) -> tuple[str, list[str]]:
        """Keep what a failed run has made under a ref, and go back to the point of before.

        Raises: GitError, StateError, OSError.
        """
        ref, problem = self.keep()
        notes = [f"not all of it could be committed: {problem}"] if problem else []
        if keeps or (problem and not ref):
            return ref, notes
        go_back(self.home, self.state)
        is_own = self.state.ref != self.state.home_ref
        return ref, notes + (self.remove_branch(ref) if is_own else [])


def go_back(repo: Repo, state: RunState) -> None:
    """Restore files, index, HEAD and branch to what they were before a run. May be repeated.

    What there is now is a point of the memory, too. Raises: GitError, StateError, OSError.
    """
    point = points.point_at(repo, state.point)
    if point is None:
        raise StateError("the memory of files has no longer what there was before the run")
    for name in _NONE_BEFORE:
        path_abs = f"{repo.git_dir_abs}/{name}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            remove_tree(path_abs)
        else:
            remove_file(path_abs)
    why = ("-m", f"gitgates: back to before the headless run {state.run}")
    if state.home_ref:
        repo.git.out("update-ref", *why, state.home_ref, state.home_head)
        repo.git.out("symbolic-ref", *why, "HEAD", state.home_ref)
    else:
        repo.git.out("update-ref", *why, "--no-deref", "HEAD", state.home_head)
    author = points.Author(kind=points.SESSION, name=f"headless-{state.run}")
    now = points.look_and_record(repo, author, points.Facts(event="headless")).look
    before = points.state_of(repo, point)
    # Not each tree by itself: what was untracked, and is ignored now, is in the other one.
    changed = changes_to(repo, point, points.latest(repo))
    for path in (path for path, change in changed.items() if change.after is None):
        remove_file(f"{repo.root_abs}/{path}")
        with suppress(OSError):  # it has other files
            os.removedirs(os.path.dirname(f"{repo.root_abs}/{path}"))
    _check_out(repo, {path: change.after for path, change in changed.items() if change.after})
    modes = {**before.modes, **before.folders}
    for path in {*modes, *changed, *now.modes, *now.folders}:
        _restore_mode(f"{repo.root_abs}/{path}", modes.get(path), before.umask)
    if before.index_blob:
        content = Memory(repo).reading.out("cat-file", "blob", before.index_blob)
        replace_file(f"{repo.git_dir_abs}/index", content, mode=0o644)
    repo.git.ask("update-index", "-q", "--refresh")


def _check_out(repo: Repo, versions: dict[str, Version]) -> None:
    """Write files and links as the memory has them, in the place of whatever is there."""
    memory, index_abs = Memory(repo), f"{repo.state_abs}/headless.index"
    git = memory.reading._replace(env={**memory.env, "GIT_INDEX_FILE": index_abs})
    lines = (f"{each.mode:o} {each.blob}\t{path}\0" for path, each in versions.items())
    try:
        git.out("update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)))
        git.out("checkout-index", "--all", "--force", "--quiet")
    finally:
        remove_file(index_abs)


def _restore_mode(path_abs: str, mode: int | None, umask: int) -> None:
    """Restore permissions; None for the usual ones."""
    with suppress(FileNotFoundError):
        now = os.lstat(path_abs).st_mode
        mode_before = usual(now, umask) if mode is None else mode
        if not stat.S_ISLNK(now) and stat.S_IMODE(now) != mode_before:
            os.chmod(path_abs, mode_before)
