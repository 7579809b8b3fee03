"""A cache of file contents, as hashes of their lines, for a day.

Written before a tool writes a file, and after each call that is recorded; the next call is compared
with that. Each worktree has its own, for all its sessions.
"""

from __future__ import annotations

import os
import time

from gitgates.features.trace.content import FileContent
from gitgates.store.files import make_folder, read_cached, remove_file, replace_cached
from gitgates.store.log import file_name

_MAX_AGE_S = 24 * 3600.0
_VERSION = 1


def remember(state_abs: str, path: str, content: FileContent) -> None:
    """Store the content at a path. Raises: OSError."""
    name_abs = _name_abs(state_abs, path)
    if not os.path.exists(name_abs):
        _make_room(os.path.dirname(name_abs))
    fields = content.kind, content.sha256, content.blob, content.marks
    replace_cached(name_abs, (_VERSION, path, time.time(), fields), sync=False)


def recall(state_abs: str, path: str, since: float = 0.0) -> FileContent | None:
    """Return the stored content of a path; None if none was stored since then."""
    version, cached_path, stamp, fields = read_cached(_name_abs(state_abs, path)) or (
        0,
        "",
        0.0,
        (),
    )
    is_current = (version, cached_path) == (_VERSION, path) and stamp >= since
    return FileContent(*fields) if is_current else None


def _name_abs(state_abs: str, path: str) -> str:
    return f"{state_abs}/trace/known/{file_name(path)}"


def _make_room(folder_abs: str) -> None:
    make_folder(os.path.dirname(folder_abs))
    make_folder(folder_abs)
    oldest = time.time() - _MAX_AGE_S
    for entry in os.scandir(folder_abs):
        try:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                remove_file(entry.path)
        except FileNotFoundError:
            continue  # removed by another process
