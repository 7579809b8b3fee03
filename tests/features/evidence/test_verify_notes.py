"""Where evidence of commits is kept: in the log, and beside it; nothing is lost or doubled."""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from conftest import Repo
from verify_support import CONFIG, PUSH, change, evidence, gate, kept, verified
from verify_support import append as edit

from gitgates.features.evidence.commit_evidence import CommitEvidence
from gitgates.git.index import cached_tree, committed_tree
from gitgates.git.repo import find_repo
from gitgates.store.files import replace_cached
from gitgates.store.proofs import Proof, append, digest, read_all

PROOF = Proof(gate="py", content="", status="passed", time_s=1e9, hook="pre-commit", config="x")


@pytest.fixture
def gated(repo: Repo) -> Repo:
    gate(repo)
    return repo


def file_of(repo: Repo) -> Path:
    """Return the file that keeps evidence of commits."""
    return repo.path / ".git/gitgates/proofs/commits"


@pytest.mark.slow
def test_evidence_is_kept_once_and_after_the_log_has_dropped_it(gated: Repo) -> None:
    change(gated, "one")
    assert [proof.gate for proof in evidence(gated)] == ["py", "all"] * 2
    verified(gated)
    first, content = kept(gated), file_of(gated).read_bytes()
    assert sorted(map(len, first.values())) == [1, 1]
    verified(gated)
    assert file_of(gated).read_bytes() == content
    for damage in (None, b"", content[:-1], content[:20] + b"x" + content[21:]):
        file_of(gated).unlink()
        if damage is not None:
            file_of(gated).write_bytes(damage)
        assert verified(gated) == ["gated one"]  # from the log
        assert kept(gated) == first
    for log in file_of(gated).parent.glob("??"):
        log.unlink()
    assert verified(gated) == ["gated one"]
    assert "refs/notes/gitgates" not in gated.git("for-each-ref")


