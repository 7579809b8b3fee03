"""A run in the working tree itself, from a clean one: for CI, where everything is installed.

What there was is a point of the memory of files; a run that fails goes back to it.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, GitgatesError, LockError, StateError
from gitgates.features.headless import commit, run_state, shared
from gitgates.features.headless.ground import Ground, Kept, Location, head_ref, start_of, under_way
from gitgates.features.headless.run_state import RunState
from gitgates.files.changes import changes_to
from gitgates.files.memory import Memory
from gitgates.files.permissions import usual
from gitgates.files.points import (
    PERSON,
    SESSION,
    Author,
    Facts,
    latest,
    look_and_record,
    points,
    state_of,
)
from gitgates.git.index import copy_index
from gitgates.git.listing import list_changed
from gitgates.git.object_store import iterate_blobs
from gitgates.store.files import lock_file, make_folder, remove_file, remove_tree, replace_file
from gitgates.store.rescue import move_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.features.headless.commit import Staged
    from gitgates.files.changes import Version
    from gitgates.git.repo import Repo

_MOST_NAMED = 10
# What git keeps of a command that waits to be continued: a run begins without. Source: refs.c.
_WAITING = (
    *("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"),
    *("sequencer", "BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS"),
    *("MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG", "index.lock", "HEAD.lock"),
)


def begin_in_place(home: Repo, run: str, location: Location) -> Ground:
    """Record what there is, and switch to the branch of the run, whose lock is held.

    Raises: GitError, StateError, LockError.
    """
    start = start_of(home, Location())
    lock = _lock(home)
    try:
        _require_clean(home, start, location)
        _record(home)
        point = latest(home)
        here, ref = head_ref(home), f"refs/heads/{location.branch}"
        state = RunState(
            run=run,
            root_abs=home.root_abs,
            home_abs=home.root_abs,
            ref=ref if location.branch else here,
            start=start,
            began_s=time.time(),
            pid=os.getpid(),
            home_ref=here,
            home_head=start,
            point=point.id if point else "",
        )
        state = shared.save(home, state)
        ground = InPlace(home, state, home)
        copy_index(f"{home.git_dir_abs}/index", ground.index_abs)
        ground.know(commit.others_in(commit.git_with(home, ground.index_abs)))
        run_state.write(home, ground.state)
        shared.hold(home, run)
        if location.branch:
            home.git.out("switch", "-q", "--no-track", "-c", location.branch)
    except BaseException as error:
        os.close(lock)
        if isinstance(error, GitgatesError):
            shared.let_go(home, run)
            run_state.forget(home, run)
        raise
    ground.lock = lock
    return ground


def _lock(home: Repo) -> int:
    try:
        make_folder(home.state_abs)
        lock = lock_file(f"{home.state_abs}/headless.lock")
    except OSError as error:
        raise StateError(f"{home.state_abs}: cannot be written: {error.strerror}") from error
    if lock < 0:
        raise LockError("another headless run is in progress here", "Omit --in-place, or wait.")
    return lock


def _require_clean(home: Repo, start: str, location: Location) -> None:
    if command := under_way(home):
        how = "reset" if command == "bisect" else "--continue, or --abort"
        hint = f"End it first: git {command.split()[0]} {how}"
        raise GitError(f"{home.root_abs}: a {command} is in progress", hint)
    if killed := [state.run for state in run_state.begun(home) if state.root_abs == home.root_abs]:
        hint = "To go back to before it: gitgates recover"
        raise GitError(f"the headless run {killed[0]} was killed here", hint)
    if changed := list_changed(home):
        paths = first_few(changed, _MOST_NAMED)
        hint = "Commit or stash them, or omit --in-place: the run has a worktree of its own then."
        raise GitError(f"--in-place needs a clean working tree; uncommitted changes: {paths}", hint)
    if location.work and home.git.resolve(f"{location.start}^{{commit}}") != start:
        hint = f"Switch to it, or inspect the changes: git show {location.work}"
        raise GitError(f"the earlier run began at {location.start}, which is not HEAD", hint)


def _record(home: Repo) -> None:
    """Record what there is as a point."""
    tree_look = look_and_record(home, Author(kind=PERSON), Facts(event="headless")).look
    if left_out := {**tree_look.left_out, **tree_look.ignored_out}:
        paths = first_few(sorted(left_out), _MOST_NAMED)
        hint = "Omit --in-place: the run has a worktree of its own then."
        raise StateError(f"these could not be restored if the run changed them: {paths}", hint)


class InPlace(Ground):
    """The working tree of whoever started the run."""

    lock = -1

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the working tree."""
        return self.home.git_dir_abs

    def reopened(self) -> Repo | None:
        """Return the working tree."""
        return self.repo

    def know(self, paths: set[str]) -> None:
        """Take files for none of the run's: untracked and ignored ones that were there before."""
        self.state = self.state._replace(known=tuple(sorted(paths)))
        self.note_known(paths)

    def without_commits(self, staged: Staged, message: str) -> list[str]:
        """Leave what has passed uncommitted; return a note on the agent's commits."""
        del staged, message
        notes = self.keep_commits()
        self.repo.git.out("reset", "-q", self.state.start)
        return notes

    def take(self, log_abs: str, on_tick: object, *, commits: bool) -> list[str]:
        """Leave what has passed where it is."""
        del log_abs, on_tick, commits
        return []

    def leave(self, *, keeps: bool = False) -> Kept:
        """Keep what a failed run has made under a ref, and go back to the point of before.

        Raises: GitError, StateError, OSError.
        """
        failed_work = self.keep()
        if keeps or (failed_work.left_abs and not failed_work.ref):
            return failed_work._replace(left_abs="")
        go_back(self.home, self.state)
        return failed_work._replace(
            left_abs="", notes=(*failed_work.notes, *self.remove_branch(failed_work.ref))
        )

    def remove_branch(self, kept_ref: str) -> list[str]:
        """Remove the branch that was made for the run."""
        is_own = self.state.ref != self.state.home_ref
        return super().remove_branch(kept_ref) if is_own else []

    def close(self) -> None:
        """Hold nothing any more, and forget the run."""
        super().close()
        if self.lock >= 0:
            os.close(self.lock)


