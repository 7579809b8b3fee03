"""State that belongs to another user: report the owner, and the command that fixes it.

It comes from a repository that a group shares without core.sharedRepository, or from a single
`sudo git commit`. Cold: loaded only if something is wrong, or on request.
"""

from __future__ import annotations

import os
import pwd

from gitgates.core.errors import StateError
from gitgates.store.files import is_shared

_FOLDER = "/gitgates"
_OWNERS = 0o700


def denied(error: BaseException) -> StateError | None:
    """Return the error for state that belongs to another user; None for any other error."""
    if not (isinstance(error, PermissionError) and isinstance(error.filename, (str, bytes))):
        return None
    path_abs = os.fsdecode(error.filename)
    before, name, _rest = path_abs.rpartition(_FOLDER)
    if not name or not os.path.lexists(f"{before}{name}"):
        return None  # not state, but a place where none can be created
    what = f"{path_abs}: cannot be read or written: {error.strerror}"
    return StateError(*_whose(what, path_abs))


def require_access(folder_abs: str) -> None:
    """Check that a state folder can be read, so that it is not reported as empty.

    Raises: StateError if it exists but cannot be read.
    """
    if os.path.isdir(folder_abs) and not os.access(folder_abs, os.R_OK | os.X_OK):
        raise StateError(*_whose(f"{folder_abs}: cannot be read", folder_abs))


def _whose(what: str, path_abs: str) -> tuple[str, str]:
    """Return what is wrong, with the state folder's owner, and the command that fixes it."""
    before, name, _rest = path_abs.rpartition(_FOLDER)
    folder_abs = f"{before}{name}"
    fix = fix_owner_command(folder_abs)
    return f"{what}; state of {owner_of(path_abs)} is in {folder_abs}", fix


def owner_of(path_abs: str) -> str:
    """Return the name of the owner of a file, or of the folder where it would be."""
    while not os.path.lexists(path_abs):  # or it cannot be seen
        path_abs = os.path.dirname(path_abs)
    return _name(os.lstat(path_abs).st_uid)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def fix_owner_command(folder_abs: str) -> str:
    """Return the command that gives this user access to a state folder of another user."""
    status = os.lstat(folder_abs)
    if status.st_uid == os.geteuid() and status.st_mode & _OWNERS != _OWNERS:
        return f"chmod -R u+rwX '{folder_abs}'"
    if is_shared():
        return f"sudo chmod -R g+rwX '{folder_abs}'"
    return f"sudo chown -R {_name(os.geteuid())} '{folder_abs}'"
