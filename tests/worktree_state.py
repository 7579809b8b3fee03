"""Everything about a working tree and its index that a run must leave as it was."""

from __future__ import annotations

import os
import stat

from conftest import Repo

from gitgates.git.repo import Repo as Repository
from gitgates.git.repo import find_repo

# path → mode, content or target, modification time
Files = dict[str, tuple[int, bytes, int]]


def where(repo: Repo) -> Repository:
    """Return a repository as our own code has it."""
    return find_repo(str(repo.path), dict(os.environ))


def files(repo: Repo) -> Files:
    """Return every file, link and folder but the top-level .git."""
    found: Files = {}
    for folder, folders, names in os.walk(repo.path):
        if ".git" in folders and folder == str(repo.path):
            folders.remove(".git")
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            if path == str(repo.path / ".git"):
                continue  # the file of a linked worktree
            found[os.path.relpath(path, repo.path)] = _one(path)
    return found


def _one(path: str) -> tuple[int, bytes, int]:
    state = os.lstat(path)
    if stat.S_ISLNK(state.st_mode):
        return state.st_mode, os.fsencode(os.readlink(path)), state.st_mtime_ns
    if stat.S_ISDIR(state.st_mode):
        return state.st_mode, b"", 0
    with open(path, "rb") as file:
        return state.st_mode, file.read(), state.st_mtime_ns


def index(repo: Repo) -> str:
    """Return every entry of the index, with its flags."""
    return repo.git("ls-files", "--stage", "-v", "-z")


def whole(repo: Repo) -> tuple[Files, str, str, str]:
    """Return full log: files, index, what git says of both, and the stash."""
    return (
        files(repo),
        index(repo),
        repo.git("status", "--porcelain=v2", "-z"),
        repo.git("stash", "list"),
    )
