"""A rollback brings back exactly what there was, whatever an agent has done meanwhile."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from conftest import Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_hide_property import Change, Changes, apply
from worktree_state import files, index, where

from gitgates.core.errors import StateError
from gitgates.worktree import checkpoint
from gitgates.worktree.rollback import roll_back

COMMANDS = (
    ("git", "reset", "-q", "--hard"),
    ("git", "checkout", "-q", "-b", "other"),
    ("git", "checkout", "-q", "--detach"),
    ("git", "commit", "-qam", "by the agent", "--allow-empty"),
    ("git", "add", "-A"),
    ("git", "rm", "-rfq", "--cached", "."),
    ("git", "stash", "-q"),
    ("git", "clean", "-fdq"),
    ("git", "gc", "-q", "--prune=now"),
    ("git", "branch", "-D", "spare"),
    ("git", "commit", "-q", "--amend", "-m", "amended"),
    ("rm", "-f", ".git/index"),
    ("sh", "-c", "echo 'a' >> .gitignore"),
    ("sh", "-c", "rm -rf -- *"),
)
Acts = st.lists(st.one_of(Change, st.sampled_from(COMMANDS)), max_size=8)


def state(repo: Repo) -> tuple[object, ...]:
    """Return everything that a rollback brings back."""
    raw = (repo.path / ".git/index").read_bytes() if (repo.path / ".git/index").exists() else b""
    head = (repo.path / ".git/HEAD").read_bytes()
    branches = repo.git("for-each-ref", "refs/heads/main", "refs/heads/spare")
    # Last: it refreshes the index.
    return raw, head, branches, files(repo), index(repo), repo.git("status", "--porcelain=v2", "-z")


def act(repo: Repo, acts: list[tuple[str, ...]]) -> None:
    for one in acts:
        if one in COMMANDS:
            repo.ask(*one)
        else:
            apply(repo, [one])  # type: ignore[list-item]


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(committed=Changes, staged=Changes, unstaged=Changes, acts=Acts)
def test_whatever_happens_all_is_as_before(
    tmp_path: Path,
    committed: list[tuple[str, str, object]],
    staged: list[tuple[str, str, object]],
    unstaged: list[tuple[str, str, object]],
    acts: list[tuple[str, ...]],
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    try:
        repo = Repo.init(folder / "repo")
        repo.write(".gitattributes", "a text eol=crlf\nb ident\n")
        apply(repo, committed)
        repo.commit_all("first")
        repo.git("branch", "spare")
        apply(repo, staged)
        repo.ask("git", "add", "-A")
        apply(repo, unstaged)
        repo.git("status")
        before = state(repo)
        point = checkpoint.take(where(repo), "r1")
        act(repo, acts)
        roll_back(checkpoint.load(point.folder_abs), where(repo))
        assert state(repo) == before
        assert not checkpoint.compare(point, where(repo)).paths
    finally:
        shutil.rmtree(folder)


def test_what_was_ignored_is_nobodys_but_the_users(repo: Repo) -> None:
    repo.write(".git/info/exclude", ".env\nbuild/\n*.log\n")
    repo.write(".env", "secret\n")
    repo.write("build/out", "out\n")
    repo.write("logs/a.log", "log\n")
    repo.write("a", "a\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "first")
    before = state(repo)
    point = checkpoint.take(where(repo), "r1")
    repo.write(".git/info/exclude", "")
    repo.write("logs/new", "new\n")
    assert checkpoint.compare(point, where(repo)).paths == ("logs/new",)
    roll_back(checkpoint.load(point.folder_abs), where(repo))
    repo.write(".git/info/exclude", ".env\nbuild/\n*.log\n")
    assert state(repo) == before


def test_a_folder_that_became_a_link_is_a_folder_again(repo: Repo) -> None:
    repo.write("d/e/f", "f\n")
    repo.commit_all("first")
    repo.write("d/e/f", "mine\n")
    before = state(repo)
    point = checkpoint.take(where(repo), "r1")
    (repo.path / "d").rename(repo.path.parent / "moved")
    (repo.path / "d").symlink_to("../moved")
    found = checkpoint.compare(point, where(repo))
    assert (found.deleted, found.added) == (("d/e/f",), ("d",))
    roll_back(point, where(repo))
    assert state(repo) == before


def test_without_an_index_everything_is_still_tracked(repo: Repo) -> None:
    repo.write("a", "a\n")
    repo.write("b.log", "b\n")
    repo.commit_all("first")
    point = checkpoint.take(where(repo), "r1")
    (repo.path / ".git/index").unlink()
    assert checkpoint.compare(point, where(repo)).paths == ()
    repo.git("reset", "-q")
    repo.git("rm", "-q", "--cached", "b.log")
    repo.write(".gitignore", "*.log\n")
    assert checkpoint.compare(point, where(repo)).paths == (".gitignore", "b.log")


def test_files_come_back_where_a_branch_cannot(repo: Repo) -> None:
    repo.write("a", "a\n")
    repo.commit_all("first")
    repo.git("branch", "spare")
    before = state(repo)
    point = checkpoint.take(where(repo), "r1")
    repo.git("branch", "-D", "spare")
    repo.git("branch", "spare/more")
    repo.write("a", "other\n")
    with pytest.raises(StateError, match="refs/heads/spare"):
        roll_back(point, where(repo))
    assert (repo.path / "a").read_text() == "a\n"
    repo.git("branch", "-D", "spare/more")
    roll_back(point, where(repo))
    assert state(repo) == before


def test_half_a_checkpoint_is_none(repo: Repo) -> None:
    repo.write("a", "a\n")
    repo.commit_all("first")
    point = checkpoint.take(where(repo), "r1")
    os.unlink(f"{point.folder_abs}/checkpoint.json")  # the last that is written
    assert not list(checkpoint.left_behind(where(repo).state_abs))
    checkpoint.remove_unfinished(where(repo))
    assert not os.path.exists(point.folder_abs)
    assert repo.git("for-each-ref", checkpoint.REFS) == ""


def git_calls(repo: Repo, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often git is asked for a checkpoint and a rollback of deleted and new files."""
    tools, log = repo.path.parent / f"bin{count}", repo.path.parent / f"calls{count}"
    tools.mkdir()
    (tools / "git").write_text(f'#!/bin/sh\necho >> {log}\nexec {shutil.which("git")} "$@"\n')
    (tools / "git").chmod(0o755)
    for number in range(count):
        repo.write(f"d/{number}", f"{number}\n" * 20)
    repo.commit_all("many")
    repo.git("repack", "-adq")
    for number in range(count):
        repo.write(f"u/{number}", f"untracked {number}\n")
    repo.git("status")
    before = state(repo)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
        point = checkpoint.take(where(repo), "r1")
        shutil.rmtree(repo.path / "d")
        shutil.rmtree(repo.path / "u")
        for number in range(count):
            repo.write(f"n/{number}", "new\n")
        roll_back(point, where(repo))
    assert state(repo) == before
    checkpoint.drop(point, where(repo))
    return len(log.read_text())


def test_git_is_asked_once_for_all_files(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    few = git_calls(repo, 20, monkeypatch)
    assert git_calls(repo, 220, monkeypatch) == few


def test_an_object_that_git_has_lost_is_named_and_all_else_is_put_back(repo: Repo) -> None:
    repo.write("a", "a\n")
    repo.write("b", "b\n")
    repo.commit_all("first")
    lost = repo.git("rev-parse", "HEAD:a")
    point = checkpoint.take(where(repo), "r1")
    (repo.path / "a").unlink()
    (repo.path / "b").unlink()
    (repo.path / f".git/objects/{lost[:2]}/{lost[2:]}").unlink()
    with pytest.raises(StateError, match=f"`a`: git no longer has the object {lost}"):
        roll_back(point, where(repo))
    assert (repo.path / "b").read_text() == "b\n"
