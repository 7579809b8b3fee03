"""The files in `.git/hooks`, next to a checkpoint: what a run leaves there runs in each commit.

    checkpoints/RUN/hooks/… as they were, with their modes
    kept/RUN-hooks/… of the repository: what a rollback has taken out

A folder of hooks in the working tree is part of the checkpoint; of one elsewhere, notes tell.
"""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

from gitgates.store.rescue import move_aside

if TYPE_CHECKING:
    from gitgates.git.repo import Repo

SAVED = "hooks"


def save_hooks(repo: Repo, folder_abs: str) -> None:
    """Copy the hooks to a folder that is made.

    Raises: OSError.
    """
    os.makedirs(folder_abs, mode=0o700)
    for name, content in _contents(_hooks_abs(repo)).items():
        if content:
            _copy(f"{_hooks_abs(repo)}/{name}", f"{folder_abs}/{name}")


def restore_hooks(repo: Repo, folder_abs: str, run: str, *, apart: bool) -> list[str]:
    """Move aside the hooks that differ from the saved ones, and restore those; return notes.

    `apart`: what no longer exists stays so, because somebody else may have removed it.

    Raises: OSError.
    """
    hooks_abs, kept_abs = _hooks_abs(repo), f"{repo.shared_state_abs}/kept/{run}-hooks"
    if not os.path.isdir(folder_abs):  # an earlier version has not saved them
        return []
    before, now, notes = _contents(folder_abs), _contents(hooks_abs), []
    for name, content in now.items():
        if content and before.get(name) != content:
            os.makedirs(os.path.dirname(f"{kept_abs}/{name}"), mode=0o700, exist_ok=True)
            move_aside(f"{hooks_abs}/{name}", f"{kept_abs}/{name}")
            how = "changed" if name in before else "created"
            notes.append(f"the hook `{name}` was {how} during the run; it is in {kept_abs}")
    for name in before:
        if not os.path.lexists(f"{hooks_abs}/{name}") and (name in now or not apart):
            _copy(f"{folder_abs}/{name}", f"{hooks_abs}/{name}")
    return notes


def _hooks_abs(repo: Repo) -> str:
    return f"{repo.common_dir_abs}/hooks"


def _contents(folder_abs: str) -> dict[str, bytes]:
    """Return mode and content of all below a folder but git's samples; empty for no file."""
    contents = {}
    for parent_abs, _folders, names in os.walk(folder_abs):
        for name in names:
            if not name.endswith(".sample"):
                path_abs = f"{parent_abs}/{name}"
                contents[os.path.relpath(path_abs, folder_abs)] = _read(path_abs)
    return contents


def _read(path_abs: str) -> bytes:
    mode = os.lstat(path_abs).st_mode
    if stat.S_ISLNK(mode):
        return b"-> " + os.fsencode(os.readlink(path_abs))
    if not stat.S_ISREG(mode):
        return b""  # a pipe, say, which cannot be read
    with open(path_abs, "rb") as file:
        return b"%o %b" % (mode, file.read())


def _copy(source_abs: str, target_abs: str) -> None:
    os.makedirs(os.path.dirname(target_abs), exist_ok=True)
    shutil.copy2(source_abs, target_abs, follow_symlinks=False)
