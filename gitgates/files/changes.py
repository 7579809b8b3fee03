"""What differs between trees of the memory, and what one author has changed."""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.files.points import Author, Point
    from gitgates.git.repo import Repo


class Version(Record):
    """One version of a file."""

    mode: int  # as git has it: 0o100644, 0o100755, 0o120000, 0o160000
    blob: str  # the id; of a submodule, its commit


class Change(Record):
    """How a file differs."""

    before: Version | None  # None: it was not there
    after: Version | None


def changes(repo: Repo, before: str, after: str) -> dict[str, Change]:
    """Return path → change between two trees; an empty id stands for an empty tree.

    Raises: GitError where one does not exist.
    """
    raise NotImplementedError


def changed_by(
    repo: Repo, points: Iterable[Point], is_author: Callable[[Author], bool]
) -> dict[str, Change]:
    """Return path → what an author has made of a file: before its first change, after its last.

    What came back to what it was is left out. Ignored files count, too. What commits that existed
    before have brought, by a checkout, merge or pull, is nobody's.

    Raises: GitError.
    """
    raise NotImplementedError


def own_trees(
    repo: Repo, points: Iterable[Point], is_author: Callable[[Author], bool], now: str
) -> tuple[str, str]:
    """Return two trees, `now` the second one, between which lies only what an author has changed.

    The first one is `now` with the author's files as they were before. Raises: GitError, OSError.
    """
    raise NotImplementedError


def read(repo: Repo, blobs: Iterable[str], largest: int = 1 << 20) -> dict[str, bytes]:
    """Return blob → bytes, without those that are missing or larger. Raises: GitError."""
    raise NotImplementedError
