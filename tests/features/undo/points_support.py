"""What the tests of save points share: a repository whose changes are recorded, and undone."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from gitgates.files import points
from gitgates.files.look import Limits
from gitgates.files.memory import Memory
from gitgates.files.points import PERSON, SESSION, Author, Facts
from gitgates.git.object_store import read_blobs
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from _pytest.mark import MarkDecorator, ParameterSet
    from conftest import Repo

    from gitgates.git.repo import Repo as FoundRepo

MOST = 1000  # bytes of a file that is saved
LIMITS = Limits(max_file=MOST, max_ignored=1 << 30)
CONFIG = f"[undo]\nmax_file = {MOST}\n"


def seeds(here: int, thorough: int, nightly: int) -> list[ParameterSet]:
    """Return the first numbers for every run, more for `make thorough`, the rest for the night."""
    marks: list[list[MarkDecorator]] = [[]] * here
    marks += [[pytest.mark.thorough]] * thorough + [[pytest.mark.nightly]] * nightly
    return [pytest.param(seed, marks=mark) for seed, mark in enumerate(marks)]


def found(repo: Repo) -> FoundRepo:
    """Return the repository as our code finds it."""
    return find_repo(str(repo.path), dict(os.environ))


def record(repo: Repo, session: str = "", limits: Limits = LIMITS) -> int:
    """Record what has changed, by a session or by a person; return the id of the point, or 0."""
    author = Author(SESSION, session) if session else Author(PERSON)
    point = points.record(found(repo), author, Facts(), limits)
    return point.number if point else 0


def saved(repo: Repo) -> dict[str, bytes]:
    """Return the files of the last point: path → bytes."""
    ours = found(repo)
    point = points.latest(ours)
    assert point
    git = Memory(ours).reading
    entries = git.names("ls-tree", "-r", "-z", "--full-tree", point.tree)
    pairs = [entry.partition("\t") for entry in entries]
    blobs = {path: meta.split(" ")[2] for meta, _, path in pairs}
    contents = read_blobs(git, blobs.values())
    return {path: contents[blob] for path, blob in blobs.items()}


def undo(repo: Repo, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run `gitgates undo` as a person; fail the test where it fails."""
    done = repo.gitgates("undo", *args)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return path → mode and bytes of all files and links, the git folder aside."""
    result: dict[str, tuple[int, bytes]] = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name != b".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            if name == b".git":
                continue
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                content = os.readlink(path)
            elif os.access(path, os.R_OK):
                with open(path, "rb") as file:
                    content = file.read()
            else:
                content = b""
            result[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = (mode, content)
    return result
