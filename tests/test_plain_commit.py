"""A commit that the tests write themselves is the one that git would have made."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import plain_commit
import pytest
from conftest import SETTINGS, Repo

DATE = "1700000000 +0000"


def fill(repo: Repo) -> None:
    for name in ("a.py", "dir/b", "dir/deeper/c", "dir.d", "dir-x/y", "zz/very/deep/file", "ä ö"):
        repo.write(name, f"{name}\n")
    repo.write("x" * 200, b"\0\xff")
    repo.write(os.fsdecode(b"\xff"), "")
    repo.write("run").chmod(0o755)
    (repo.path / "link").symlink_to("dir/b")


def plain(repo: Repo, message: str, *, no_verify: bool = False) -> bool:
    config = repo.files[".git/config"]
    return plain_commit.commit(repo.path, message, config, SETTINGS, no_verify=no_verify)


def by_git(repo: Repo, message: str) -> None:
    repo.git("add", ".")
    repo.git("commit", "-qm", message)


def copied(repo: Repo) -> Repo:
    """Return the same, with the same times of files."""
    other = Repo(repo.path.with_name("other"))
    shutil.copytree(repo.path, other.path, symlinks=True)
    return other


def everything(repo: Repo) -> dict[str, bytes]:
    """Return what is in the git folder, but for times and what they are hashed into."""
    git = repo.path / ".git"
    files = {path.relative_to(git) for path in git.rglob("*") if path.is_file()}
    return {
        str(name): repo.ask("git", "cat-file", "-p", "".join(name.parts[1:])).stdout
        if name.parts[0] == "objects"
        else b""
        if name.name == "index"
        else (git / name).read_bytes()
        for name in sorted(files)
    }


def index(repo: Repo) -> list[str]:
    """Return what the index says of each file, but for where the file is on the disk."""
    lines = repo.git("ls-files", "--debug", "--stage").splitlines()
    return [line for line in lines if not line.startswith(("  ctime", "  mtime", "  dev"))]


def cached(repo: Repo) -> bytes:
    """Return what the index knows of trees."""
    return (repo.path / ".git/index").read_bytes().rpartition(b"TREE")[2][:-20]


@pytest.mark.parametrize("message", ["first", "first: one\n\nwhy\nelse"])
def test_it_is_what_git_makes(repo: Repo, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1.7e9)
    monkeypatch.setattr(time, "localtime", lambda: time.gmtime(0))
    fill(repo)
    other = copied(repo)
    assert plain(repo, message)
    monkeypatch.setenv("GIT_AUTHOR_DATE", DATE)
    monkeypatch.setenv("GIT_COMMITTER_DATE", DATE)
    by_git(other, message)
    for change in ("", "again"):
        if change:
            for one in (repo, other):
                one.write("dir/b", change)
                (one.path / "dir/deeper/c").unlink()
            monkeypatch.delenv("GIT_AUTHOR_DATE")
            monkeypatch.delenv("GIT_COMMITTER_DATE")
            assert plain(repo, change)
            monkeypatch.setenv("GIT_AUTHOR_DATE", DATE)
            monkeypatch.setenv("GIT_COMMITTER_DATE", DATE)
            by_git(other, change)
        assert repo.git("fsck", "--strict") == ""
        assert everything(repo) == everything(other)
        assert index(repo) == index(other)
        assert cached(repo) == cached(other)


def test_git_need_not_read_a_file_again(repo: Repo) -> None:
    fill(repo)
    assert plain(repo, "first")
    before = (repo.path / ".git/index").read_bytes()
    assert repo.git("status", "--porcelain") == ""
    assert repo.git("diff-index", "HEAD") == ""
    assert repo.git("update-index", "--refresh") == ""
    assert (repo.path / ".git/index").read_bytes() == before


def test_hooks_that_do_not_run(repo: Repo) -> None:
    fill(repo)
    repo.shim("pre-push")
    assert plain(repo, "first")
    repo.shim("pre-commit", "commit-msg")
    repo.write("new")
    assert not plain(repo, "second")
    assert plain(repo, "second", no_verify=True)
    assert repo.git("show", "--format=%s", "--name-only") == "second\n\nnew"
    repo.shim("post-commit")
    repo.write("newer")
    assert not plain(repo, "third", no_verify=True)


def _hook(repo: Repo) -> None:
    repo.shim("pre-commit")


def _ignored(repo: Repo) -> None:
    repo.write("dir/.gitignore", "c\n")


def _setting(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "input")


def _user_setting(repo: Repo) -> None:
    repo.git("config", "--global", "user.name", "Other")


def _excluded(repo: Repo) -> None:
    repo.write(".git/info/exclude", "c\n")


def _nested(repo: Repo) -> None:
    Repo.init(repo.path / "sub")


def _detached(repo: Repo) -> None:
    by_git(repo, "base")
    repo.git("checkout", "-q", "--detach")
    repo.write("new")


def _assumed(repo: Repo) -> None:
    by_git(repo, "base")
    repo.git("update-index", "--assume-unchanged", "a.py")
    repo.write("a.py", "new")


def _merging(repo: Repo) -> None:
    by_git(repo, "base")
    repo.write(".git/MERGE_HEAD", repo.head())


def _packed(repo: Repo) -> None:
    by_git(repo, "base")
    repo.git("pack-refs", "--all")
    repo.write("new")


def _unchanged(repo: Repo) -> None:
    by_git(repo, "base")


def _fifo(repo: Repo) -> None:
    os.mkfifo(repo.path / "fifo")


@pytest.mark.parametrize(
    "prepare",
    [
        *(_hook, _ignored, _setting, _user_setting, _excluded, _nested, _detached, _assumed),
        *(_merging, _packed, _unchanged, _fifo),
    ],
)
def test_what_is_special_is_left_to_git(repo: Repo, prepare: object) -> None:
    fill(repo)
    assert callable(prepare)
    prepare(repo)
    assert not plain(repo, "first")


@pytest.mark.parametrize("message", ["", " x", "x\n", "x\n\n\ny", "# x", "two\nlines"])
def test_a_message_that_git_may_edit_is_left_to_it(repo: Repo, message: str) -> None:
    fill(repo)
    assert not plain(repo, message)


def test_another_git_is_asked(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(repo)
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert not plain(repo, "first")
