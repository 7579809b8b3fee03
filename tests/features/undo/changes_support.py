"""What the tests of save points share: who changes a worktree, and all that it holds."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from gitgates.features.undo.points import AGENT, Author, SavePoint, record
from gitgates.features.undo.settings import UndoSettings
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

SETTINGS = UndoSettings(
    enabled=True, keep_s=14 * 86400.0, max_size_bytes=1 << 31, max_file_bytes=1 << 20, include=()
)


def by_person(repo: Repo, settings: UndoSettings = SETTINGS) -> SavePoint | None:
    """Record what has changed as somebody's, which the first time is where all begins."""
    return record(find_repo(str(repo.path), dict(os.environ)), settings, Author())


def by_agent(repo: Repo, settings: UndoSettings = SETTINGS, **author: Any) -> SavePoint | None:
    """Record what has changed as an agent's."""
    known = {"by": AGENT, "session": "s1", "prompt": 1, "tool": "Bash", "what": "a command"}
    whole = Author(**{**known, **author})
    return record(find_repo(str(repo.path), dict(os.environ)), settings, whole)


def files_of(root: Path) -> dict[bytes, tuple[int, bytes]]:
    """Return path → mode and content of all that is in a worktree, empty folders included."""
    found: dict[bytes, tuple[int, bytes]] = {}
    top = os.fsencode(root)
    for folder, folders, names in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name != b".git"]
        for name in [*names, *folders]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[os.path.relpath(path, top)] = mode, os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = mode, file.read()
            elif not os.listdir(path):
                found[os.path.relpath(path, top)] = stat.S_IFDIR, b""
    return found


def undo(repo: Repo, *args: str, verb: str = "undo") -> str:
    """Run `gitgates undo`, or `redo`; return what it printed. It may not fail."""
    done = repo.gitgates(verb, *args)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape")
