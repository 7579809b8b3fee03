"""Where a run works, how it begins and ends there: a linked worktree that is taken or left alone.

The working tree that it was started in is not written before a run has passed, and then only by
git, as far as git permits that without touching local changes. See in_place.py for the other way.
"""

from __future__ import annotations

import os
import time

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, GitgatesError, StateError
from gitgates.core.record import Record
from gitgates.core.types import Command
from gitgates.features.headless import commit, linked, run_state, shared
from gitgates.features.headless.run_state import RunState
from gitgates.features.headless.turn import run_process
from gitgates.files.facts import stat_of
from gitgates.git.index import copy_index
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.features.headless.commit import Staged
    from gitgates.git.repo import Repo

BRANCHES = "gitgates/"  # of runs that nobody has named one for
HOOKS_S = 1800.0  # for the hooks of git
MOST_NAMED = 10
# What git keeps while a command waits to be continued. Source: git's wt-status.c, refs.c.
_UNDER_WAY = (
    *("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"),
    *("sequencer", "BISECT_LOG"),
)


class Location(Record):
    """Where a run is to work."""

    branch: str = ""  # a new one
    in_place: bool = False
    uncommitted: bool = False  # the present state of the working tree is its first commit
    folder_abs: str = ""  # of an earlier run, whose conversation goes on
    start: str = "HEAD"  # a commit
    work: str = ""  # a commit whose content is restored, as changes of `start`


class Ground:
    """A linked worktree for a run."""

    uncommitted = False  # whether the run began with uncommitted changes

    def __init__(self, home: Repo, state: RunState) -> None:
        self.home, self.state = home, state
        self.repo = self.reopened() or home
        self.known = set[str]()
        self._signs: dict[str, object] = {}
        self.note_known(set(state.known))
        self.index_abs = f"{run_state.folder_of(home, state.run)}/index"

    def reopened(self) -> Repo | None:
        """Return the worktree, as far as it is there."""
        return linked.open_worktree(self.home, self.state.root_abs)

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the worktree, whether it exists or not."""
        return linked.git_dir_for(self.home, self.state.root_abs)

    # What the run has made

    def stage(self) -> Staged:
        """Stage what the run has made. Raises: StateError where the agent has removed our state."""
        if not run_state.is_there(self.home, self.state.run):
            folder_abs = run_state.folder_of(self.home, self.state.run)
            raise StateError(f"{folder_abs}: was removed during the run")
        if self.reopened() is None:
            raise GitError(f"{self.state.root_abs}: is no longer a worktree of the repository")
        for name in (f"{self.index_abs}.lock", f"{self.git_dir_abs}/index.lock"):
            remove_file(name)  # of a git that has ended with its turn
        return commit.stage(self.repo, self.index_abs, self.known)

    def hidden_note(self, staged: Staged) -> list[str]:
        """Return a note on files that ignore rules of the run keep from the commit."""
        hidden = commit.hidden_files(staged, self.state.start, self.known)
        what = "not committed, because of ignore rules that the run has added"
        return [f"{what}: {first_few(hidden, MOST_NAMED)}"] if hidden else []

    def note_known(self, paths: set[str]) -> None:
        """Take more files for none of the run's, and all of them as they are."""
        self.known |= paths
        self._signs = self._signs_of(self.known)

    def changed_others(self, staged: Staged) -> set[str]:
        """Return the files that the run has changed and that are not staged, such as ignored ones.

        They may be gone.
        """
        now = self._signs_of(commit.others_in(staged.git) | self.known)
        return {path for path in now.keys() | self._signs if now.get(path) != self._signs.get(path)}

    def _signs_of(self, paths: set[str]) -> dict[str, object]:
        signs = {path: stat_of(f"{self.repo.root_abs}/{path}") for path in paths}
        return {path: sign for path, sign in signs.items() if sign}

    def restore(self, work: str) -> None:
        """Restore the content of a commit, as uncommitted changes. Raises: GitError."""
        self.repo.git.out("read-tree", "-m", "-u", "HEAD", work)
        self.repo.git.out("reset", "-q")

    # Its end

    def put_back(self) -> list[str]:
        """Put back what is shared with others and was changed; return notes."""
        return shared.put_back(self.home, self.state, self.git_dir_abs)

    def without_commits(self, staged: Staged, message: str) -> None:
        """Commit what has passed for `take`, without hooks."""
        tip = commit.commit_tree(self.repo, staged.tree, message)
        self.home.git.out("update-ref", self.state.ref, tip)

    def take(self, log_abs: str, on_tick: Callable[[], None], *, commits: bool) -> list[str]:
        """Bring what has passed to the branch that is checked out at home; return notes.

        The worktree is removed; its branch, too, if it was ours, and what is on it was taken.
        """
        tip, branch = self.repo.head, self.state.branch
        is_ours, why = branch.startswith(BRANCHES), ""
        if is_ours:
            why = self._why_not_taken(log_abs, on_tick, commits=commits)
        linked.remove_worktree(self.home, self.state.root_abs)
        if is_ours and not why:
            self.home.git.ask("update-ref", "-d", self.state.ref, tip)
        if not why:
            return []
        command = f"git merge {'' if commits else '--squash '}{branch}"
        if self.uncommitted:  # they are in the way of the commit that has them
            command = f"git stash -u && {command}"
        return [f"it is on branch {branch}: {why}; to take it: {command}"]

    def _why_not_taken(self, log_abs: str, on_tick: Callable[[], None], *, commits: bool) -> str:
        home, state = self.home, self.state
        if head_ref(home) != state.home_ref or home.head != state.home_head:
            return "HEAD is no longer where it was"
        if waiting := under_way(home):
            return waiting
        how = ["--ff-only", "--no-autostash", "--no-overwrite-ignore"]
        how += [] if commits else ["--squash"]
        argv = ("git", "-C", home.root_abs, "merge", "-q", *how, state.ref)
        command = Command(argv, home.root_abs, {**home.env, "LC_ALL": "C"})
        output, ending = run_process(command, log_abs, HOOKS_S, on_tick)
        if not commits:
            remove_file(f"{home.git_dir_abs}/SQUASH_MSG")
        return output.decode("utf-8", "replace").strip() if ending.exit_status else ""

    def leave(self, *, keeps: bool = False) -> tuple[str, list[str]]:
        """Keep what a failed run has made under a ref; return that, if there is any, and notes.

        The worktree goes, unless the run `keeps` it, or git could not hold all of it.
        Raises: GitError, OSError.
        """
        ref, problem = self.keep()
        notes = [f"not all of it could be committed: {problem}"] if problem else []
        if keeps or problem:
            return ref, [*notes, self.left_note()]
        return ref, notes + self.drop(ref)

    def keep(self) -> tuple[str, str]:
        """Keep what there is under a ref; return that, and what git could not hold."""
        ref = ""
        try:
            staged = self.stage()
            if staged.tree:
                ref = commit.keep_failed(self.repo, staged, self.state.run, self.state.start)
        except GitError as error:
            return ref, error.message
        return ref, staged.problem

    def drop(self, kept_ref: str) -> list[str]:
        """Remove the worktree; its branch, too, if nothing is lost with it, or say that it stays.

        Raises: StateError.
        """
        linked.remove_worktree(self.home, self.state.root_abs)
        return self.remove_branch(kept_ref)

    def remove_branch(self, kept_ref: str) -> list[str]:
        """Remove the branch of a run that has failed; its commits are kept under a ref."""
        git, ref = self.home.git, self.state.ref
        tip = git.resolve(ref)
        ancestor = ("merge-base", "--is-ancestor", tip, kept_ref)
        if tip and tip != self.state.start and (not kept_ref or git.ask(*ancestor).exit_status):
            return [f"the branch {self.state.branch} has commits that are nowhere else; it stays"]
        if tip:
            git.ask("update-ref", "-d", ref, tip)
        return []

    def left_note(self) -> str:
        """Return how to remove the worktree, where it stays."""
        folder_abs = self.state.root_abs
        return f"{folder_abs} was kept; to remove it: git worktree remove --force {folder_abs}"

    def close(self) -> None:
        """Hold nothing any more, and forget the run."""
        shared.let_go(self.home, self.state.run)
        run_state.forget(self.home, self.state.run)


