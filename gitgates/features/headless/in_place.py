"""A run in the working tree itself, which must be clean: for CI, which has everything installed.

The state before the run is a save point in the memory of files; a failed run goes back to it.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, LockError, StateError
from gitgates.features.headless import run_state
from gitgates.features.headless.ground import MOST_NAMED, Ground
from gitgates.files import points
from gitgates.files.changes import changes_to
from gitgates.files.git_state import WAITING, read_waiting
from gitgates.files.memory import Memory
from gitgates.files.permissions import usual
from gitgates.git.paths import list_changed
from gitgates.store.files import remove_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.changes import Version
    from gitgates.git.repo import Repo

# What going back removes from the git folder: a run begins without it. Source: git's refs.c.
_NONE_BEFORE = (*WAITING, "AUTO_MERGE", "index.lock", "HEAD.lock")
_OMIT = "Without --in-place, the run has its own worktree."


class InPlace(Ground):
    """The working tree of whoever started the run."""

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the working tree."""
        return self.home.git_dir_abs

    def opened(self) -> Repo | None:
        """Return the working tree."""
        return self.home

    def make(self, settings: object, say: object) -> None:
        """Record the current state, and switch to the run's branch. Everything is installed."""
        del settings, say
        home = self.home
        self._require_alone()  # also if another one has begun at the same time
        if waiting := read_waiting(home.git_dir_abs):
            hint = "`git status` says how to finish it."
            raise GitError(f"an unfinished git command: {', '.join(waiting)}", hint)
        if changed := list_changed(home):
            what = f"uncommitted changes: {first_few(changed, MOST_NAMED)}"
            raise GitError(f"--in-place needs a clean working tree; {what}", _OMIT)
        self.begin(_record(home))
        if self.state.ref != self.state.home_ref:
            home.git.out("switch", "-q", "--no-track", "-c", self.state.branch)

    def _require_alone(self) -> None:
        """Raise an error if another run works here, or was killed here."""
        for state in run_state.begun(self.home):
            if state.root_abs != self.home.root_abs or state.run == self.state.run:
                continue
            if (lock := run_state.lock_killed(self.home, state.run)) < 0:
                raise LockError("another headless run is in progress here", _OMIT)
            os.close(lock)
            hint = "To go back to before it: gitgates recover"
            raise GitError(f"the headless run {state.run} was killed here", hint)

    def take(self, log_abs: str, on_tick: object) -> list[str]:
        """Leave the commit where it is."""
        del log_abs, on_tick
        return []

    def leave(self) -> tuple[str, list[str]]:
        """Keep a failed run's work under a ref, and go back to the save point before it."""
        if not self.state.point:  # killed before it began
            return "", []
        ref, problem = self.keep()
        go_back(self.home, self.state)
        if self.state.ref != self.state.home_ref and not problem:
            self.home.git.ask("update-ref", "-d", self.state.ref)
        return ref, [f"not all of it could be committed: {problem}"] if problem else []

    def settle(self) -> tuple[str, list[str]]:
        """Do the same after a kill or a signal."""
        return self.leave()

    def left_note(self) -> str:
        """Return a note on how to go back if that fails."""
        return f"to go back to before the run {self.state.run}: gitgates recover"


def _record(home: Repo) -> str:
    """Record the current state as a save point; return its id."""
    author, facts = points.Author(kind=points.PERSON), points.Facts(event="headless")
    tree_look = points.look_and_record(home, author, facts).look
    if left_out := {**tree_look.left_out, **tree_look.ignored_out}:
        paths = first_few(sorted(left_out), MOST_NAMED)
        raise StateError(f"these could not be restored if the run changed them: {paths}", _OMIT)
    point = points.latest(home)
    return point.id if point else ""


def go_back(repo: Repo, state: run_state.RunState) -> None:
    """Restore files, index, HEAD and branch to what they were before a run. May be repeated.

    The current state becomes a save point, too. Raises: GitError, StateError, OSError.
    """
    point = points.point_at(repo, state.point)
    if point is None:
        raise StateError("the memory of files no longer has the state before the run")
    for name in _NONE_BEFORE:
        shutil.rmtree(f"{repo.git_dir_abs}/{name}", ignore_errors=True)
        with suppress(OSError):  # rmtree has removed it if it was a folder
            remove_file(f"{repo.git_dir_abs}/{name}")
    why = ("-m", f"gitgates: back to before the headless run {state.run}")
    repo.git.out("update-ref", *why, "--no-deref", state.home_ref or "HEAD", state.home_head)
    if state.home_ref:
        repo.git.out("symbolic-ref", *why, "HEAD", state.home_ref)
    author = points.Author(kind=points.SESSION, name=f"headless-{state.run}")
    now = points.look_and_record(repo, author, points.Facts(event="headless")).look
    before = points.state_of(repo, point)
    # Both trees together: a file that was untracked and is now ignored is in the other one.
    changed = changes_to(repo, point, points.latest(repo))
    for path in (path for path, change in changed.items() if change.after is None):
        remove_file(f"{repo.root_abs}/{path}")
        with suppress(OSError):  # the folder has other files
            os.removedirs(os.path.dirname(f"{repo.root_abs}/{path}"))
    _check_out(repo, {path: change.after for path, change in changed.items() if change.after})
    modes = {**before.modes, **before.folders}
    for path in {*modes, *changed, *now.modes, *now.folders}:
        path_abs = f"{repo.root_abs}/{path}"
        mode_now = os.lstat(path_abs).st_mode if os.path.lexists(path_abs) else stat.S_IFLNK
        mode = modes.get(path, usual(mode_now, before.umask))
        if not stat.S_ISLNK(mode_now) and stat.S_IMODE(mode_now) != mode:
            os.chmod(path_abs, mode)
    if before.index_blob:
        content = Memory(repo).reading.out("cat-file", "blob", before.index_blob)
        replace_file(f"{repo.git_dir_abs}/index", content, mode=0o644)
    repo.git.ask("update-index", "-q", "--refresh")


def _check_out(repo: Repo, versions: dict[str, Version]) -> None:
    """Write files and links from the memory, replacing whatever is there."""
    memory, index_abs = Memory(repo), f"{repo.state_abs}/headless.index"
    git = memory.reading._replace(env={**memory.env, "GIT_INDEX_FILE": index_abs})
    lines = (f"{each.mode:o} {each.blob}\t{path}\0" for path, each in versions.items())
    try:
        git.out("update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)))
        git.out("checkout-index", "--all", "--force", "--quiet")
    finally:
        remove_file(index_abs)
