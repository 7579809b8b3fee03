"""Look at a working tree: the ids of what it holds, and what no tree can tell."""

from __future__ import annotations

from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

NO_DEADLINE = float("inf")


class TimeOver(GitgatesError):
    """A look did not finish in time. What it has stored stays, and the next one goes on there."""


class UnseenError(GitError):
    """Git cannot read the working tree, so nothing is known of it."""


class Limits(Record):
    """What is too large to be stored."""

    max_file: int = 100 << 20  # bytes of one file
    max_ignored: int = 1 << 30  # bytes of all ignored files together


DEFAULT = Limits()


class Look(Record):
    """What a working tree holds."""

    tree: str  # of tracked and untracked files, raw; the id tells every difference
    head: str = ""  # the commit that is checked out; empty before the first
    ignored: str = ""  # the tree of ignored files that cannot be made again; empty: none, not asked
    left_out: Mapping[str, str] = {}  # path, which may be a folder → why it is in no tree
    unseen: tuple[str, ...] = ()  # why the same trees may have different content
    modes: Mapping[str, int] = {}  # path → permissions, where they are not those of the umask
    umask: int = 0o022

    @property
    def is_whole(self) -> bool:
        """Return whether the same tree means the same content."""
        return not (self.unseen or self.left_out)


def look(
    repo: Repo,
    limits: Limits = DEFAULT,
    *,
    ignored: bool = False,
    deadline_s: float = NO_DEADLINE,
) -> Look:
    """Look at the working tree; store what is new in it.

    `ignored`: also at what git ignores. `deadline_s`: a moment of `time.monotonic`. What another
    run has stashed counts as present; in the run that stashes, the look is at what its gates see.

    Raises: TimeOver; UnseenError where git cannot read the working tree; StateError where nothing
    can be stored, for lack of space for example; LockError where another look does not end.
    """
    raise NotImplementedError


def committed_tree(repo: Repo, seen: Look, *, deadline_s: float = NO_DEADLINE) -> str:
    """Return the tree that a commit of all these files would have.

    Where git converts nothing, it is the tree of the look; of files that git converts, it has what
    `git add` would store. In a clean checkout, it is the tree of the commit.

    Raises: as `look`.
    """
    raise NotImplementedError
