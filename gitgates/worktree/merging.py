"""Merge two commits in a private checkout, for a git that cannot do it in memory."""

from __future__ import annotations

import os

from gitgates.core.errors import GitError
from gitgates.git.merging import ConflictError
from gitgates.worktree.checkouts import check_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_SHORT = 7


def merge_in_checkout(repo: Repo, ours: str, theirs: str) -> str:
    """Return the tree of a merge that an old git makes in a private checkout.

    Raises: as `merge_trees`.
    """
    objects = repo.git.lines("rev-parse", "--git-path", "objects")[0]
    with check_out(repo, ours, None) as checkout:
        env = {**checkout.repo.env, "GIT_OBJECT_DIRECTORY": os.path.join(repo.root_abs, objects)}
        git = checkout.repo._replace(env=env).git
        completed = git.ask("merge", "--quiet", "--no-commit", "--no-ff", theirs)
        unmerged = git.names("diff", "--name-only", "--diff-filter=U", "-z")
        if completed.exit_status and not unmerged:
            raise GitError(f"{theirs[:_SHORT]}: {os.fsdecode(completed.stderr).strip()}")
        git.out("add", "--all")  # with git's marks
        tree = git.out("write-tree").decode().strip()
    if unmerged:
        raise ConflictError(unmerged, tree)
    return tree
