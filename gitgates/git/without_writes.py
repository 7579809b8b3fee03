"""Take writes of gates out of a tree: what a session has not written itself is not its change.

A write is known by the content of a file before and after it. Where the session has written a file
both before that and since, all of it counts as the session's.
"""

from __future__ import annotations

import os

from gitgates.git.authorship import changes_between, with_files
from gitgates.git.object_store import reading_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.agent_types import Write
    from gitgates.git.repo import Repo

_BLOBS = (b"100644", b"100755")


def without_writes(repo: Repo, start: str, now: str, writes: Iterable[Write]) -> tuple[str, str]:
    """Return the trees `start` and `now` without writes that came between them, in order.

    What a write has made of a file as it was in `start` is in both; of what it has made of a file
    last, neither has anything.

    Raises: GitError where a tree does not exist; OSError where nothing can be stored.
    """
    by_path: dict[bytes, list[Write]] = {}
    for write in writes:
        by_path.setdefault(os.fsencode(write.path), []).append(write)
    old_files, files = dict[bytes, tuple[bytes, bytes]](), dict[bytes, tuple[bytes, bytes]]()
    changes = changes_between(reading_git(repo), start, now) if by_path else ()
    for path, old_file, file in changes:
        old, content, last = _id(old_file), _id(file), 0
        for number, write in enumerate(by_path.get(path, ()), 1):
            if old in (write.before, write.after):
                old, last = write.after, number
        for write in reversed(by_path.get(path, [])[last:]):
            if content == write.after != old:
                content = write.before
        if old != _id(old_file):
            old_files[path] = _file(old, old_file, file)
        if content != _id(file):
            files[path] = _file(content, file, old_file)
    return (
        with_files(repo, start, old_files) if old_files else start,
        with_files(repo, now, files) if files else now,
    )


def _file(blob: str, *files: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return mode and id of a content, as the first of some files that is one; "": no file."""
    modes = [mode for mode, _id in files if mode in _BLOBS]
    removal = b"000000", b"0" * len(files[0][1])
    return ([*modes, _BLOBS[0]][0], blob.encode()) if blob else removal


def _id(file: tuple[bytes, bytes]) -> str:
    return file[1].decode() if file[0] in _BLOBS else ""
