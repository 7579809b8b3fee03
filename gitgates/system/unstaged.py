"""Ask git what is part of the commit that is being made, and what is not."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git

_SUBMODULE = b"160000"
_NOTHING = b"000000"


class Unstaged:
    """What differs between the working tree and the index being committed.

    `staged` is beside that: the files and links that the index changes against HEAD.
    """

    def __init__(self) -> None:
        self.staged: list[str] = []
        self.shown: dict[str, str] = {}  # path → the blob that the index has there
        self.unseen: list[str] = []  # announced with `git add -N`, not part of the commit
        self.submodules: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.shown or self.unseen)


def find_unstaged(git: Git) -> Unstaged:
    """Ask git, once, what is staged and what is unstaged.

    Source: git-status(1), "Porcelain Format Version 2".
    """
    found = Unstaged()
    asked = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")
    for line in git.out(*asked).split(b"\0"):
        if line[:2] != b"1 ":
            continue  # what is unmerged cannot be committed
        _one, status, _sub, _in_head, mode, _worktree, _head_blob, blob, name = line.split(b" ", 8)
        path = os.fsdecode(name)
        if mode not in (_SUBMODULE, _NOTHING) and status[:1] != b".":
            found.staged.append(path)
        if status[1:] == b".":
            continue
        if mode == _SUBMODULE:
            found.submodules.append(path)
        elif mode == _NOTHING:
            found.unseen.append(path)
        else:
            found.shown[path] = blob.decode("ascii")
    return found
