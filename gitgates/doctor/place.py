"""Every worktree of the repository, and the folder that git takes hooks from there."""

from __future__ import annotations

import os

from gitgates.engine.command import GIT_LOCAL
from gitgates.errors import GitError
from gitgates.git.repo import Repo, find_repo
from gitgates.git.run import Git
from gitgates.install.hookspath import HooksFolder, hooks_folder
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What git's own variables say of this worktree is wrong in another one; settings stay.
_ELSEWHERE_WRONG = tuple(name for name in GIT_LOCAL if not name.startswith("GIT_CONFIG"))


class Place(Record):
    """One worktree."""

    repo: Repo
    git: Git
    folder: HooksFolder
    linked: bool  # not the one that the others were made from


def places(repo: Repo, env: Mapping[str, str]) -> tuple[list[Place], list[str]]:
    """Return every worktree, and the folders of those that are gone.

    The current one comes first. Raises: GitError where git cannot be asked.
    """
    git = repo._replace(env=env).git
    found = [_place(repo, git)]
    gone = []
    clean = {name: value for name, value in env.items() if name not in _ELSEWHERE_WRONG}
    for folder_abs in _listed(git):
        known = map(os.path.realpath, (repo.root_abs, repo.common_dir_abs))
        if os.path.realpath(folder_abs) in known:  # git lists a submodule by its git folder
            continue
        other = _repo(folder_abs, clean)
        if other is None:
            gone.append(folder_abs)
        else:
            found.append(_place(other, Git(cwd_abs=folder_abs, env=clean)))
    return found, gone


def _repo(folder_abs: str, env: Mapping[str, str]) -> Repo | None:
    """Return the worktree in a folder; None where it is gone, or the folder has another use."""
    try:
        found = find_repo(folder_abs, env)
    except GitError:
        return None
    return found if os.path.realpath(found.root_abs) == os.path.realpath(folder_abs) else None


def _place(repo: Repo, git: Git) -> Place:
    linked = os.path.realpath(repo.git_dir_abs) != os.path.realpath(repo.common_dir_abs)
    return Place(repo, git, hooks_folder(git, repo), linked)


def _listed(git: Git) -> list[str]:
    """Return the folders of `git worktree list`, but not that of a bare repository."""
    asked = git.ask("worktree", "list", "--porcelain", "-z")
    end = "\0"
    if asked.exit_status:  # git before 2.36 knows no -z
        asked, end = git.ask("worktree", "list", "--porcelain"), "\n"
    entries = os.fsdecode(asked.stdout).split(end * 2)
    found = []
    for entry in entries:
        first, *rest = entry.split(end)
        if first.startswith("worktree ") and "bare" not in rest:
            found.append(first.removeprefix("worktree "))
    return found
