"""Keep `git worktree remove` and `prune` away from a linked worktree while work is hidden in it.

Its git folder holds what is hidden, and the working tree looks clean meanwhile, so that git would
remove both without asking. Source: git-worktree(1), LOCKED WORKTREES.
"""

from __future__ import annotations

import os

_REASON = b"gitgates: unstaged work is hidden while gates run; gitgates recover puts it back\n"


def hold(git_dir_abs: str) -> None:
    """Lock a linked worktree against removal; nothing to do in any other, or if it is locked.

    Raises: OSError where the file cannot be made.
    """
    if not os.path.exists(f"{git_dir_abs}/commondir"):
        return
    try:
        fd = os.open(f"{git_dir_abs}/locked", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return
    try:
        os.write(fd, _REASON)
    finally:
        os.close(fd)


def let_go(git_dir_abs: str) -> None:
    """Take our own lock away; somebody else's stays."""
    path_abs = f"{git_dir_abs}/locked"
    try:
        with open(path_abs, "rb") as file:
            ours = file.read() == _REASON
        if ours:
            os.unlink(path_abs)
    except OSError:
        return
