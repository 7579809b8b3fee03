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


def add_worktree(repo: Repo, folder_abs: str, *, branch: str, start: str) -> Repo:
    """Make a worktree on a new branch. Raises: GitError, StateError."""
    if os.path.lexists(folder_abs):  # git creates the branch before it reports that
        hint = "Another run is using it, or left it behind: git worktree list"
        raise GitError(f"{folder_abs}: already exists", hint)
    try:
        make_folder(os.path.dirname(folder_abs))
    except OSError as error:
        what = f"{error.filename}: cannot be created: {error.strerror}"
        raise StateError(what, "XDG_CACHE_HOME names another folder.") from error
    with _worktrees_lock(repo):
        repo.git.out("worktree", "add", "-q", "--no-track", "-b", branch, folder_abs, start)
    return find_repo(folder_abs, _without_git_dir(repo))


def open_worktree(repo: Repo, folder_abs: str) -> Repo | None:
    """Return the worktree of a run; None if git had not finished making it, or it is gone.

    Its `.git` leads where it led, whatever has become of it.
    """
    git_dir_abs = git_dir_for(repo, folder_abs)
    if not os.path.isdir(folder_abs) or not os.path.isfile(f"{git_dir_abs}/HEAD"):
        return None
    _lead_back(folder_abs, git_dir_abs)
    return find_repo(folder_abs, _without_git_dir(repo))


def _lead_back(folder_abs: str, git_dir_abs: str) -> None:
    """Have `.git` lead to the repository: an agent may have made one of its own there."""
    dot_git, content = f"{folder_abs}/.git", f"gitdir: {git_dir_abs}\n".encode()
    if os.path.isdir(dot_git) and not os.path.islink(dot_git):
        os.rename(dot_git, f"{git_dir_abs}/replaced-{len(os.listdir(git_dir_abs))}")
    replace_file(dot_git, content, mode=0o644, sync=False)


def link_ignored(repo: Repo, worktree: Repo, names: tuple[str, ...]) -> tuple[str, ...]:
    """Link ignored files that gates need (the key `link`) to those of `repo`; return these."""
    linked = []
    for name in names:
        source, target = os.path.join(repo.root_abs, name), os.path.join(worktree.root_abs, name)
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
            try:
                if os.path.lexists(path_abs):
                    remove_tree(path_abs)
            except OSError as error:
                what = f"{error.filename}: cannot be removed: {error.strerror}"
                raise StateError(what) from error


def _without_git_dir(repo: Repo) -> dict[str, str]:
    return {name: value for name, value in repo.env.items() if not name.startswith("GIT_DIR")}
