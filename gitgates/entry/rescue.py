"""`gitgates rescue ROOT GIT_DIR PID [LOCK MTIME_NS]…`: what the guardian of a killed run starts."""

from __future__ import annotations

import os

from gitgates.core import environ
from gitgates.core.errors import StateError, UsageError
from gitgates.git.repo import find_repo
from gitgates.store.files import open_state
from gitgates.worktree.isolate import recover
from gitgates.worktree.locks import remove_stale

# The kernel may report a run's death before it frees the run's lock.
_WAIT_S = 10.0
_FIXED = 3


def run(args: list[str]) -> int:
    """Restore what a killed run had stashed, and leave a notice for the next command."""
    if not _is_valid_call(args):
        raise UsageError(
            "`rescue` is internal: gitgates starts it when a run was killed",
            "Use this instead: gitgates recover",
        )
    root_abs, git_dir_abs, git_pid, *locks = args
    os.chdir(root_abs)
    env = dict(environ.read())
    repo = find_repo(root_abs, env)
    if repo.git_dir_abs != git_dir_abs:
        # Only GIT_DIR led to the repository, and that variable died with git.
        env |= {"GIT_DIR": git_dir_abs, "GIT_WORK_TREE": root_abs}
        repo = find_repo(root_abs, env)
    try:
        lines = recover(repo, lambda _text: None, wait_s=_WAIT_S, at_once=True) or ()
    except StateError as error:  # nobody would see it now
        lines = (str(error),)
    # A run that was killed before it had a journal left only git's own lock files.
    lock_times = {
        path: int(changed) for path, changed in zip(locks[0::2], locks[1::2], strict=True)
    }
    lines = (*lines, *remove_stale(lock_times, int(git_pid)))
    if lines:
        _write_notice(f"{repo.state_abs}/recovered", lines)
    return 0


def _is_valid_call(args: list[str]) -> bool:
    root_abs, git_dir_abs, *rest = args if len(args) >= _FIXED else ("", "")
    folders = os.path.isabs(root_abs) and os.path.isdir(root_abs) and os.path.isdir(git_dir_abs)
    numbers = rest[:1] + rest[2::2]  # the process, and the time of each lock
    return folders and len(rest) % 2 == 1 and all(map(str.isdecimal, numbers))


def _write_notice(path_abs: str, lines: tuple[str, ...]) -> None:
    with open(path_abs, "ab", opener=open_state) as file:
        file.write(os.fsencode("".join(f"{line}\n" for line in lines)))
