"""A session that is watched from its first point on: what has it itself changed?"""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Repo
from worktree_state import where

from gitgates.core.agent_types import FileDifference
from gitgates.files.changes import History, trees_of
from gitgates.files.points import SESSION, Author, Point, latest, points_since, record
from gitgates.git.diff import Trees, diff_text, file_differences, patch_id

HOUR_S = 3600
_AGENT = Author(SESSION, "s")


def text(word: str, lines: int) -> str:
    """Return so many lines, each its own."""
    return "".join(f"{word} = {number}\n" for number in range(lines))


def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is committed from now on look an hour old."""
    before = f"@{int(time.time()) - HOUR_S} +0000"
    monkeypatch.setenv("GIT_COMMITTER_DATE", before)
    monkeypatch.setenv("GIT_AUTHOR_DATE", before)


def right_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    monkeypatch.delenv("GIT_AUTHOR_DATE")


class Watched:
    """A repository, and a point of it: what has changed since is a session's."""

    def __init__(self, repo: Repo, start: Point | None = None) -> None:
        self.repo = repo
        self.start = start or record(where(repo), Author()) or latest(where(repo))

    def trees(self) -> Trees:
        repo = where(self.repo)
        record(repo, _AGENT)
        assert self.start
        since = points_since(repo, self.start.time_s)
        history = History(
            *(repo, since, lambda point: point.author == _AGENT),
            began_s=self.start.time_s,
            ignored=False,
        )
        return Trees(repo, *trees_of(repo, history.changes()), self.start.time_s)

    def found(self) -> dict[str, FileDifference]:
        return {one.path: one for one in file_differences(self.trees())}

    def lines(self) -> dict[str, tuple[int, int]]:
        """Return path → lines added and removed, of what the session itself has changed."""
        return {path: (one.added, one.removed) for path, one in self.found().items()}

    def patch_id(self) -> str:
        return patch_id(self.trees())

    def diff(self, *paths: str) -> str:
        return diff_text(self.trees(), paths).decode("utf-8", "surrogateescape")


_PREPARED: dict[str, Watched] = {}


def copy_of(make: Callable[[Repo], None], factory: pytest.TempPathFactory, path: Path) -> Watched:
    """Return a repository, with its origin, that was made and watched once: git takes longer."""
    name = f"{make.__module__}.{make.__qualname__}"
    if name not in _PREPARED:
        repo = Repo.init(factory.mktemp("prepared") / "repo")
        make(repo)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("XDG_STATE_HOME", "none")  # so the memory of files is in the repository
            _PREPARED[name] = Watched(repo)
    prepared = _PREPARED[name]
    shutil.copytree(prepared.repo.path.parent, path, symlinks=True, dirs_exist_ok=True)
    (path / "repo/.git/gitgates/files.at").unlink()
    return Watched(Repo(path / "repo"), prepared.start)


class Colleague:
    """Somebody else who works with the same origin. The name is the same, which must not matter."""

    def __init__(self, repo: Repo, path: Path) -> None:
        self._origin = str(repo.path.parent / "origin.git")
        self._path = path
        self._env = {"GIT_DIR": self._origin}
        self._repo = repo

    @functools.cached_property
    def clone(self) -> Repo:
        """A clone, for what is more than a push."""
        self._repo.git("clone", "-q", self._origin, str(self._path))
        return Repo(self._path)

    def push(self, name: str, content: str, branch: str = "main") -> None:
        """Commit a file on top of what is there, a while ago, and push it."""
        stream = (
            f"commit refs/heads/{branch}\n"
            f"committer Test <test@example.invalid> {int(time.time()) - 3600} +0000\n"
            f"{_data(f'theirs: {name}')}from refs/heads/{branch}^0\n"
            f"M 100644 inline {name}\n{_data(content)}"
        )
        done = self._repo.ask(
            "git", "fast-import", "--quiet", env=self._env, stdin=stream.encode("utf-8")
        )
        assert done.returncode == 0, done.stderr


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
