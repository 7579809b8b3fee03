"""Look at a working tree: find the ids of its content, and what no tree can hold.

No file of the user's is written. What git would convert is stored as its raw bytes.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import LockError
from gitgates.files.index import UnseenError
from gitgates.files.looked import DEFAULT, Limits, Look
from gitgates.files.memory import NO_DEADLINE, Memory, Storing, TimeOver, time_over
from gitgates.files.scan import Scan, find_stashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

__all__ = ["DEFAULT", "NO_DEADLINE", "Limits", "Look", "TimeOver", "UnseenError", "look"]
_ATTEMPTS = 4  # while files change under us
_PATIENCE_S = 30.0  # while another run moves files: thousands take seconds
_POLL_S = 0.01
_WAIT_S = 60.0


def look(
    repo: Repo,
    limits: Limits | None = DEFAULT,
    *,
    ignored: bool = False,
    deadline_s: float = NO_DEADLINE,
) -> Look:
    """Look at the working tree; store what is new in it.

    `limits`: None for those of the last look. `ignored`: also what git ignores, and folders'
    permissions. `deadline_s`: a time of `time.monotonic`. What another run has stashed counts as
    present; the run that stashes sees what its gates see.

    Raises: TimeOver; UnseenError if git cannot read the working tree; StateError if nothing
    can be stored, for lack of space for example; LockError if another look does not end.
    """
    memory = Memory(repo)
    with Locked(memory, deadline_s):
        return look_locked(memory, limits, ignored=ignored, until_s=deadline_s)


class Locked(Storing):
    """Locks a worktree while something is stored. Raises: TimeOver, LockError, StateError."""

    def __init__(self, memory: Memory, until_s: float = NO_DEADLINE) -> None:
        super().__init__(memory)
        self._until_s = until_s

    def __enter__(self) -> None:
        left_s = self._until_s - time.monotonic()
        try:
            with Storing(self._memory):
                wait_s = max(min(left_s, _WAIT_S), 0.0)
                self._fd = self._memory.lock("files.lock", wait_s=wait_s)
        except LockError as error:
            if left_s >= _WAIT_S:
                raise
            raise TimeOver(error.message, error.hint) from error

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        os.close(self._fd)
        super().__exit__(kind, error, traceback)


def look_locked(memory: Memory, limits: Limits | None, *, ignored: bool, until_s: float) -> Look:
    """Look, as `look` does, while the lock is held. Raises: as it, and OSError."""
    repo = memory.repo
    memory.prepare()
    patience_s, failures = time.monotonic() + _PATIENCE_S, 0
    while True:
        if time.monotonic() > until_s:
            raise time_over(repo.root_abs)
        stashed = find_stashed(repo)
        try:
            result = Scan(memory, limits, until_s).look(stashed, with_ignored=ignored)
        except (UnseenError, FileNotFoundError, NotADirectoryError) as error:
            failures += find_stashed(repo) == stashed
            if failures == _ATTEMPTS:
                if not isinstance(error, UnseenError):
                    raise
                hint = "Make it readable, or have git ignore it."
                raise UnseenError(error.message, hint) from error
            if failures == _ATTEMPTS - 1:
                memory.forget_index()  # it, or an object that it names, may be damaged
        else:
            if find_stashed(repo) == stashed:
                return result
        if time.monotonic() > patience_s:
            raise UnseenError(
                f"{repo.root_abs}: another gitgates run keeps stashing and restoring files",
                "Wait for it to finish.",
            )
        time.sleep(_POLL_S)
