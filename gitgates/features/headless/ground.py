"""Where a run works: a linked worktree, outside of the working tree and of `.git`.

The working tree that it was started in is not written before the run has passed, and then only by
git, as far as git permits that without touching local changes. See in_place.py for the other way.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, StateError
from gitgates.features.headless import commit, run_state, shared
from gitgates.features.headless.turn import run_git
from gitgates.files.facts import stat_of
from gitgates.git.checkout import env_in
from gitgates.git.index import copy_index
from gitgates.git.repo import find_repo
from gitgates.store.files import lock_file, make_folder, remove_file, remove_tree, replace_file
from gitgates.worktree.cache import cache_folder
from gitgates.worktree.setup import set_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gitgates.features.headless.commit import Staged
    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Repo
    from gitgates.worktree.setup import WorktreeSettings

BRANCHES = "gitgates/"  # of runs that nobody has named one for
MOST_NAMED = 10
_LOCK_S = 60.0  # after that, git is asked without the lock
# What git keeps while a command waits to be continued. Source: git's wt-status.c, refs.c.
_UNDER_WAY = (
    *("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"),
    *("sequencer", "BISECT_LOG"),
)


class Ground:
    """A linked worktree for a run, on a branch of its own."""

    def __init__(self, home: Repo, state: RunState) -> None:
        self.home, self.state = home, state
        self.repo = self.opened() or home
        self.index_abs = f"{run_state.folder_of(home, state.run)}/index"
        self.known: dict[str, object] = {}  # files that are not the run's → as they are
        self.note_known(state.known)

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the worktree. Each has a name of its own."""
        return f"{self.home.common_dir_abs}/worktrees/{os.path.basename(self.state.root_abs)}"

    def opened(self) -> Repo | None:
        """Return the worktree; None if git had not finished making it, or it is gone.

        Its `.git` leads where it led: an agent may have made a repository of its own there.
        """
        folder_abs, git_dir_abs = self.state.root_abs, self.git_dir_abs
        dot_git = f"{folder_abs}/.git"
        if not os.path.isdir(folder_abs) or not os.path.isfile(f"{git_dir_abs}/HEAD"):
            return None
        if os.path.isdir(dot_git) and not os.path.islink(dot_git):
            os.rename(dot_git, f"{git_dir_abs}/replaced-{len(os.listdir(git_dir_abs))}")
        replace_file(dot_git, f"gitdir: {git_dir_abs}\n".encode(), mode=0o644, sync=False)
        return find_repo(folder_abs, env_in(folder_abs, self.home))

    def make(self, settings: WorktreeSettings, say: Callable[[str], None]) -> None:
        """Add the worktree, and install there what gates need."""
        home, state, folder_abs = self.home, self.state, self.state.root_abs
        with _worktrees_lock(home):
            make_folder(os.path.dirname(folder_abs))
            how = ("-q", "--no-track", "-b", state.branch)
            home.git.out("worktree", "add", *how, folder_abs, state.start)
        self.repo = self.opened() or home
        copy_index(f"{self.git_dir_abs}/index", self.index_abs)
        log_abs = f"{run_state.folder_of(home, state.run)}/setup.log"
        set_up(settings, self.repo, home, log_abs=log_abs, say=say)
        self.note_known(commit.others_in(commit.git_with(self.repo, self.index_abs)))
        self.state = state._replace(known=tuple(sorted(self.known)))
        run_state.write(home, self.state)

    # What the run has made

    def stage(self) -> Staged:
        """Stage what the run has made. Raises: StateError if the agent has removed our state."""
        if not run_state.is_there(self.home, self.state.run):
            folder_abs = run_state.folder_of(self.home, self.state.run)
            raise StateError(f"{folder_abs}: was removed during the run")
        if self.opened() is None:
            raise GitError(f"{self.state.root_abs}: is no longer a worktree of the repository")
        for name in (f"{self.index_abs}.lock", f"{self.git_dir_abs}/index.lock"):
            remove_file(name)  # of a git that has ended with its turn
        return commit.stage(self.repo, self.index_abs, self.known)

    def note_known(self, paths: Iterable[str]) -> None:
        """Take more files for none of the run's, and all of them as they are."""
        self.known = self._signs_of({*self.known, *paths})

    def changed_others(self, staged: Staged) -> set[str]:
        """Return the files that the run has changed and that are not staged, such as ignored ones.

        They may be gone.
        """
        now = self._signs_of(commit.others_in(staged.git) | self.known.keys())
        return {path for path in now.keys() | self.known if now.get(path) != self.known.get(path)}

    def _signs_of(self, paths: set[str]) -> dict[str, object]:
        signs = {path: stat_of(f"{self.repo.root_abs}/{path}") for path in paths}
        return {path: sign for path, sign in signs.items() if sign}

    def hidden_note(self, staged: Staged) -> list[str]:
        """Return a note on files that ignore rules of the run keep from the commit."""
        hidden = commit.hidden_files(staged, self.state.start, self.known)
        what = "not committed, because of ignore rules that the run has added"
        return [f"{what}: {first_few(hidden, MOST_NAMED)}"] if hidden else []

    def restore(self, work: str) -> None:
        """Restore the content of a commit, as uncommitted changes. Raises: GitError."""
        self.repo.git.out("read-tree", "-m", "-u", "HEAD", work)
        self.repo.git.out("reset", "-q")

    def put_back(self) -> list[str]:
        """Put back what is shared with others and was changed; return notes."""
        return shared.put_back(self.home, self.state, self.git_dir_abs)

    # Its end

    def take(self, log_abs: str, on_tick: Callable[[], None]) -> list[str]:
        """Bring the commit to the branch that is checked out at home; return notes.

        The worktree is removed; its branch, too, if it was ours, and what is on it was taken.
        """
        tip, branch = self.repo.head, self.state.branch
        is_ours = branch.startswith(BRANCHES)
        why = self._why_not_taken(log_abs, on_tick) if is_ours else ""
        self._remove()
        if is_ours and not why:
            self.home.git.ask("update-ref", "-d", self.state.ref, tip)
        if not why:
            return []
        # If it began with uncommitted changes, they are in the way of the commit that has them.
        before = self.home.git.resolve(f"{self.state.start}^")
        stash = "git stash -u && " if before == self.state.home_head else ""
        return [f"it is on branch {branch}: {why}; to take it: {stash}git merge {branch}"]

    def _why_not_taken(self, log_abs: str, on_tick: Callable[[], None]) -> str:
        home, state = self.home, self.state
        if head_ref(home) != state.home_ref or home.head != state.home_head:
            return "HEAD is no longer where it was"
        if waiting := under_way(home):
            return waiting
        how = ("-q", "--ff-only", "--no-autostash", "--no-overwrite-ignore", state.ref)
        return run_git(home, "merge", *how, log_abs=log_abs, on_tick=on_tick)

    def leave(self) -> tuple[str, list[str]]:
        """Keep what a run that has not passed has made under a ref, and nothing else.

        Return the ref, if there is any work, and notes. The worktree stays if git could not hold
        all of it. May be repeated. Raises: GitError, StateError, OSError.
        """
        ref, problem = self.keep()
        if problem:
            return ref, [f"not all of it could be committed: {problem}", self.left_note()]
        self._remove()
        self.home.git.ask("update-ref", "-d", self.state.ref)
        return ref, []

    def settle(self) -> tuple[str, list[str]]:
        """Do the same after a kill or a signal, but for a run that had passed."""
        state, git = self.state, self.home.git
        tip = git.resolve(state.ref)
        if not tip or tip == state.start or not commit.is_of(git, tip, state.run):
            return self.leave()
        self._remove()
        what = f"it had passed; its commit is on {state.branch}: git merge {state.branch}"
        return "", [what]

    def keep(self) -> tuple[str, str]:
        """Keep what there is under a ref; return that, and what git could not hold."""
        git, ref = self.home.git, f"{commit.FAILED_REFS}/{self.state.run}"
        if self.opened() is None:  # it was not finished, or is removed already
            tip = git.resolve(ref) or git.resolve(self.state.ref)
            if tip in ("", self.state.start):
                return "", ""
            git.out("update-ref", ref, tip)
            return ref, ""
        ref = ""
        try:
            staged = self.stage()
            if staged.tree:
                ref = commit.keep_failed(self.repo, staged, self.state)
        except GitError as error:
            return ref, error.message
        return ref, staged.problem

    def left_note(self) -> str:
        """Return how to go on where it stays."""
        folder_abs = self.state.root_abs
        return f"{folder_abs} was kept; to remove it: git worktree remove --force {folder_abs}"

    def _remove(self) -> None:
        """Remove the worktree with all that is in it. Raises: StateError.

        Not by git, which removes nothing of a folder that it cannot read as a worktree.
        """
        with _worktrees_lock(self.home):
            for path_abs in (self.state.root_abs, self.git_dir_abs):
                if os.path.lexists(path_abs):
                    remove_tree(path_abs)

    def close(self) -> None:
        """Hold nothing any more, and forget the run."""
        shared.let_go(self.home, self.state.run)
        run_state.forget(self.home, self.state.run)


