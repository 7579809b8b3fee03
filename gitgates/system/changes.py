"""See which files a gate changed."""

from __future__ import annotations

import os
import time

from gitgates.errors import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.system.git import Git

Contents = dict[str, tuple[int, int]]

_LOCK_WAIT_S = 2.0
_LOOK_AGAIN_S = 0.05


def unstaged_names(git: Git) -> frozenset[str]:
    """Return the tracked files that are not as in the index."""
    return frozenset(
        git.names("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--no-renames")
    )


def contents(git: Git, paths: tuple[str, ...], unstaged: frozenset[str]) -> Contents:
    """Return mode and content, as a hash, of `paths` and of every tracked file with changes.

    Tracked files that are as in the index need no entry: when one of them changes, it gets one.
    """
    return {path: _content(os.path.join(git.cwd_abs, path)) for path in {*unstaged, *paths}}


def changed(before: Contents, after: Contents) -> tuple[str, ...]:
    """Return the paths that are not the same in both, sorted."""
    return tuple(sorted(p for p in {*before, *after} if before.get(p) != after.get(p)))


def restage(git: Git, git_dir_abs: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Put files that are in the index being committed into it as they are now; return which.

    `commit -- path` prepares two: the one that it commits, and index.lock, which is the worktree's
    index afterwards. Another git that holds an index is waited for, for a moment.

    Raises: GitError after that.
    """
    found = _restage_in(git, paths)
    if "/next-index-" in git.env.get("GIT_INDEX_FILE", ""):
        env = {**git.env, "GIT_INDEX_FILE": f"{git_dir_abs}/index.lock"}
        _restage_in(git._replace(env=env), found)
    return found


def _restage_in(git: Git, paths: tuple[str, ...]) -> tuple[str, ...]:
    listed = git.names("ls-files", "-z", "--", *paths) if paths else []
    there = [path for path in listed if os.path.isfile(os.path.join(git.cwd_abs, path))]
    if not there:
        return ()
    names = b"".join(os.fsencode(path) + b"\0" for path in there)
    end = time.monotonic() + _LOCK_WAIT_S
    while (done := git.ask("update-index", "-z", "--stdin", stdin=names)).exit_status:
        if b".lock" not in done.stderr or time.monotonic() > end:
            said = os.fsdecode(done.stderr).strip()
            raise GitError(f"what a gate changed cannot be staged: {said}")
        time.sleep(_LOOK_AGAIN_S)
    return tuple(sorted(there))


def _content(path_abs: str) -> tuple[int, int]:
    try:
        mode = os.lstat(path_abs).st_mode
        with open(path_abs, "rb", buffering=0) as file:
            return mode, hash(file.read())
    except OSError:
        return 0, 0
