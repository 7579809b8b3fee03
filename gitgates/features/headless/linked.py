"""A linked worktree for one run: outside of the working tree and of `.git`."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager

from gitgates.core.errors import GitError, StateError
from gitgates.git.repo import find_repo
from gitgates.store.files import lock_file, make_folder, remove_tree, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.git.repo import Repo

_LOCK_S = 60.0  # after that, git is asked without the lock


def folder_for(repo: Repo, run: str) -> str:
    """Return where the worktree of a run is to be."""
    home_abs = repo.env.get("HOME") or os.path.expanduser("~")
    cache_abs = repo.env.get("XDG_CACHE_HOME", "")
    cache_abs = cache_abs if os.path.isabs(cache_abs) else f"{home_abs}/.cache"
    name = hashlib.sha256(os.fsencode(os.path.realpath(repo.common_dir_abs))).hexdigest()[:16]
    return f"{cache_abs}/gitgates/{name}/headless/{run}"


def git_dir_for(repo: Repo, folder_abs: str) -> str:
    """Return the git folder of a linked worktree. Each has a name of its own."""
    return f"{repo.common_dir_abs}/worktrees/{os.path.basename(folder_abs)}"


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


def add_worktree(repo: Repo, folder_abs: str, *, branch: str, start: str) -> None:
    """Make a worktree on a new branch. Raises: GitError, StateError."""
    if os.path.lexists(folder_abs):  # git creates the branch before it reports that
        hint = "Another run is using it, or left it behind: git worktree list"
        raise GitError(f"{folder_abs}: already exists", hint)
    with _worktrees_lock(repo):
        make_folder(os.path.dirname(folder_abs))
        repo.git.out("worktree", "add", "-q", "--no-track", "-b", branch, folder_abs, start)


def open_worktree(repo: Repo, folder_abs: str) -> Repo | None:
    """Return the worktree of a run; None if git had not finished making it, or it is gone.

    Its `.git` leads where it led: an agent may have made a repository of its own there.
    """
    git_dir_abs, dot_git = git_dir_for(repo, folder_abs), f"{folder_abs}/.git"
    if not os.path.isdir(folder_abs) or not os.path.isfile(f"{git_dir_abs}/HEAD"):
        return None
    if os.path.isdir(dot_git) and not os.path.islink(dot_git):
        os.rename(dot_git, f"{git_dir_abs}/replaced-{len(os.listdir(git_dir_abs))}")
    replace_file(dot_git, f"gitdir: {git_dir_abs}\n".encode(), mode=0o644, sync=False)
    env = {name: value for name, value in repo.env.items() if not name.startswith("GIT_DIR")}
    return find_repo(folder_abs, env)


def link_ignored(repo: Repo, folder_abs: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Link ignored files that gates need (the key `link`) to those of `repo`; return these."""
    linked = []
    for name in names:
        source, target = os.path.join(repo.root_abs, name), os.path.join(folder_abs, name)
        if os.path.exists(source) and not os.path.lexists(target):
            os.symlink(source, target)
            linked.append(name)
    return tuple(linked)


def remove_worktree(repo: Repo, folder_abs: str) -> None:
    """Remove a worktree with all that is in it, also one that git had not finished making.

    Not by git, which removes nothing of a folder that it cannot read as a worktree.
    Raises: StateError.
    """
    with _worktrees_lock(repo):
        for path_abs in (folder_abs, git_dir_for(repo, folder_abs)):
            if os.path.lexists(path_abs):
                remove_tree(path_abs)