def begin_apart(home: Repo, run: str, location: Location, link: tuple[str, ...]) -> Ground:
    """Make the worktree of a run, whose lock is held.

    Ignored files and folders that gates need (`link`) are links to those of `home`.
    Raises: GitError, StateError.
    """
    start = start_of(home, location)
    if location.uncommitted:
        start = commit.commit_uncommitted(home, run_state.folder_of(home, run))
    folder_abs = location.folder_abs or linked.folder_for(home, run)
    ref = f"refs/heads/{location.branch or f'{BRANCHES}{run}'}"
    state = state_of(home, run, root_abs=folder_abs, ref=ref, start=start)
    run_state.write(home, state)
    is_made = False
    try:
        shared.hold(home, run)
        linked.add_worktree(home, folder_abs, branch=state.branch, start=start)
        is_made = True
        state = state._replace(known=linked.link_ignored(home, folder_abs, link))
        run_state.write(home, state)
        ground = Ground(home, state)
        ground.uncommitted = location.uncommitted and start != home.head
        copy_index(f"{ground.git_dir_abs}/index", ground.index_abs)
    except GitgatesError:
        ground = Ground(home, state)
        if is_made:
            ground.drop("")
        ground.close()
        raise
    return ground


def state_of(home: Repo, run: str, *, root_abs: str, ref: str, start: str) -> RunState:
    """Return what there is before a run. Raises: GitError, StateError, OSError."""
    state = RunState(
        run=run,
        root_abs=root_abs,
        home_abs=home.root_abs,
        ref=ref,
        start=start,
        began_s=time.time(),
        pid=os.getpid(),
        home_ref=head_ref(home),
        home_head=home.head,
    )
    return shared.save(home, state)


def start_of(home: Repo, location: Location) -> str:
    """Return the commit that a run begins at. Raises: GitError."""
    if start := home.git.resolve(f"{location.start}^{{commit}}"):
        return start
    if location.start != "HEAD":
        raise GitError(f"the start commit {location.start} no longer exists")
    raise GitError("there is no commit yet to begin at", "Create a commit first.")


def head_ref(repo: Repo) -> str:
    """Return the ref that HEAD names; empty where it is detached."""
    return os.fsdecode(repo.git.ask("symbolic-ref", "-q", "HEAD").stdout).strip()


def under_way(repo: Repo) -> str:
    """Say that a command of git waits to be continued; empty if none does."""
    names = [name for name in _UNDER_WAY if os.path.lexists(f"{repo.git_dir_abs}/{name}")]
    words = [name.lower().removesuffix("_head").removesuffix("_log") for name in names]
    return f"a {words[0].replace('_', '-')} is in progress" if words else ""
