"""Where evidence of commits is kept: in the log, then in git notes; nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from conftest import Repo
from verify_support import CONFIG, PUSH, change, evidence, gate, notes, verified
from verify_support import append as edit

from gitgates.core.errors import GitError
from gitgates.features.evidence.commit_evidence import CommitEvidence
from gitgates.git.index import cached_tree, committed_tree
from gitgates.git.notes import Notes
from gitgates.git.repo import find_repo
from gitgates.store.proofs import Proof, append, digest, read_all

PROOF = Proof(gate="py", content="", status="passed", time_s=1e9, hook="pre-commit", config="x")


@pytest.fixture
def gated(repo: Repo) -> Repo:
    gate(repo)
    return repo


def published(repo: Repo) -> Path:
    """Return the file that says which evidence is in notes."""
    return repo.path / ".git/gitgates/proofs/published"


@pytest.mark.slow
def test_evidence_is_published_once(gated: Repo) -> None:
    change(gated, "one")
    assert [proof.gate for proof in evidence(gated)] == ["py", "all"] * 2
    verified(gated)
    first, tip = notes(gated), gated.git("rev-parse", "refs/notes/gitgates")
    assert sorted(map(len, first.values())) == [1, 1]
    verified(gated)
    published(gated).unlink()  # as after a kill before it was written
    verified(gated)
    assert (notes(gated), gated.git("rev-parse", "refs/notes/gitgates")) == (first, tip)
    gated.git("update-ref", "-d", "refs/notes/gitgates")  # they are in the log as well
    verified(gated)
    assert notes(gated) == first


def test_only_new_evidence_is_read(gated: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    verified(gated)
    added: list[int] = []
    monkeypatch.setattr(
        "gitgates.features.evidence.commit_evidence.add_lines",
        lambda _repo, lines: added.append(len(lines)),
    )
    here = find_repo(str(gated.path), dict(os.environ))
    CommitEvidence(here, pytest.fail)
    change(gated, "one")
    for _again in range(2):
        CommitEvidence(here, pytest.fail)
    assert added == [1]


def test_a_log_without_evidence_is_read_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    here = find_repo(str(repo.path), dict(os.environ))
    append(here.shared_state_abs, [PROOF._replace(content="a", config="")])
    found: list[list[Proof]] = []

    def read(*args: Any) -> list[Proof]:
        found.append([*read_all(*args)])
        return found[-1]

    monkeypatch.setattr("gitgates.features.evidence.commit_evidence.read_all", read)
    for _again in range(2):
        CommitEvidence(here, pytest.fail)
    assert [*map(len, found)] == [1, 0]
    repo.write("a.txt")
    repo.commit_all("a")
    tree = repo.git("rev-parse", "HEAD^{tree}").strip()
    append(here.shared_state_abs, [PROOF._replace(content=tree)])
    for _again in range(2):  # deleted notes are written again
        assert CommitEvidence(here, pytest.fail).of(tree)
        assert len(notes(repo)[tree]) == 1
        repo.git("update-ref", "-d", "refs/notes/gitgates")


@pytest.mark.parametrize("damage", [b"", b"2\tx\ty\n\xff\xfe\n1\t2", b"\n\0\n"])
def test_a_torn_line_is_left_out(gated: Repo, damage: bytes) -> None:
    before = {proof.content for proof in evidence(gated)}
    change(gated, "one")
    (tree,) = {proof.content for proof in evidence(gated)} - before
    path = gated.path / f".git/gitgates/proofs/{digest(tree)[:2]}"
    path.write_bytes(path.read_bytes()[:-9] + damage)
    assert verified(gated) == ["bypassed the gates: all one"]
    gated.git("commit", "-q", "--amend", "--no-edit")
    assert verified(gated) == ["gated one"]


OLD = "1\t{time}\t{tree}\t{base}\tpre-commit\tx\t{ends}\n"


def test_the_spool_of_an_earlier_version_is_read(gated: Repo) -> None:
    state = gated.path / ".git/gitgates"
    for subject in ("one", "two", "three", "torn"):
        change(gated, subject, "--no-verify")
    trees = gated.git("log", "--format=%T", "base..HEAD").split()[::-1]
    bases = gated.git("log", "--format=%P", "base..HEAD").split()[::-1]
    ends = ("passed:py,passed:all", "passed:py,skipped:all", "passed:py,failed:all", "passed:py,pa")
    lines = [
        OLD.format(time=1_700_000_000, tree=tree, base=base, ends=end)
        for tree, base, end in zip(trees, bases, ends, strict=True)
    ]
    (state / "evidence").write_text("".join(lines[:3]) + "1\tx\ty\n" + lines[3][:-40])
    expected = ["gated one", "skipped: all two", "gated three"]
    assert verified(gated) == [*expected, "bypassed the gates: py, all torn"]
    assert (state / "evidence").read_text() == ""
    assert json.loads(notes(gated)[trees[0]][0])["time"] == 1_700_000_000
    # An earlier version still runs in another clone of the environment.
    (state / "evidence").write_text(lines[3].replace(",pa", ",passed:all"))
    assert verified(gated) == [*expected, "gated torn"]


@pytest.mark.slow
def test_what_others_have_written_there_stays(gated: Repo) -> None:
    change(gated, "one")
    tree = gated.git("rev-parse", "HEAD^{tree}")
    junk = '{"v": 1}\n[]\nnot ours \xe9\n{"v": 1, "gates": 7}\n{"v": 2}'
    gated.git("notes", "--ref", "gitgates", "add", "-m", junk, tree)  # in no folder
    gated.git("notes", "--ref", "gitgates", "add", "-m", "on a commit", "HEAD")
    assert verified(gated) == ["gated one"]
    found = notes(gated)
    assert found[tree][:-1] == junk.split("\n")
    assert found[gated.head()] == ["on a commit"]
    assert len(found) == 3
    gated.git("pack-refs", "--all")
    gated.git("gc", "-q", "--prune=now")
    change(gated, "two")
    assert verified(gated) == ["gated one", "gated two"]
    assert len(notes(gated)) == 4


@pytest.mark.slow
def test_notes_in_folders_of_gits_own(gated: Repo) -> None:
    change(gated, "one")
    verified(gated)
    tree = gated.git("rev-parse", "HEAD^{tree}")
    names = [str(gated.write(f"blobs/{number}", str(number))) for number in range(300)]
    ids = gated.git("hash-object", "-w", *names).splitlines()  # from so many on, there are folders
    copied = "".join(f"{tree} {one}\n" for one in ids)
    gated.ask("git", "notes", "--ref", "gitgates", "copy", "--stdin", stdin=copied.encode())
    assert "/" in gated.git("ls-tree", "-r", "--name-only", "refs/notes/gitgates").split("\n")[9]
    change(gated, "two")
    assert verified(gated) == ["gated one", "gated two"]
    assert gated.git("notes", "--ref", "gitgates", "list").count("\n") == 302


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
    assert sorted(map(len, notes(gated).values())) == [1] * 5


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
    kept = Notes(here)
    assert said == []
    assert {tree: len(kept.lines(tree)) for tree in kept} == dict.fromkeys(
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
        gated.ask("git", "update-ref", "-d", "refs/notes/gitgates")
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "AT": str(number)}
        env["CALLS"] = str(tmp_path / f"calls-{number}")
        verify = (sys.executable, "-m", "gitgates", "verify", "base..HEAD")
        ends.append(gated.ask(*verify, env=env).returncode)
        assert verified(gated) == ["gated one"]
        assert [*map(len, notes(gated).values())] == [1, 1]
        if ends[-1] == 0:
            break
    assert ends[-1] == 0
    assert set(ends[:-1]) == {-9}


def test_where_notes_cannot_be_written_the_log_is_read(gated: Repo) -> None:
    change(gated, "one")
    (gated.path / ".git/refs/notes").mkdir(parents=True)
    (gated.path / ".git/refs/notes/gitgates.lock").touch()
    done = gated.gitgates("verify", "base..HEAD")
    assert done.returncode == 0
    assert done.stdout.split()[1:] == [b"gated", b"one"]
    said = (
        b"evidence of new commits cannot be published in git notes: refs/notes/gitgates cannot be"
    )
    assert said in done.stderr
    assert not published(gated).exists()


def test_notes_that_are_damaged_are_named(gated: Repo) -> None:
    change(gated, "one")
    assert verified(gated) == ["gated one"]
    tree = gated.git("rev-parse", "refs/notes/gitgates^{tree}")
    (gated.path / f".git/objects/{tree[:2]}/{tree[2:]}").unlink()
    done = gated.gitgates("verify", "base..HEAD")
    said = "gitgates: refs/notes/gitgates: its files cannot be read\n  See: git fsck\n"
    assert (done.returncode, done.stderr.decode()) == (74, said)


def test_a_note_that_cannot_be_read_is_not_written_anew(gated: Repo) -> None:
    gated.gitgates("verify", "base")
    tree = gated.git("rev-parse", "HEAD^{tree}")
    note = gated.git("rev-parse", f"refs/notes/gitgates:{tree[:2]}/{tree[2:]}")
    (gated.path / f".git/objects/{note[:2]}/{note[2:]}").unlink()
    here = find_repo(str(gated.path), dict(os.environ))
    append(here.shared_state_abs, [PROOF._replace(content=tree)])
    kept, tip = published(gated).read_bytes(), gated.git("rev-parse", "refs/notes/gitgates")
    said: list[str] = []
    evidence_now = CommitEvidence(here, said.append)
    assert ["notes cannot be read" in one for one in said] == [True]
    with pytest.raises(GitError, match="notes cannot be read"):
        evidence_now.of(tree)
    assert (published(gated).read_bytes(), gated.git("rev-parse", "refs/notes/gitgates")) == (
        kept,
        tip,
    )


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


def test_a_hook_that_is_run_by_hand_records_nothing(gated: Repo) -> None:
    before = evidence(gated)
    gated.gitgates("git-hook", "--via=own", "pre-commit")
    gated.gitgates("run", "pre-commit")
    framework = ("pre-commit-hook", "pre-commit", "a.py")
    gated.gitgates(*framework)
    assert evidence(gated) == before
    # As in a commit: there, git says what it commits from.
    gated.gitgates(*framework, env={"GIT_INDEX_FILE": ".git/index"})
    assert [proof.gate for proof in evidence(gated)[len(before) :]] == ["py", "all"]


@pytest.mark.parametrize(
    "setting",
    [
        "index.version=2",
        "index.version=4",
        "index.skipHash=true",
        "index.threads=2",
        "core.splitIndex=true",
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
    assert len(notes(repo)) == 2
