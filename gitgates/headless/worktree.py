"""A linked worktree for one run, beside the repository, removed afterwards."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from gitgates.errors import GitError
from gitgates.git.repo import find_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.git.repo import Repo


@contextmanager
def in_worktree(
    repo: Repo, branch: str, link: tuple[str, ...], say: Callable[[str], None]
) -> Iterator[Repo]:
    """Yield a worktree of HEAD on a new branch; remove it unless it has uncommitted changes.

    Ignored files and folders that gates need (`link`) are symlinks to those of `repo`.
    Raises: GitError.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    branch = branch or f"headless/{stamp}-{os.getpid()}"
    folder_abs = f"{repo.root_abs}.headless-{stamp}-{os.getpid()}"
    git = repo.git
    if not (begun_at := git.resolve("HEAD")):
        raise GitError("there is no commit yet to make a worktree of", "Commit something first.")
    git.out("worktree", "add", "-q", "-b", branch, folder_abs)
    say(f"working in {folder_abs}, on branch {branch}")
    try:
        for name in link:
            source, target = os.path.join(repo.root_abs, name), os.path.join(folder_abs, name)
            if os.path.exists(source) and not os.path.lexists(target):
                os.symlink(source, target)
        env = {name: value for name, value in repo.env.items() if not name.startswith("GIT_DIR")}
        yield find_repo(folder_abs, env)
    finally:
        for name in link:
            target = os.path.join(folder_abs, name)
            if os.path.islink(target):
                os.unlink(target)
        removed = git.ask("worktree", "remove", folder_abs)
        now = git.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}").stdout
        if removed.exit_status:
            said = removed.stderr.decode("utf-8", "replace").strip()
            reason = said.removeprefix(f"fatal: '{folder_abs}' ").partition(", use --force")[0]
            command = f"git worktree remove --force {folder_abs}"
            say(f"{folder_abs} stays ({reason}); to remove it: {command}")
        elif now.decode().strip() == begun_at:
            git.ask("branch", "-q", "-D", branch)  # nothing was committed to it
