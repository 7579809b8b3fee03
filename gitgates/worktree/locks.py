"""Locks on a worktree: gitgates' while gates run, stale ones of git, and `git worktree lock`.

Ours are flocks, which the kernel frees when their holder is gone, for whatever reason: many runs
may read the files at once, one may move them. The file's text is only for people. With the second
lock, a gate that writes runs alone in its worktree, even among other runs' gates.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import LockError
from gitgates.store.files import lock_fd, lock_file, make_folder, open_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitgates.git.repo import Repo

WAIT_S = 60.0
_POLL_S = 0.05
_PATIENCE_S = 1.0
_ABANDONED_S = 3.0
# The second is no lock, but the content of the next packed-refs: git makes it as one.
_SHARED = ("packed-refs.lock", "packed-refs.new", "config.lock")
_REASON = b"gitgates: unstaged work is hidden while gates run; gitgates recover puts it back\n"


class Lock:
    """The lock on the files of a worktree, held until `release`, or until this process is gone."""

    def __init__(self, state_abs: str) -> None:
        self._path_abs = f"{state_abs}/lock"
        self._fd = -1

    def acquire(
        self,
        *,
        alone: bool,
        wait_s: float = 0.0,
        say: Callable[[str], None] = lambda _text: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> bool:
        """Take the lock; return whether that was possible within `wait_s`.

        `alone`: nobody else may hold it; otherwise others may, too. A lock that we hold already
        changes its kind. `say` is told once who holds it; `on_wait` is called until then.

        Raises: OSError if there can be no such file; what `on_wait` raises.
        """
        if self._fd < 0:
            make_folder(os.path.dirname(self._path_abs))
            self._fd = open_state(self._path_abs, os.O_RDWR | os.O_CREAT)
        began = time.monotonic()
        is_announced = False
        while not lock_fd(self._fd, shared=not alone):
            waited = time.monotonic() - began
            if waited >= wait_s:
                return False
            on_wait()
            if waited >= _PATIENCE_S and not is_announced:
                is_announced = True
                say(f"waiting for {self.holder()}")
            time.sleep(_POLL_S)
        text = f"gitgates (process {os.getpid()}) since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
        os.pwrite(self._fd, text.encode(), 0)
        os.ftruncate(self._fd, len(text))
        return True

    def holder(self) -> str:
        """Return the last holder of the lock, for display."""
        try:
            with open(
                self._path_abs, encoding="utf-8", errors="replace", opener=open_state
            ) as file:
                return file.read().strip() or "another gitgates run"
        except OSError:
            return "another gitgates run"

    def busy_error(self) -> LockError:
        """Return the error that names the holder."""
        return LockError(
            f"the working tree is in use by {self.holder()}",
            "Wait for it to finish, or stop it; the lock is released when it exits.",
        )

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def held_by_git(repo: Repo) -> dict[str, int]:
    """Return the lock files of the git that started gitgates: path → time of the last change in ns.

    Under `commit -a` and `commit -- path` git holds index.lock while the hook runs. Killed, it
    leaves it, and every later commit is refused.
    """
    names = {f"{repo.git_dir_abs}/index.lock"}
    index = repo.env.get("GIT_INDEX_FILE", "")
    if index.endswith(".lock") and os.path.isabs(index):
        names.add(index)
    return {name: changed for name in sorted(names) if (changed := changed_ns(name))}


def remove_stale(git_locks: Mapping[str, int], git_pid: int) -> list[str]:
    """Remove the lock files that a dead git left; return messages.

    Only the very file that we were started under; anything else belongs to somebody, and is named.
    """
    notes: list[str] = []
    if git_locks and is_alive(git_pid):
        return notes
    for path_abs, was_ns in git_locks.items():
        found_ns = changed_ns(path_abs)
        if found_ns == was_ns:
            os.unlink(path_abs)
            notes.append(f"git (process {git_pid}) was killed; removed its {path_abs}")
        elif found_ns:
            notes.append(
                f"{path_abs} exists, and was not left by the killed git; if no git process is "
                "running here: rm"
                f" '{path_abs}'"
            )
    return notes


def remove_abandoned(paths_abs: Iterable[str], since_ns: int) -> list[str]:
    """Remove locks on references and settings that a killed git has left; return messages.

    Git waits for such a lock, and never removes it. One is abandoned that was made since
    `since_ns`, which is before that kill, and stays the same for longer than any git holds one.
    """
    abandoned = {path: at for path in paths_abs if (at := changed_ns(path)) and at >= since_ns}
    until_s = time.monotonic() + _ABANDONED_S
    while abandoned and time.monotonic() < until_s:
        time.sleep(_POLL_S)
        abandoned = {path: at for path, at in abandoned.items() if changed_ns(path) == at}
    for path in abandoned:
        remove_file(path)
    return [f"removed {path}, left by a killed git process" for path in abandoned]


def shared_locks(repo: Repo) -> list[str]:
    """Return the locks on what all worktrees of a repository share."""
    return [f"{repo.common_dir_abs}/{name}" for name in _SHARED]


def is_alive(pid: int) -> bool:
    """Return whether a process exists."""
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


def changed_ns(path_abs: str) -> int:
    """Return when a file changed last; 0 if it does not exist.

    Not its inode number: the lock of the next commit may get the number of one that is gone.
    """
    try:
        return os.stat(path_abs).st_mtime_ns
    except OSError:
        return 0


def lock_worktree(git_dir_abs: str) -> None:
    """Lock a linked worktree against `git worktree remove` and `prune`, unless it is locked.

    Its git folder holds what is hidden, and the working tree looks clean meanwhile, so git
    would remove both without asking. Source: git-worktree(1), LOCKED WORKTREES.

    Raises: OSError if the file cannot be made.
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


def unlock_worktree(git_dir_abs: str) -> None:
    """Remove gitgates' own worktree lock, not another one."""
    path_abs = f"{git_dir_abs}/locked"
    try:
        with open(path_abs, "rb") as file:
            is_ours = file.read() == _REASON
        if is_ours:
            os.unlink(path_abs)
    except OSError:
        return


class FixerLock:
    """The lock, as one run sees it."""

    def __init__(self, state_abs: str) -> None:
        self._path_abs = f"{state_abs}/fixers"
        self._fd = -1
        self._waits_since = 0.0  # by the monotonic clock; 0: not at all

    def take(self, *, alone: bool, most_s: float) -> bool:
        """Take the lock, unless a gate of this run has it; return whether a gate may start.

        Also after `most_s`, without the lock: its holder may be stopped.
        """
        if self._fd >= 0:
            return True
        try:
            self._fd = lock_file(self._path_abs, shared=not alone)
        except OSError:
            return True  # if no lock is possible, others have none either
        now = time.monotonic()
        self._waits_since = 0.0 if self._fd >= 0 else self._waits_since or now
        return self._fd >= 0 or now - self._waits_since > most_s

    def release(self) -> None:
        """Release the lock: none of this run's gates runs."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
