"""A linked worktree for one run, next to the repository, removed afterwards."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from gitgates.core.errors import GitError, StateError, UsageError
from gitgates.core.record import Record
from gitgates.git.repo import find_repo
from gitgates.store.files import lock_file, make_folder
from gitgates.worktree import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.git.repo import Repo


_LOCK_S = 60.0  # after that, git is asked without the lock


class Location(Record):
    """Where a run works."""

    branch: str = ""  # a new one
    apart: bool = False  # in a worktree of its own
    folder_abs: str = ""  # of that worktree; empty: beside the repository
    start: str = "HEAD"  # what the new branch of that worktree begins at


@contextmanager
def worktrees_lock(repo: Repo) -> Iterator[None]:
    """Hold the lock for adding and removing linked worktrees of a repository.

    While git adds or removes one, other git commands that list all worktrees can fail: "failed to
    read .git/worktrees/NAME/commondir".
    """
    try:
        make_folder(repo.shared_state_abs)
        fd = lock_file(f"{repo.shared_state_abs}/worktrees.lock", wait_s=_LOCK_S)
    except OSError as error:
        raise StateError(f"{error.filename}: {error.strerror}") from error
    try:
        yield
    finally:
        if fd >= 0:
            os.close(fd)


@contextmanager
def in_worktree(
    repo: Repo, location: Location, link: tuple[str, ...], say: Callable[[str], None]
) -> Iterator[Repo]:
    """Yield a worktree on a new branch at `location.start`; remove it if nothing would be lost.

    Ignored files and folders that gates need (`link`) are symlinks to those of `repo`.
    Raises: GitError, StateError.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    branch = location.branch or f"headless/{stamp}-{os.getpid()}"
    folder_abs = location.folder_abs or f"{repo.root_abs}.headless-{stamp}-{os.getpid()}"
    git = repo.git
    begun_at = _beginning(repo, location.start)
    if os.path.lexists(folder_abs):  # git creates the branch before it reports that
        hint = "Another run is using it, or left it behind: git worktree list"
        raise GitError(f"{folder_abs}: already exists", hint)
    with worktrees_lock(repo):
        git.out("worktree", "add", "-q", "-b", branch, folder_abs, begun_at)
    say(f"working in {folder_abs}, on branch {branch}")
    try:
        for name in link:
            source, target = os.path.join(repo.root_abs, name), os.path.join(folder_abs, name)
            if os.path.exists(source) and not os.path.lexists(target):
                os.symlink(source, target)
        yield find_repo(folder_abs, _without_git_dir(repo))
    finally:
        for name in link:
            target = os.path.join(folder_abs, name)
            if os.path.islink(target):
                os.unlink(target)
        with worktrees_lock(repo):
            reason = _remove(repo, folder_abs)
            now = git.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}").stdout
            if not reason and now.decode().strip() == begun_at:
                git.ask("branch", "-q", "-D", branch)  # nothing was committed to it
        if reason:
            command = f"git worktree remove --force {folder_abs}"
            say(f"{folder_abs} was kept ({reason}); to remove it: {command}")


def _beginning(repo: Repo, start: str) -> str:
    """Return the commit that a worktree begins at.

    Raises: GitError.
    """
    if begun_at := repo.git.resolve(f"{start}^{{commit}}"):
        return begun_at
    if start != "HEAD":
        raise GitError(f"the start commit {start} no longer exists")
    raise GitError("there is no commit yet to create a worktree from", "Create a commit first.")


def _remove(repo: Repo, folder_abs: str) -> str:
    """Remove a worktree, or return why it stays."""
    env = _without_git_dir(repo)
    git = repo.git._replace(cwd_abs=folder_abs, env=env)
    if git.ask("rev-list", "-1", "HEAD", "--not", "--branches").stdout:
        return "its HEAD has commits that are on no branch"
    if _has_checkpoint(folder_abs, env):
        return "it holds the checkpoint of its run"
    removed = repo.git.ask("worktree", "remove", folder_abs)
    if not removed.exit_status:
        return ""
    reason = removed.stderr.decode("utf-8", "replace").strip()
    return reason.removeprefix(f"fatal: '{folder_abs}' ").partition(", use --force")[0]


def _has_checkpoint(folder_abs: str, env: dict[str, str]) -> bool:
    """Return whether a run left its checkpoint, as one that was interrupted does."""
    try:
        state_abs = find_repo(folder_abs, env).state_abs
        return any(checkpoint.left_behind(state_abs))
    except GitError:
        return False
    except StateError:  # it cannot be read: nothing is removed
        return True


def _without_git_dir(repo: Repo) -> dict[str, str]:
    return {name: value for name, value in repo.env.items() if not name.startswith("GIT_DIR")}


def require_branch(repo: Repo, branch: str) -> None:
    """Raise UsageError if there can be no new branch of this name."""
    if not branch:
        return
    if repo.git.ask("check-ref-format", "--branch", branch).exit_status:
        raise UsageError(f"--branch {branch}: not a valid branch name")
    if not repo.git.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}").exit_status:
        raise UsageError(f"--branch {branch}: already exists", "Choose a new name.")
