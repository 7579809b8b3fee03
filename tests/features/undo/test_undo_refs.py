"""Branches, the stash and HEAD: an undo gives back those that the undone change took away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo
from points_support import CONFIG, record, undo


@pytest.fixture
def begun(repo: Repo) -> Repo:
    """A repository whose state is recorded."""
    repo.config(CONFIG)
    repo.write("a", "1\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    record(repo)
    return repo


def test_a_deleted_branch_of_a_sha256_repository(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "sha256")
    repo.path.mkdir()
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")
    repo.write("a", "1\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.git("branch", "topic")
    record(repo)
    repo.git("branch", "-qD", "topic")
    record(repo, "s")
    undo(repo, "--last")
    assert repo.git("rev-parse", "topic") == repo.git("rev-parse", "main")


def test_a_branch_whose_name_is_not_utf8(begun: Repo) -> None:
    name = os.fsdecode(b"\xff\xe9")
    begun.git("checkout", "-qb", name)
    begun.write("a", "2\n")
    record(begun, "s")
    undo(begun, "--last", "--branch")
    assert begun.path.joinpath("a").read_text() == "1\n"
    assert begun.git("symbolic-ref", "--short", "HEAD") == "main"


def test_a_branch_that_somebody_else_has_moved_stays(begun: Repo) -> None:
    base = begun.git("rev-parse", "main")
    begun.git("branch", "other")
    record(begun)
    begun.git("commit", "-qam", "by the agent", "--allow-empty")
    record(begun, "s")
    begun.git("worktree", "add", "-q", "../linked", "other")
    begun.git("-C", "../linked", "commit", "-qm", "by a person", "--allow-empty")
    own = begun.git("rev-parse", "other")
    undo(begun, "--last", "--branch")
    assert begun.git("rev-parse", "main") == base
    assert begun.git("rev-parse", "other") == own


def test_a_branch_that_both_have_moved_stays(begun: Repo) -> None:
    begun.git("commit", "-qm", "by the agent", "--allow-empty")
    record(begun, "s")
    begun.git("commit", "-qm", "by a person", "--allow-empty")
    own = begun.git("rev-parse", "main")
    assert b"by a person" in undo(begun, "--last", "--branch").stdout
    assert begun.git("rev-parse", "main") == own


def test_a_branch_of_another_worktree_stays(begun: Repo) -> None:
    begun.git("worktree", "add", "-q", "../linked", "-b", "other")
    record(begun)
    begun.git("-C", "../linked", "commit", "-qm", "by the agent", "--allow-empty")
    record(begun, "s")
    own = begun.git("rev-parse", "other")
    assert b"linked" in undo(begun, "--last", "--branch").stdout
    assert begun.git("rev-parse", "other") == own


def test_what_somebody_else_has_deleted_stays_deleted(begun: Repo) -> None:
    begun.git("branch", "topic")
    begun.write("a", "2\n")
    begun.git("stash", "-q")
    record(begun)
    begun.write("a", "3\n")
    record(begun, "s")
    begun.git("branch", "-qD", "topic")
    begun.git("stash", "drop", "-q")
    undo(begun, "--last")
    assert begun.git("branch", "--list", "topic") == ""
    assert begun.git("stash", "list") == ""


def test_head_stays_where_somebody_else_has_gone(begun: Repo) -> None:
    begun.write("b", "1\n")
    record(begun, "s")
    begun.git("checkout", "-qb", "mine")
    undo(begun, "--last", "--branch")
    assert begun.git("symbolic-ref", "--short", "HEAD") == "mine"
    assert not begun.path.joinpath("b").exists()