def folder_for(repo: Repo, run: str) -> str:
    """Return where the worktree of a run is to be. Raises: StateError."""
    return f"{cache_folder(repo)}/headless/{run}"


@contextmanager
def _worktrees_lock(repo: Repo) -> Iterator[None]:
    """Hold the lock for adding and removing linked worktrees of a repository.

    While git adds or removes one, other git commands that list all worktrees can fail: "failed to
    read .git/worktrees/NAME/commondir". Raises: StateError for any OSError.
    """
    try:
        make_folder(repo.shared_state_abs)
        fd = lock_file(f"{repo.shared_state_abs}/worktrees.lock", wait_s=_LOCK_S)
        try:
            yield
        finally:
            if fd >= 0:
                os.close(fd)
    except OSError as error:
        what = f"{error.filename}: cannot be changed: {error.strerror}"
        raise StateError(what, "XDG_CACHE_HOME names the folder of worktrees.") from error


def head_ref(repo: Repo) -> str:
    """Return the ref that HEAD names; empty if it is detached."""
    return os.fsdecode(repo.git.ask("symbolic-ref", "-q", "HEAD").stdout).strip()


def under_way(repo: Repo) -> str:
    """Say that a command of git waits to be continued; empty if none does."""
    names = [name for name in _UNDER_WAY if os.path.lexists(f"{repo.git_dir_abs}/{name}")]
    words = [name.lower().removesuffix("_head").removesuffix("_log") for name in names]
    return f"a {words[0].replace('_', '-')} is in progress" if words else ""
