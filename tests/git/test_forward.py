"""A branch moves one step forward, or is not where it was, or is held up."""

from __future__ import annotations

import pytest
from conftest import Repo
from land_support import begin, branch, opened

from gitgates.git.forward import ForwardBranch, HeldError, MovedError


def test_a_branch_that_has_moved_is_left_alone(repo: Repo) -> None:
    begin(repo)
    base, new = repo.git("rev-parse", "main"), branch(repo, "new", {"new.txt": ""})
    other = branch(repo, "other", {"other.txt": ""})
    main = ForwardBranch(opened(repo), "main")
    repo.git("update-ref", "refs/heads/main", other)
    with pytest.raises(MovedError):
        main.move(base, new)
    repo.git("checkout", "-q", "main")
    with pytest.raises(MovedError):
        main.move(base, new)
    assert main.tip() == repo.head() == other
    repo.git("reset", "-q", "--hard", base)
    main.move(base, new)
    assert main.tip() == repo.head() == new
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["shared.txt", "new.txt", "ignored.txt"])
def test_whatever_would_be_overwritten_holds_it_up(repo: Repo, name: str) -> None:
    begin(repo)
    repo.write(".git/info/exclude", "ignored.txt\n")
    base = repo.git("rev-parse", "main")
    repo.git("checkout", "-q", "-b", "new", "main")
    repo.write(name, "new\n")
    repo.git("add", "-f", name)
    repo.git("commit", "-qm", "new")
    new = repo.head()
    repo.git("checkout", "-q", "main")
    repo.git("config", "merge.autoStash", "true")
    repo.write(name, "local\n")
    with pytest.raises(HeldError) as held:
        ForwardBranch(opened(repo), "main").move(base, new)
    assert held.value.message == f"{repo.path}: local changes of {name}"
    assert (repo.path / name).read_text() == "local\n"
    assert (repo.head(), repo.git("stash", "list")) == (base, "")


def test_a_rebase_of_it_holds_it_up(repo: Repo) -> None:
    begin(repo)
    base, new = repo.git("rev-parse", "main"), branch(repo, "new", {"shared.txt": "new\n"})
    repo.git("checkout", "-q", "main")
    repo.write("shared.txt", "other\n")
    repo.commit_all("other")
    assert repo.ask("git", "rebase", "-q", "new").returncode
    with pytest.raises(HeldError, match="a rebase of `main` is under way"):
        ForwardBranch(opened(repo), "main").move(base, new)
