"""What the tests of save points share: who changes a worktree, and all that it holds."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from gitgates.files.points import PERSON, SESSION, Author, Facts, record
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

    from gitgates.files.points import Point


def by_person(repo: Repo) -> Point | None:
    """Record what has changed as somebody's, which the first time is where all begins."""
    point = record(find_repo(str(repo.path), dict(os.environ)), Author(PERSON))
    return point if point and point.parent else None


def by_agent(repo: Repo, session: str = "s1", agent: str = "", **facts: Any) -> Point | None:
    """Record what has changed as an agent's."""
    known = {"prompt": 1, "tool": "Bash", "what": "a command"}
    author = Author(SESSION, session, agent)
    found = find_repo(str(repo.path), dict(os.environ))
    return record(found, author, Facts(**{**known, **facts}))


def files_of(root: Path) -> dict[bytes, tuple[int, bytes]]:
    """Return path → mode and content of all files and links in a worktree."""
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
    return found


def undo(repo: Repo, *args: str, verb: str = "undo") -> str:
    """Run `gitgates undo`, or `redo`; return what it printed. It may not fail."""
    done = repo.gitgates(verb, *args)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape")
