"""Git's own lock files, when git did not live to remove them.

Under `commit -a` and `commit -- path` git holds index.lock while the hook runs. Killed, it leaves
it, and every later commit is refused. It is removed only where it is the very file that we were
started under and that git is gone; anything else is somebody's, and is only named.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

    # (path, time of the last change in ns) of each lock file, and the process that holds them
    Held = tuple[tuple[tuple[str, int], ...], int]


def held_by_git(repo: Repo) -> Held:
    """Return the lock files that the git that started us holds, and its process id."""
    names = {f"{repo.git_dir_abs}/index.lock"}
    index = repo.env.get("GIT_INDEX_FILE", "")
    if index.endswith(".lock") and os.path.isabs(index):
        names.add(index)
    found = tuple((name, _changed_ns(name)) for name in sorted(names) if _changed_ns(name))
    return found, os.getppid()


def clear(held: Held) -> tuple[str, ...]:
    """Remove the lock files that a dead git left; return what there is to say."""
    locks, git_pid = held
    if not locks or is_alive(git_pid):
        return ()
    notes = []
    for path_abs, changed_ns in locks:
        if _changed_ns(path_abs) == changed_ns:
            os.unlink(path_abs)
            notes.append(f"git (process {git_pid}) was killed; its {path_abs} is removed")
        elif _changed_ns(path_abs):
            notes.append(
                f"{path_abs} is there and is not the one of the git that was killed; if no git "
                f"runs here, remove it with: rm '{path_abs}'"
            )
    return tuple(notes)


def is_alive(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False


def _changed_ns(path_abs: str) -> int:
    """Return when a file changed last; 0 where it is not there.

    Not its inode number: the lock of the next commit may get the number of one that is gone.
    """
    try:
        return os.stat(path_abs).st_mtime_ns
    except OSError:
        return 0
