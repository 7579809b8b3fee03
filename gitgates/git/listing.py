"""What git lists of a whole working tree: tracked, untracked, ignored and changed paths."""

from __future__ import annotations

import os

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

SUBMODULE = "160000"


class Listing(Record):
    """The index, and what is neither in it nor ignored."""

    tracked: Mapping[str, str]  # path → mode in the index, in octal digits
    others: tuple[str, ...]  # not tracked and not ignored; a repository of its own: with a slash
    flagged: tuple[str, ...]  # there, and git is told to take them as unchanged

    @property
    def submodules(self) -> list[str]:
        """The paths of submodules."""
        return [path for path, mode in self.tracked.items() if mode == SUBMODULE]

    @property
    def paths(self) -> list[str]:
        """The paths of files and links."""
        tracked = [path for path, mode in self.tracked.items() if mode != SUBMODULE]
        return tracked + [path for path in self.others if not path.endswith("/")]


def list_paths(repo: Repo) -> Listing:
    """Ask git, once, for what is tracked and what is untracked.

    Source: git-ls-files(1). With -v, assume-unchanged is lower case, and skip-worktree is S.
    """
    tracked, others, flagged = {}, [], []
    ask = ("ls-files", "-z", "-v", "--stage", "--others", "--exclude-standard")
    for entry in repo.git.names(*ask):
        tag, _, rest = entry.partition(" ")
        if tag == "?":
            others.append(rest)
            continue
        meta, _, path = rest.partition("\t")
        tracked[path] = meta.partition(" ")[0]
        is_flagged = tag == "S" or tag.islower()
        if is_flagged and os.path.lexists(os.path.join(repo.root_abs, path)):
            flagged.append(path)
    return Listing(tracked=tracked, others=tuple(others), flagged=tuple(flagged))


def list_changed(repo: Repo) -> list[str]:
    """Return what differs from HEAD, staged or not."""
    args = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")
    # The path follows 8 fields, and in a conflict 10. Source: git-status(1).
    lines = repo.git.names(*args, "--ignore-submodules=none")
    return [line.split(" ", 8 if line[0] == "1" else 10)[-1] for line in lines if line[0] in "1u"]
