"""Ask git what is not part of the commit that is being made."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git

_SUBMODULE = b"160000"
_NOTHING = b"000000"


class Unstaged:
    """What differs between the working tree and the index being committed."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}  # path → the blob that the index has there
        self.unseen: list[str] = []  # announced with `git add -N`, not part of the commit
        self.submodules: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.shown or self.unseen)


def find_unstaged(git: Git) -> Unstaged:
    """Ask git, once, what is unstaged."""
    found = Unstaged()
    fields = git.out(
        "diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-relative"
    ).split(b"\0")
    for meta, name in zip(fields[0::2], fields[1::2], strict=False):
        mode, _new_mode, blob, _new_blob, status = meta[1:].split(b" ")
        path = os.fsdecode(name)
        if mode == _SUBMODULE:
            found.submodules.append(path)
        elif mode == _NOTHING:
            found.unseen.append(path)
        elif status != b"U":
            found.shown[path] = blob.decode("ascii")
    return found
