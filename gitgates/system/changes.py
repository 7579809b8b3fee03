"""See which files a gate changed."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git

Contents = dict[str, tuple[int, int]]


def contents(git: Git, paths: tuple[str, ...]) -> Contents:
    """Return mode and content, as a hash, of `paths` and of every tracked file with changes.

    Tracked files that are as in the index need no entry: when one of them changes, it gets one.
    """
    dirty = git.names("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--no-renames")
    return {path: _content(os.path.join(git.cwd_abs, path)) for path in {*dirty, *paths}}


def changed(before: Contents, after: Contents) -> tuple[str, ...]:
    """Return the paths that are not the same in both, sorted."""
    return tuple(sorted(p for p in {*before, *after} if before.get(p) != after.get(p)))


def _content(path_abs: str) -> tuple[int, int]:
    try:
        mode = os.lstat(path_abs).st_mode
        with open(path_abs, "rb", buffering=0) as file:
            return mode, hash(file.read())
    except OSError:
        return 0, 0