def test_only_so_many_trees_are_kept(gated: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.features.evidence.commit_evidence._MOST_TREES", 2)
    here = find_repo(str(gated.path), dict(os.environ))
    for number in range(1, 5):
        append(here.shared_state_abs, [PROOF._replace(content=f"{number:040x}")])
        CommitEvidence(here, pytest.fail)
    assert [*kept(gated)] == [f"{number:040x}" for number in (3, 4)]


def test_what_another_version_has_kept_is_made_again(gated: Repo) -> None:
    change(gated, "one")
    others: tuple[Any, ...] = ((0, {}), (99, {}, {}, "more"), ({}, {"tree": [("short",)]}))
    for other in others:
        replace_cached(str(file_of(gated)), other)
        assert verified(gated) == ["gated one"], other
        assert kept(gated)


def test_the_log_is_read_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    here = find_repo(str(repo.path), dict(os.environ))
    append(here.shared_state_abs, [PROOF._replace(content="a", config="")])
    found: list[list[Proof]] = []

    def read(*args: Any) -> list[Proof]:
        found.append([*read_all(*args)])
        return found[-1]

    monkeypatch.setattr("gitgates.features.evidence.commit_evidence.read_all", read)
    for _again in range(2):
        CommitEvidence(here, pytest.fail)
    append(here.shared_state_abs, [PROOF._replace(content="a")])
    for _again in range(2):
        assert CommitEvidence(here, pytest.fail).of("a")
    assert [*map(len, found)] == [1, 0, 1, 0]


def test_what_only_looks_writes_nothing(gated: Repo) -> None:
    here = find_repo(str(gated.path), dict(os.environ))
    assert CommitEvidence(here, pytest.fail, writes=False).of(gated.git("rev-parse", "HEAD^{tree}"))
    assert not file_of(gated).exists()


def test_where_it_cannot_be_written_the_log_is_read(gated: Repo) -> None:
    change(gated, "one")
    file_of(gated).mkdir()
    done = gated.gitgates("verify", "base..HEAD")
    assert (done.returncode, done.stdout.split()[1:]) == (0, [b"gated", b"one"])
    assert b"evidence about new commits cannot be stored: " in done.stderr


@pytest.mark.samples(1)
@pytest.mark.parametrize("damage", [b"2\tx\ty\n\xff\xfe\n1\t2", b"", b"\n\0\n"])
def test_a_torn_line_is_left_out(gated: Repo, damage: bytes) -> None:
    before = {proof.content for proof in evidence(gated)}
    change(gated, "one")
    (tree,) = {proof.content for proof in evidence(gated)} - before
    path = gated.path / f".git/gitgates/proofs/{digest(tree)[:2]}"
    path.write_bytes(path.read_bytes()[:-9] + damage)
    assert verified(gated) == ["bypassed the gates: all one"]
    gated.git("commit", "-q", "--amend", "--no-edit")
    assert verified(gated) == ["gated one"]


def at_once(repos: tuple[Repo, ...], *argv: str) -> list[CompletedProcess[bytes]]:
    """Run one command in several repositories at the same time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda repo: repo.ask(*argv), repos))


@pytest.mark.thorough
@pytest.mark.slow
def test_two_at_once_lose_and_double_nothing(gated: Repo) -> None:
    gated.git("worktree", "add", "-q", "../linked", "-b", "topic")
    linked = Repo(gated.path.parent / "linked")
    for number in range(2):
        for repo in (gated, linked):
            edit(repo, f"{repo.path.name}{number} = 1\n")
        both = at_once((gated, linked), "git", "commit", "-qam", str(number))
        assert [done.returncode for done in both] == [0, 0]
        both = at_once((gated, linked), sys.executable, "-m", "gitgates", "verify", "base..HEAD")
        assert [(done.returncode, done.stderr) for done in both] == [(0, b"")] * 2
    assert sorted(map(len, kept(gated).values())) == [1] * 5


def test_what_is_recorded_meanwhile_is_not_lost(gated: Repo) -> None:
    here = find_repo(str(gated.path), dict(os.environ))
    trees = [f"{number:040x}" for number in range(1, 301)]

    def record(tree: str) -> None:
        append(here.shared_state_abs, [PROOF._replace(content=tree)])

    said: list[str] = []
    with ThreadPoolExecutor() as pool:
        added = [pool.submit(record, tree) for tree in trees]
        for _ in range(3):
            CommitEvidence(here, said.append)
    assert [one.result() for one in added] == [None] * len(trees)
    CommitEvidence(here, said.append)
    assert said == []
    assert {tree: len(rows) for tree, rows in kept(gated).items()} == dict.fromkeys(
        [*trees, gated.git("rev-parse", "HEAD^{tree}")], 1
    )


@pytest.mark.thorough
def test_killed_at_any_call_of_git_it_is_done_again(gated: Repo, tmp_path: Path) -> None:
    change(gated, "one")
    tools = tmp_path / "tools"
    tools.mkdir()
    git = shutil.which("git")
    killer = '#!/bin/sh\necho >> "$CALLS"\n[ $(wc -l < "$CALLS") -ne "$AT" ] || kill -9 $PPID\n'
    (tools / "git").write_text(f'{killer}exec {git} "$@"\n')
    (tools / "git").chmod(0o755)
    ends = []
    for number in range(1, 30):
        file_of(gated).unlink(missing_ok=True)
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "AT": str(number)}
        env["CALLS"] = str(tmp_path / f"calls-{number}")
        verify = (sys.executable, "-m", "gitgates", "verify", "base..HEAD")
        ends.append(gated.ask(*verify, env=env).returncode)
        assert verified(gated) == ["gated one"]
        assert [*map(len, kept(gated).values())] == [1, 1]
        if ends[-1] == 0:
            break
    assert ends[-1] == 0
    assert set(ends[:-1]) == {-9}


def test_a_commit_is_not_refused_where_nothing_can_be_recorded(gated: Repo) -> None:
    shutil.rmtree(gated.path / ".git/gitgates/proofs")
    (gated.path / ".git/gitgates/proofs").write_text("in the way")
    edit(gated, "b = 1\n")
    done = gated.commit("one", "-a")
    assert (done.returncode, b"recorded" in done.stderr) == (0, False)
    gated.config(CONFIG + PUSH)
    done = gated.commit("two", "-a")
    assert done.returncode == 0
    assert b"the results were not recorded for `gitgates verify`" in done.stderr


def test_a_run_by_hand_records_nothing(gated: Repo) -> None:
    before = evidence(gated)
    gated.gitgates("run", "pre-commit")
    framework = ("pre-commit-hook", "pre-commit", "a.py")
    gated.gitgates(*framework)
    assert evidence(gated) == before
    # As in a commit: there, git says what it commits from.
    gated.gitgates(*framework, env={"GIT_INDEX_FILE": ".git/index"})
    assert [proof.gate for proof in evidence(gated)[len(before) :]] == ["py", "all"]


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    "setting",
    [
        "index.version=4",
        "core.splitIndex=true",
        "index.skipHash=true",
        "index.version=2",
        "index.threads=2",
        "core.untrackedCache=true",
    ],
)
def test_the_tree_is_read_from_the_index(repo: Repo, setting: str) -> None:
    repo.git("config", *setting.split("="))
    for name in ("TREE", "a/TREE", "a/b/c", "d"):
        repo.write(name, "TREE\0\0\0\0")
    repo.commit_all("all")
    index = repo.path / ".git/index"
    assert cached_tree(index.read_bytes()) == repo.git("rev-parse", "HEAD^{tree}")
    repo.write("a/b/c", "changed")
    repo.git("add", "a/b/c")
    assert cached_tree(index.read_bytes()) == ""
    assert committed_tree(find_repo(str(repo.path), dict(os.environ))) == repo.git("write-tree")
    known = index.read_bytes()
    assert cached_tree(known) == repo.git("write-tree")
    for other in (b"", b"TREE", known[:-1], known + b"x", known.replace(b"TREE", b"REUC")):
        assert cached_tree(other) == ""


@pytest.mark.slow
def test_a_repository_of_sha256(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "sha256")
    repo.path.mkdir()
    repo.git("init", "-q", "--object-format=sha256")
    (repo.path / ".git/hooks").mkdir(exist_ok=True)
    repo.shim("pre-commit")
    repo.config(CONFIG)
    repo.commit_all("base")
    repo.git("tag", "base")
    change(repo, "one")
    change(repo, "round", "--no-verify")
    for _again in range(2):
        assert verified(repo) == ["gated one", "bypassed the gates: py, all round"]
    assert len(kept(repo)) == 2
