"""One class for each expected failure: its exit status, its message, and what to do.

Anything else that escapes is internal error (exit status 70). The statuses follow sysexits.h, and
stay clear of 2: to a coding agent, exit status 2 means "block".
"""

from __future__ import annotations

import os
from errno import EACCES, EDQUOT, EIO, ENOSPC, EPERM, EROFS

_MAKE_ROOM = "Free some disk space, and try again."
_OWN = "gitgates"  # in the name of each file of ours

OK = 0
BLOCKED = 1
UNTESTABLE = 125  # for git-bisect(1): skip this commit

EXIT_STATUSES: tuple[tuple[int, str], ...] = (
    (0, "ok: every gate passed, was skipped, or only warned"),
    (1, "a gate blocked or stopped (doctor: a problem was found)"),
    (64, "usage error: an invalid option, argument or file name"),
    (69, "unavailable: the hook's interpreter or installation is missing, or this is Windows"),
    (70, "an internal error in gitgates; please report this bug"),
    (73, "the state folder, a hook, or an output cannot be written"),
    (74, "git failed, or this is not a git repository"),
    (75, "another gitgates run holds the lock"),
    (78, "the configuration has errors, or is missing although it is required"),
    (125, "`gitgates run --bisect` only: this commit cannot be judged"),
    (130, "interrupted by a signal (unless it is ignored, as under nohup); the gates were ended"),
)


class GitgatesError(Exception):
    """Expected trouble: a message for a person, a hint that says what to do, an exit status."""

    exit_status = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def full_message(self) -> str:
        """Return the message and the hint, on one line."""
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def with_notes(self, notes: list[str]) -> GitgatesError:
        """Add notes for a person; return the error itself."""
        self.hint = "\n  ".join(part for part in (self.hint, *notes) if part)
        return self

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(GitgatesError):
    """The command line is wrong."""

    exit_status = 64


class StateError(GitgatesError):
    """The state folder, or a hook, cannot be written."""

    exit_status = 73


def unwritable(error: BaseException) -> StateError | None:
    """Return the error for a device that is full, broken or read-only, or for state of ours.

    None for any other error.
    """
    if not isinstance(error, OSError):
        return None
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if error.errno in (ENOSPC, EDQUOT, EIO):
        return StateError(f"{name or 'a file'} cannot be written: {error.strerror}", _MAKE_ROOM)
    is_refused = error.errno == EROFS or (error.errno in (EACCES, EPERM) and _OWN in name)
    if not is_refused:
        return None
    hint = f"Look at it with: ls -ld {os.path.dirname(name) or '.'}"
    return StateError(f"{name or 'a file'} cannot be written: {error.strerror}", hint)


class GitError(GitgatesError):
    """Git failed, or there is no repository."""

    exit_status = 74


class OwnershipError(GitError):
    """Git does not trust the repository, because another user owns it."""


class ConfigError(GitgatesError):
    """The configuration has problems; all of them are in the message."""

    exit_status = 78


class Interrupted(GitgatesError):
    """A signal requested termination."""

    exit_status = 130


class LockError(GitgatesError):
    """Another run is in the way."""

    exit_status = 75
