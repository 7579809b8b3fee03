"""What a session itself has changed, whatever git commands went on in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo
from span_support import Colleague, Watched, copy_of, long_ago, right_now, text

pytestmark = pytest.mark.slow

OWN = {"own.py": (20, 0)}
THEIRS = text("theirs", 500)


def fill(repo: Repo) -> None:
    repo.write("base.py", text("base", 60))
    repo.write("shared.py", text("shared", 30))
    repo.commit_all("first")
    repo.git("checkout", "-qb", "other")
    repo.write("other.py", THEIRS)
    repo.commit_all("other")
    repo.git("checkout", "-q", "main")
    repo.add_origin()


@pytest.fixture
def watched(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    """A repository with an hour's history, and a branch `other` that has gone on."""
    long_ago(monkeypatch)
    watched = copy_of(fill, tmp_path_factory, tmp_path)
    right_now(monkeypatch)
    return watched


@pytest.fixture
def filled(watched: Watched) -> Repo:
    """The repository alone, to be watched later."""
    return watched.repo


@pytest.fixture
def colleague(watched: Watched, tmp_path: Path) -> Colleague:
    return Colleague(watched.repo, tmp_path / "colleague")


def work(repo: Repo, name: str = "own.py", *, commit: bool = True) -> None:
    """Do what a session does: twenty lines."""
    repo.write(name, text(name.partition(".")[0], 20))
    if commit:
        repo.commit_all(f"own: {name}")


def test_nothing(watched: Watched) -> None:
    assert watched.lines() == {}
    assert watched.patch_id() == ""
    assert watched.diff("base.py") == ""


def test_not_committed_staged_and_untracked(watched: Watched) -> None:
    repo = watched.repo
    repo.write("base.py", text("base", 50))
    repo.write("staged.py", "x\n")
    repo.git("add", "staged.py")
    repo.write("untracked.py", "x\n")
    assert watched.lines() == {"base.py": (0, 10), "staged.py": (1, 0), "untracked.py": (1, 0)}


def test_what_was_dirty_before_is_not_counted(filled: Repo) -> None:
    filled.write("base.py", text("base", 10))
    filled.write("before.py", text("before", 100))
    watched = Watched(filled)
    work(filled)
    assert watched.lines() == OWN


def test_committed(watched: Watched) -> None:
    work(watched.repo)
    assert watched.lines() == OWN


def test_amended(watched: Watched) -> None:
    work(watched.repo)
    watched.repo.write("own.py", text("own", 25))
    watched.repo.git("commit", "-qa", "--amend", "-m", "Fast-forward: better")
    assert watched.lines() == {"own.py": (25, 0)}


def test_an_amended_commit_of_before(watched: Watched) -> None:
    work(watched.repo, commit=False)
    watched.repo.git("add", ".")
    watched.repo.git("commit", "-q", "--amend", "--no-edit")
    assert watched.lines() == OWN


def test_squashed(watched: Watched) -> None:
    work(watched.repo)
    work(watched.repo, "more.py")
    watched.repo.git("reset", "-q", "--soft", "HEAD~2")
    watched.repo.git("commit", "-qm", "both")
    assert watched.lines() == {**OWN, "more.py": (20, 0)}


def test_reverted(watched: Watched) -> None:
    work(watched.repo)
    watched.repo.git("revert", "--no-edit", "HEAD")
    assert watched.lines() == {}


def test_a_revert_of_what_was_there_is_own(watched: Watched) -> None:
    watched.repo.git("rm", "-q", "shared.py")
    watched.repo.git("commit", "-qm", "away")
    assert watched.lines() == {"shared.py": (0, 30)}
    watched.repo.git("revert", "--no-edit", "HEAD")
    assert watched.lines() == {}


def test_cherry_picked(watched: Watched) -> None:
    watched.repo.git("cherry-pick", "other")
    assert watched.lines() == {}


def test_stashed_and_back(watched: Watched) -> None:
    work(watched.repo, commit=False)
    watched.repo.git("stash", "-q", "-u")
    assert watched.lines() == {}
    watched.repo.git("stash", "pop", "-q")
    assert watched.lines() == OWN


@pytest.mark.samples(1)
@pytest.mark.parametrize("how", [("--ff-only",), ("--no-rebase",), ("--rebase",)])
def test_pulled_with_nothing_of_its_own(
    watched: Watched, colleague: Colleague, how: tuple[str, ...]
) -> None:
    colleague.push("theirs.py", THEIRS)
    watched.repo.git("pull", "-q", *how, "origin", "main")
    assert watched.lines() == {}
    assert watched.patch_id() == ""


