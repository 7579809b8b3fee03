"""What git lists of a working tree, asked once, is what its single commands say."""

from __future__ import annotations

import os

import pytest
from conftest import Repo

from gitgates.git import repo as repository
from gitgates.git.paths import list_changed, list_others

FILES = ("changed", "conflict", "gone", "told", "sparse", "sparse-gone", "same", "staged")


def where(repo: Repo) -> repository.Repo:
    return repository.find_repo(str(repo.path), dict(os.environ))


@pytest.fixture
def odd(repo: Repo) -> Repo:
    """Return a repository with a path of every kind."""
    for name in FILES:
        repo.write(name, "first\n")
    repo.write(".gitignore", "ignored\n")
    repo.commit_all("first")
    repo.git("update-index", "--assume-unchanged", "told")
    repo.git("update-index", "--skip-worktree", "sparse", "sparse-gone")
    repo.write("announced", "new\n")
    repo.git("add", "-N", "announced")
    for name in ("changed", "staged", "told", "sparse"):
        repo.write(name, "second\n")
    repo.git("add", "staged")
    for name in ("gone", "sparse-gone"):
        (repo.path / name).unlink()
    os.utime(repo.path / "same", (1, 1))
    blob = repo.git("rev-parse", "HEAD:conflict")
    stages = "".join(f"100644 {blob} {number}\tconflict\n" for number in (1, 2, 3))
    repo.git("rm", "-q", "--cached", "conflict")
    repo.ask("git", "update-index", "--index-info", stdin=stages.encode())
    for name in ("sub", "own"):
        Repo.init(repo.path / name).git("commit", "-q", "--allow-empty", "-m", name)
    repo.git("-c", "advice.addEmbeddedRepo=false", "add", "sub")
    repo.write("sub/new", "in the submodule\n")
    for name in ("ignored", "two words", "H 100644 0 0\ttab", "? mark", "caf\udce9", "line\nend"):
        repo.write(name, "untracked\n")
    return repo


def test_others_are_what_is_neither_tracked_nor_ignored(odd: Repo) -> None:
    others = ["? mark", "H 100644 0 0\ttab", "caf\udce9", "line\nend", "own/", "two words"]
    assert list_others(where(odd)) == others


def test_changed_is_what_differs_from_head(odd: Repo) -> None:
    found = ["announced", "changed", "conflict", "gone", "staged", "sub"]
    for showing in ("true", "false"):
        for key in ("branch", "showStash", "relativePaths"):
            odd.git("config", f"status.{key}", showing)
        odd.git("config", "diff.ignoreSubmodules", "all")
        assert sorted(list_changed(where(odd))) == found
    ask = ("diff", "--name-only", "--ignore-submodules=none", "HEAD")
    said = odd.git(*ask).split("\n") + odd.git(*ask, "--cached").split("\n")
    assert sorted(set(said)) == found


def test_before_the_first_commit_everything_staged_is_changed(repo: Repo) -> None:
    repo.write("new", "x\n")
    repo.write("untracked", "x\n")
    repo.git("add", "new")
    assert list_changed(where(repo)) == ["new"]
    assert list_others(where(repo)) == ["untracked"]


@pytest.mark.parametrize("name", ["sha1", "sha256"])
def test_object_format(repo: Repo, name: str) -> None:
    path = repo.path.parent / name
    repo.git("init", "-q", f"--object-format={name}", str(path))
    config = path / ".git/config"
    config.write_text(config.read_text().replace("sha256", '"sha256" ; by hand'))
    assert where(Repo(path)).object_format == name