def go_back(repo: Repo, state: RunState) -> None:
    """Restore files, index, HEAD and branch to what they were before a run. May be repeated.

    What there is now is a point of the memory, too. Raises: GitError, StateError, OSError.
    """
    point = next((point for point in points(repo) if point.id == state.point), None)
    if point is None:
        raise StateError("the memory of files has no longer what there was before the run")
    for name in _WAITING:
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
    author = Author(kind=SESSION, name=f"headless-{state.run}")
    tree_look = look_and_record(repo, author, Facts(event="headless")).look
    before = state_of(repo, point)
    memory = Memory(repo)
    # Not each tree by itself: what was untracked, and is ignored now, is in the other one.
    changed = changes_to(repo, point, latest(repo))
    _restore_files(
        memory,
        remove=[path for path, change in changed.items() if change.after is None],
        write={path: change.after for path, change in changed.items() if change.after},
        umask=before.umask,
    )
    for path in {*before.modes, *before.folders, *tree_look.modes, *tree_look.folders}:
        _restore_mode(repo, path, {**before.modes, **before.folders}.get(path), before.umask)
    if before.index_blob:
        content = memory.reading.out("cat-file", "blob", before.index_blob)
        replace_file(f"{repo.git_dir_abs}/index", content, mode=0o644)
    repo.git.ask("update-index", "-q", "--refresh")


def _restore_files(
    memory: Memory, *, remove: list[str], write: Mapping[str, Version], umask: int
) -> None:
    root_abs = memory.repo.root_abs
    for path in remove:
        if path in write:
            continue  # it was ignored, and is not any more, or the other way
        remove_file(f"{root_abs}/{path}")
        folder = os.path.dirname(path)
        while folder and not os.listdir(f"{root_abs}/{folder}"):
            os.rmdir(f"{root_abs}/{folder}")
            folder = os.path.dirname(folder)
    by_blob: dict[str, list[str]] = {}
    for path, version in write.items():
        by_blob.setdefault(version.blob, []).append(path)
    for blob, content in iterate_blobs(memory.reading, by_blob, sys.maxsize):
        for path in by_blob[blob]:
            path_abs = f"{root_abs}/{path}"
            _make_way(memory.repo, path)
            if stat.S_ISLNK(write[path].mode):
                remove_file(path_abs)
                os.symlink(os.fsdecode(content), path_abs)
            else:
                mode = usual(write[path].mode, umask)
                replace_file(path_abs, content, mode=mode, sync=False)


def _make_way(repo: Repo, path: str) -> None:
    """Make the parent folders of a file; what is in the place of one, or of it, is kept aside."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        path_abs = f"{repo.root_abs}/{'/'.join(parts[:depth])}"
        is_folder = os.path.isdir(path_abs) and not os.path.islink(path_abs)
        if os.path.lexists(path_abs) and is_folder != (depth < len(parts)):
            kept_abs = f"{repo.state_abs}/kept/{time.time_ns()}-replaced"
            make_folder(os.path.dirname(kept_abs))
            move_aside(path_abs, kept_abs)
    os.makedirs(f"{repo.root_abs}/{os.path.dirname(path)}", exist_ok=True)


def _restore_mode(repo: Repo, path: str, mode: int | None, umask: int) -> None:
    """Restore permissions; None for the usual ones."""
    path_abs = f"{repo.root_abs}/{path}"
    try:
        now = os.lstat(path_abs).st_mode
    except OSError:
        return
    mode_before = usual(now, umask) if mode is None else mode
    if not stat.S_ISLNK(now) and stat.S_IMODE(now) != mode_before:
        os.chmod(path_abs, mode_before)