@pytest.mark.samples(1)
@pytest.mark.parametrize("how", ["--no-rebase", "--rebase"])
def test_pulled_on_top_of_its_own(watched: Watched, colleague: Colleague, how: str) -> None:
    work(watched.repo)
    colleague.push("theirs.py", THEIRS)
    colleague.push("base.py", text("base", 60) + text("theirs", 40))
    watched.repo.git("pull", "-q", "--no-edit", how, "origin", "main")
    work(watched.repo, "more.py", commit=False)
    assert watched.lines() == {**OWN, "more.py": (20, 0)}


def test_pulled_with_dirty_files_in_the_way(watched: Watched, colleague: Colleague) -> None:
    watched.repo.write("base.py", text("own", 3) + text("base", 60))
    colleague.push("base.py", text("base", 60) + text("theirs", 40))
    watched.repo.git("pull", "-q", "--rebase", "--autostash", "origin", "main")
    assert watched.lines() == {"base.py": (43, 0)}  # both have changed it: all of it counts


def test_a_file_that_both_have_changed_counts(watched: Watched, colleague: Colleague) -> None:
    watched.repo.write("base.py", text("own", 3) + text("base", 60))
    watched.repo.commit_all("own")
    colleague.push("base.py", text("base", 60) + text("theirs", 40))
    colleague.push("theirs.py", THEIRS)
    watched.repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert watched.lines() == {"base.py": (43, 0)}


def test_back_before_commits_of_others(watched: Watched) -> None:
    watched.repo.git("checkout", "-q", "-B", "main", "other")
    later = Watched(watched.repo)
    watched.repo.git("reset", "-q", "--hard", "HEAD~1")
    assert later.lines() == {}


def test_rebased_onto_an_upstream_that_moved(watched: Watched, colleague: Colleague) -> None:
    work(watched.repo)
    work(watched.repo, "more.py")
    colleague.push("theirs.py", THEIRS)
    watched.repo.git("fetch", "-q", "origin")
    watched.repo.git("rebase", "-q", "origin/main")
    assert watched.lines() == {**OWN, "more.py": (20, 0)}


