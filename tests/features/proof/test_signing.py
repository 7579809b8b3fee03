"""What is signed of the log: what gates have done here, as they are configured in the commit."""

from __future__ import annotations

import os

import pytest
from conftest import Repo
from hook_support import commit as commit_staged
from proof_support import CONFIG

from gitgates.features.proof.signing import statements_of
from gitgates.features.proof.statement import Statement
from gitgates.git.commits import list_commits
from gitgates.git.repo import find_repo
from gitgates.store import proofs


@pytest.fixture
def gated(repo: Repo) -> Repo:
    """Return a repository whose commits are gated, with one that is not."""
    repo.config(CONFIG.replace("{trust}", "[]"))
    repo.commit_all("base")
    repo.git("tag", "base")
    repo.shim("pre-commit", "pre-merge-commit")
    return repo


def of_head(repo: Repo) -> list[Statement]:
    found = find_repo(str(repo.path), dict(os.environ))
    return statements_of(found, list_commits(found.git, "base..HEAD"))


def commit(repo: Repo, name: str, *args: str) -> None:
    repo.write(name, "x = 1\n")
    repo.git("add", ".")
    if args:
        repo.git("commit", "-qm", name, *args)
    else:
        assert commit_staged(repo, name).returncode == 0


def ends(statement: Statement) -> dict[str, str]:
    return {proof.gate: proof.status for proof in statement.gates}


def test_a_statement_says_what_a_commit_was_compared_with(gated: Repo) -> None:
    commit(gated, "a.py")
    (statement,) = of_head(gated)
    assert statement.tree == gated.git("rev-parse", "HEAD^{tree}")
    assert statement.base == gated.git("rev-parse", "base^{tree}")
    assert statement.commits == (gated.head(),)
    assert (statement.hook, len(statement.patch), len(statement.config)) == ("pre-commit", 64, 64)
    assert ends(statement) == {"all": "passed", "py": "passed"}
    assert {len(proof.definition) for proof in statement.gates} == {64}


def test_a_gate_without_paths_is_no_pass(gated: Repo) -> None:
    commit(gated, "a.txt")
    (statement,) = of_head(gated)
    assert ends(statement) == {"all": "passed", "py": "unmatched"}


def test_what_bypassed_its_gates_is_not_signed(gated: Repo) -> None:
    commit(gated, "a.py", "--no-verify")
    assert of_head(gated) == []
    gated.gitgates("verify", "base..HEAD", "--run-missing")
    assert [ends(statement) for statement in of_head(gated)] == [{"all": "passed", "py": "passed"}]


def test_where_all_gates_were_skipped_nothing_is_signed(gated: Repo) -> None:
    gated.write("a.py", "x = 1\n")
    gated.git("add", ".")
    assert commit_staged(gated, env={"SKIP": "all,py"}).returncode == 0
    assert of_head(gated) == []


def test_an_amended_commit_has_a_statement_of_its_own(gated: Repo) -> None:
    commit(gated, "a.py")
    before = gated.git("rev-parse", "HEAD^{tree}")
    commit(gated, "b.py", "--amend")
    first, amended = of_head(gated)
    assert first.tree == before
    assert amended.base == before  # what the hook of an amend compares with


def test_another_gate_than_that_of_the_commit_is_not_signed(gated: Repo) -> None:
    gated.write("gitgates.local.toml", '[gates.all]\ncommand = "true || false"\n')
    gated.write(".git/info/exclude", "gitgates.local.toml\n")
    commit(gated, "a.py")
    (statement,) = of_head(gated)
    assert ends(statement) == {"py": "passed"}


def test_what_somebody_else_has_run_is_signed_as_theirs(gated: Repo) -> None:
    commit(gated, "a.py")
    state = str(gated.path / ".git/gitgates")
    rows = [row for row in proofs.read_all(state) if row.gate == "py"]
    sharing = proofs.Sharing("1" * 64, maker=f"{proofs.BELIEVED}bob@example.com")
    later = rows[-1]._replace(sharing=sharing, time_s=rows[-1].time_s + 1)
    proofs.append(state, [later])
    (statement,) = of_head(gated)
    py = {proof.gate: proof for proof in statement.gates}["py"]
    assert (py.origin, py.keys, py.maker) == ("bob@example.com", (), "")
    with pytest.raises(Exception, match="only whoever ran a gate is believed"):
        statement.require("py")


@pytest.mark.parametrize("recorded", ["4" * 64, ""])
def test_what_an_earlier_version_has_recorded_is_signed(gated: Repo, recorded: str) -> None:
    """It had a digest of programs there, and none for what had seen other files."""
    commit(gated, "a.py")
    state = str(gated.path / ".git/gitgates")
    sharing = proofs.Sharing(exact=recorded)
    proofs.append(state, [row._replace(sharing=sharing) for row in proofs.read_all(state)])
    (statement,) = of_head(gated)
    assert {proof.is_exact for proof in statement.gates} == {bool(recorded)}


def test_a_commit_with_wrong_settings_is_not_signed(gated: Repo) -> None:
    commit(gated, "a.py")
    gated.config("[gates.all]\ncommand = 7\n")
    gated.git("add", ".")
    gated.git("commit", "-qm", "wrong", "--no-verify")
    assert [statement.commits for statement in of_head(gated)] == [
        (gated.git("rev-parse", "HEAD^"),)
    ]
