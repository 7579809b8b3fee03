"""Real pushes: of each kind, the paths that gates get are what the remote does not have yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Repo
from test_githook import arm, change, seen


@pytest.fixture
def pushing(repo: Repo, out: Path) -> Repo:
    """A repository that records what its pushes to `origin` are about; main is there already."""
    arm(repo, "pre-push")
    repo.write("base", "x")
    repo.commit_all("base")
    repo.add_origin()
    assert seen(out) == ["base", "pyproject.toml"]
    return repo


def test_push_of_an_existing_branch(pushing: Repo, out: Path) -> None:
    change(pushing, "one")
    change(pushing, "two")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["one", "two"]


def test_push_of_a_new_branch_is_about_its_own_commits(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "feature")
    change(pushing, "feature-file")
    pushing.git("push", "-q", "origin", "feature")
    assert seen(out) == ["feature-file"]


def test_push_of_two_branches_is_about_both(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "b1")
    change(pushing, "f1")
    pushing.git("checkout", "-qb", "b2", "main")
    change(pushing, "f2")
    pushing.git("checkout", "-q", "main")
    pushing.git("push", "-q", "origin", "b1", "b2")
    assert seen(out) == ["f1", "f2"]


def test_forced_push(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "topic")
    change(pushing, "first")
    pushing.git("push", "-q", "origin", "topic")
    seen(out)
    pushing.git("reset", "-q", "--hard", "main")
    change(pushing, "other")
    pushing.git("push", "-qf", "origin", "topic")
    assert seen(out) == ["other"]


def test_forced_push_over_commits_that_are_not_here(pushing: Repo, out: Path) -> None:
    other = Repo(pushing.path.parent / "other")
    pushing.git("clone", "-q", "../origin.git", str(other.path))
    change(other, "unknown")
    other.git("push", "-q", "origin", "main")
    change(pushing, "mine")
    pushing.git("push", "-qf", "origin", "main")
    assert seen(out) == ["mine"]


def test_push_of_a_tag(pushing: Repo, out: Path) -> None:
    change(pushing, "released")
    pushing.git("tag", "-am", "v1", "v1")
    pushing.git("push", "-q", "origin", "v1")
    assert seen(out) == ["released"]


def test_push_of_a_tag_on_a_blob_is_about_no_path(pushing: Repo, out: Path) -> None:
    pushing.git("tag", "blob", "HEAD:base")
    pushing.git("push", "-q", "origin", "blob")
    assert (seen(out), seen(out, "always")) == (None, ["ran", "ran"])


def test_deleting_a_branch_runs_gates_that_take_no_paths(pushing: Repo, out: Path) -> None:
    pushing.git("push", "-q", "origin", "main:doomed")
    seen(out)
    seen(out, "always")
    pushing.git("push", "-q", "origin", ":doomed")
    assert (seen(out), seen(out, "always")) == (None, ["ran"])


def test_nothing_to_push_runs_nothing(pushing: Repo, out: Path) -> None:
    seen(out, "always")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out, "always") is None


def test_a_file_that_the_push_takes_away_again_is_no_path(pushing: Repo, out: Path) -> None:
    change(pushing, "brief")
    pushing.git("rm", "-q", "brief")
    pushing.git("commit", "-qm", "away")
    change(pushing, "stays")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["stays"]


def test_a_merge_is_pushed_with_what_it_resolved(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "side")
    change(pushing, "base", "side")
    pushing.git("checkout", "-q", "main")
    change(pushing, "base", "main")
    pushing.ask("git", "merge", "side")
    pushing.write("base", "resolved")
    pushing.git("commit", "-qam", "merge")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["base"]