def test_rebased_with_commits_of_before(
    filled: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago(monkeypatch)
    work(filled, "yesterday.py")
    right_now(monkeypatch)
    watched = Watched(filled)
    work(filled)
    Colleague(filled, tmp_path / "colleague").push("theirs.py", THEIRS)
    filled.git("fetch", "-q", "origin")
    filled.git("rebase", "-q", "origin/main")
    assert watched.lines() == OWN


def test_in_the_middle_of_a_rebase(watched: Watched, colleague: Colleague) -> None:
    work(watched.repo)
    colleague.push("theirs.py", THEIRS)
    watched.repo.git("fetch", "-q", "origin")
    failed = watched.repo.ask("git", "rebase", "-q", "--exec", "false", "origin/main")
    assert failed.returncode
    assert watched.lines() == OWN


def test_merged(watched: Watched) -> None:
    work(watched.repo)
    watched.repo.git("merge", "-q", "--no-edit", "other")
    assert watched.lines() == OWN


def test_merged_but_not_committed(watched: Watched) -> None:
    work(watched.repo)
    watched.repo.git("merge", "-q", "--no-commit", "other")
    assert watched.lines() == OWN


def test_merged_with_a_conflict_that_the_session_resolves(
    watched: Watched, colleague: Colleague
) -> None:
    watched.repo.write("shared.py", text("shared", 29) + "own\n")
    watched.repo.commit_all("own")
    colleague.push("shared.py", text("shared", 29) + "theirs\n" + text("more", 400))
    watched.repo.git("fetch", "-q", "origin")
    assert watched.repo.ask("git", "merge", "-q", "origin/main").returncode
    watched.repo.write("shared.py", text("shared", 29) + "both\n" + text("more", 400))
    watched.repo.commit_all("resolved")
    assert watched.lines() == {"shared.py": (401, 1)}  # both have changed it


def test_what_a_merge_sneaks_in_is_own(watched: Watched) -> None:
    watched.repo.git("merge", "-q", "--no-commit", "other")
    work(watched.repo, commit=False)
    watched.repo.git("add", ".")
    watched.repo.git("commit", "-qm", "merge")
    assert watched.lines() == OWN


@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
def test_on_a_new_branch_that_is_merged(watched: Watched, how: str) -> None:
    watched.repo.git("checkout", "-qb", "feature")
    work(watched.repo)
    watched.repo.git("checkout", "-q", "main")
    watched.repo.git("merge", "-q", "--no-edit", how, "feature")
    watched.repo.git("branch", "-qd", "feature")
    assert watched.lines() == OWN


def test_squash_merged_from_a_branch(watched: Watched) -> None:
    watched.repo.git("checkout", "-qb", "feature")
    work(watched.repo)
    watched.repo.git("checkout", "-q", "main")
    watched.repo.git("merge", "-q", "--squash", "feature")
    watched.repo.git("commit", "-qm", "squashed")
    assert watched.lines() == OWN


def test_another_branch_and_back(watched: Watched) -> None:
    watched.repo.git("checkout", "-q", "other")
    assert watched.lines() == {}
    watched.repo.git("checkout", "-q", "main")
    assert watched.lines() == {}


def test_back_on_an_older_commit(watched: Watched) -> None:
    work(watched.repo)
    later = Watched(watched.repo)
    watched.repo.git("checkout", "-q", "HEAD~1")
    assert later.lines() == {}


def test_work_on_another_branch(watched: Watched) -> None:
    watched.repo.git("checkout", "-q", "other")
    work(watched.repo)
    work(watched.repo, "more.py", commit=False)
    assert watched.lines() == {**OWN, "more.py": (20, 0)}


def test_what_was_dirty_is_carried_to_another_branch(filled: Repo) -> None:
    filled.write("base.py", text("base", 10))
    filled.write("before.py", text("before", 100))
    watched = Watched(filled)
    filled.git("checkout", "-q", "other")
    work(filled, commit=False)
    assert watched.lines() == OWN


def test_a_branch_that_was_left_again_is_not_forgotten(watched: Watched) -> None:
    watched.repo.git("checkout", "-qb", "feature")
    work(watched.repo)
    assert watched.lines() == OWN
    watched.repo.git("checkout", "-q", "main")
    assert watched.lines() == OWN
    watched.repo.git("checkout", "-q", "other")
    assert watched.lines() == OWN
    watched.repo.git("branch", "-qD", "feature")
    assert watched.lines() == {}


def test_a_branch_that_was_left_after_work_on_the_first_one(filled: Repo) -> None:
    filled.git("checkout", "-q", "other")
    watched = Watched(filled)
    work(filled)
    assert watched.lines() == OWN
    filled.git("checkout", "-q", "main")
    assert watched.lines() == OWN


def test_reset_to_an_upstream_that_moved(watched: Watched, colleague: Colleague) -> None:
    colleague.push("theirs.py", THEIRS)
    watched.repo.git("fetch", "-q", "origin")
    watched.repo.git("reset", "-q", "--hard", "origin/main")
    assert watched.lines() == {}
    work(watched.repo, commit=False)
    assert watched.lines() == OWN


def test_a_colleague_has_built_on_it(watched: Watched, colleague: Colleague) -> None:
    work(watched.repo)
    watched.repo.git("push", "-q", "origin", "main")
    assert watched.lines() == OWN
    colleague.push("theirs.py", THEIRS)
    colleague.push("base.py", text("base", 60) + text("theirs", 40))
    watched.repo.git("pull", "-q", "--ff-only", "origin", "main")
    assert watched.lines() == OWN


def test_a_colleague_has_merged_it(watched: Watched, colleague: Colleague) -> None:
    watched.repo.git("checkout", "-qb", "feature")
    work(watched.repo)
    watched.repo.git("push", "-q", "origin", "feature")
    colleague.push("theirs.py", THEIRS)
    colleague.clone.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "feature")
    colleague.clone.git("push", "-q", "origin", "main")
    watched.repo.git("checkout", "-q", "main")
    watched.repo.git("pull", "-q", "--ff-only", "origin", "main")
    assert watched.lines() == OWN


@pytest.mark.samples(1)
@pytest.mark.parametrize("keeps", [True, False])
def test_a_colleague_has_squashed_it(
    watched: Watched, colleague: Colleague, *, keeps: bool
) -> None:
    repo = watched.repo
    repo.git("checkout", "-qb", "feature")
    work(repo)
    work(repo, "more.py")
    repo.git("push", "-q", "origin", "feature")
    before = watched.patch_id()
    colleague.push("theirs.py", THEIRS)
    colleague.clone.git("fetch", "-q", "origin", "feature")
    colleague.clone.git("merge", "-q", "--squash", "FETCH_HEAD")
    colleague.clone.git("commit", "-qm", "squashed")
    colleague.clone.git("push", "-q", "origin", "main")
    repo.git("checkout", "-q", "main")
    repo.git("pull", "-q", "--ff-only", "origin", "main")
    if not keeps:
        repo.git("branch", "-qD", "feature")
    assert watched.lines() == {**OWN, "more.py": (20, 0)}
    assert watched.patch_id() == before


def test_a_program_that_makes_many_commits_with_one_move(watched: Watched) -> None:
    repo = watched.repo
    repo.git("checkout", "-q", "--detach")
    tip = repo.head()
    for name in ("own.py", "more.py"):
        work(repo, name, commit=False)
        repo.git("add", ".")
        tip = repo.git("commit-tree", "-p", tip, "-m", name, repo.git("write-tree"))
    repo.git("update-ref", "-m", "restack", "HEAD", tip)
    assert watched.lines() == {**OWN, "more.py": (20, 0)}


def test_a_commit_that_says_it_is_old(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    work(watched.repo, commit=False)
    assert watched.lines() == OWN
    long_ago(monkeypatch)
    watched.repo.commit_all("own")
    assert watched.lines() == OWN


def test_own_commits_of_before_that_are_merged_in_count_as_others(watched: Watched) -> None:
    # `other` was committed here, by the same person, an hour ago.
    watched.repo.git("merge", "-q", "--no-ff", "--no-edit", "other")
    assert watched.lines() == {}


@pytest.mark.samples(1)
@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
@pytest.mark.parametrize("gone", [False, True])
def test_what_is_merged_from_a_worktree_made_since_is_own(
    watched: Watched, tmp_path: Path, how: str, *, gone: bool
) -> None:
    repo = watched.repo
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    work(Repo(tmp_path / "side"))
    assert watched.lines() == {}  # it counts when it comes
    repo.git("merge", "-q", how, "--no-edit", "side")
    if gone:
        repo.git("worktree", "remove", str(tmp_path / "side"))
        repo.git("branch", "-qD", "side")
    assert watched.lines() == OWN


def test_what_is_merged_from_a_worktree_that_was_there_is_asked_for(
    filled: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago(monkeypatch)
    filled.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    right_now(monkeypatch)
    watched = Watched(filled)
    work(Repo(tmp_path / "side"))
    filled.git("merge", "-q", "--no-ff", "--no-edit", "side")
    assert watched.lines() == OWN  # nothing tells whose they are


def test_in_a_linked_worktree(filled: Repo, tmp_path: Path) -> None:
    filled.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Repo(tmp_path / "side")
    watched = Watched(side)
    work(side)
    side.git("merge", "-q", "--no-edit", "other")
    assert watched.lines() == OWN


def test_the_first_commit_of_all(repo: Repo) -> None:
    watched = Watched(repo)
    work(repo)
    assert watched.start
    assert watched.start.head == ""
    assert watched.lines() == OWN


def test_in_a_shallow_clone(watched: Watched, colleague: Colleague, tmp_path: Path) -> None:
    colleague.push("theirs.py", THEIRS)
    origin = f"file://{watched.repo.path.parent}/origin.git"
    watched.repo.git("clone", "-q", "--depth=1", origin, str(tmp_path / "shallow"))
    shallow = Repo(tmp_path / "shallow")
    in_shallow = Watched(shallow)
    colleague.push("later.py", THEIRS)
    work(shallow)
    shallow.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert in_shallow.lines() == OWN


def test_without_a_log_the_time_and_the_remote_tell(watched: Watched, colleague: Colleague) -> None:
    colleague.push("theirs.py", THEIRS)
    work(watched.repo)
    watched.repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    (watched.repo.path / ".git/logs/HEAD").unlink()
    assert watched.lines() == OWN


def test_what_others_have_added_and_removed(watched: Watched, colleague: Colleague) -> None:
    work(watched.repo)
    colleague.push("theirs.py", THEIRS)
    colleague.push("deep/er.py", THEIRS)
    colleague.clone.git("rm", "-q", "shared.py")
    colleague.clone.git("commit", "-qm", "away")
    colleague.clone.git("push", "-q", "origin", "HEAD:main")
    colleague.push("more.py", THEIRS)
    watched.repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert watched.lines() == OWN
    assert not [
        name for name in os.listdir(watched.repo.path / ".git/gitgates") if "authorship" in name
    ]
