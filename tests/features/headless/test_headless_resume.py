"""Going on in the conversation of an earlier headless run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
from test_headless import left
from test_headless_limits import Claude, document

CONFIG = """\
[gates.test]
command = "grep -q good a.txt"
[hooks.headless]
gates = ["test"]
max_retries = 0
[undo]
enabled = false
"""


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    folder = tmp_path / "client"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Claude(folder)


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def arguments(claude: Claude) -> list[str]:
    return (claude.folder / "arguments").read_text().splitlines()


def test_a_failed_run_goes_on_with_its_work(work: Repo, claude: Claude) -> None:
    claude.turns(
        "echo half > a.txt; echo new > new.txt", "cat a.txt new.txt >&2; echo good > a.txt"
    )
    assert work.gitgates("headless", "make it good").returncode == 1
    assert (work.path / "a.txt").read_text() == "bad\n"
    assert not (work.path / "new.txt").exists()
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "--resume s-1" not in arguments(claude)[0]
    assert "--resume s-1" in arguments(claude)[1]
    told = claude.prompts[1]
    assert told.startswith(
        "Continue this task: make it good\n\nIt last ended as follows: the gates"
    )
    assert told.endswith("Your changes so far are in the working tree, uncommitted.")
    assert (
        work.git("show", "--name-only", "--format=%s", "HEAD") == "make it good\n\na.txt\nnew.txt"
    )
    # The client names what the whole conversation has cost.
    assert [turn["cost_usd"] for turn in document(work)["headless"]["turns"]] == [0.1]


def test_work_that_is_good_already_passes(work: Repo, claude: Claude) -> None:
    claude.turns("echo 'good TODO' > a.txt; touch wrong", "true", "echo good, too > b.txt")
    wrong = work.path.parent / "wrong"
    work.config(CONFIG.replace("a.txt", f"a.txt && ! test -e {wrong}"))
    work.commit_all("second")
    wrong.touch()
    assert work.gitgates("headless", "go").returncode == 1
    wrong.unlink()
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert len(claude.prompts) == 2
    # A run that has passed goes on with another task only.
    run = document(work)["execution_id"]
    refused = work.gitgates("headless", "--resume", run)
    assert refused.returncode == 64
    assert b"it has passed" in refused.stderr
    done = work.gitgates("headless", "and b", "--resume", run[:20])
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert claude.prompts[2] == "and b"
    assert "--resume s-1" in arguments(claude)[2]
    assert work.git("log", "-1", "--format=%s") == "and b"


def test_a_run_in_a_worktree_goes_on_in_the_same_folder(work: Repo, claude: Claude) -> None:
    claude.turns("pwd > where1; echo half > a.txt", "pwd > where2; echo good >> a.txt")
    assert work.gitgates("headless", "make it good").returncode == 1
    done = work.gitgates("headless", "--resume", "latest", "--branch", "topic")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "topic:a.txt") == "half\ngood"
    assert work.git("show", "topic:where1") == work.git("show", "topic:where2")
    assert (work.path / "a.txt").read_text() == "bad\n"
    assert len(work.git("worktree", "list").splitlines()) == 1


def test_a_run_goes_on_where_it_began_whatever_there_is_now(work: Repo, claude: Claude) -> None:
    """Its work always fits there; git merges the result, or says why not."""
    claude.turns("echo half > a.txt; git add a.txt; git commit -qm own", "echo good >> a.txt")
    assert work.gitgates("headless", "go").returncode == 1
    first = work.head()
    work.write("b.txt", "b\n")
    work.commit_all("meanwhile")
    work.write("a.txt", "mine\n")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    branch = f"gitgates/{document(work)['execution_id']}"
    assert f"to merge it: git merge {branch}" in done.stdout.decode()
    assert work.git("log", "--format=%H", branch).split("\n")[1:] == [first]
    assert work.git("show", f"{branch}:a.txt") == "half\ngood"
    assert (work.path / "a.txt").read_text() == "mine\n"


@pytest.mark.slow
def test_a_killed_run_goes_on_with_its_work(work: Repo, claude: Claude) -> None:
    work.config(CONFIG.replace("max_retries = 0", "max_retries = 1"))
    work.commit_all("retry")
    ready = claude.folder / "ready"
    turns = ("echo half > a.txt", f"echo more >> a.txt; touch {ready}; sleep 600")
    claude.turns(*turns, "cat a.txt >&2; echo good >> a.txt")
    argv = (sys.executable, "-m", "gitgates", "headless", "go")
    with subprocess.Popen(argv, cwd=work.path, stdout=subprocess.PIPE) as killed:
        while not ready.exists():
            assert killed.poll() is None
            time.sleep(0.01)
        killed.kill()
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert b" was killed; to continue it: gitgates headless --resume " in done.stdout
    assert work.git("show", "HEAD:a.txt") == "half\nmore\ngood"
    assert "--resume s-1" in arguments(claude)[2]
    assert left(work) == []


def test_a_run_in_place_goes_on_in_place(work: Repo, claude: Claude) -> None:
    claude.turns("echo half > a.txt; echo new > new.txt", "echo good >> a.txt")
    assert work.gitgates("headless", "go", "--in-place").returncode == 1
    assert work.git("status", "--porcelain") == ""
    work.write("b.txt", "b\n")
    work.commit_all("meanwhile")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 74
    assert b"the earlier run began at " in done.stderr
    work.git("reset", "-q", "--hard", "HEAD~")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "HEAD:a.txt") == "half\ngood"
    assert (work.path / "new.txt").read_text() == "new\n"


REFUSED = (
    (
        ("--resume", "2020"),
        "--resume 2020: not the name of exactly one headless run with a finished turn",
    ),
    (("--resume", "latest", "--agent", "codex"), "is a conversation of claude"),
    (("--resume", "latest", "--agent-command", "x"), "is a conversation of claude"),
    (("--resume", "latest", "--in-place"), "its conversation belongs to another folder"),
    (("--resume", "latest", "--include-uncommitted"), "are mutually exclusive"),
)


def test_what_cannot_be_resumed_is_named(work: Repo, claude: Claude) -> None:
    claude.turns("echo half > a.txt")
    assert work.gitgates("headless", "go").returncode == 1
    for options, said in REFUSED:
        done = work.gitgates("headless", *options)
        assert done.returncode == 64, options
        assert said in done.stderr.decode()


@pytest.mark.thorough
def test_two_that_go_on_in_the_same_worktree_leave_one_branch(work: Repo, claude: Claude) -> None:
    claude.turns("echo half > a.txt", f"touch {claude.folder}/at; sleep 3; echo good > a.txt")
    assert work.gitgates("headless", "make it good").returncode == 1
    argv = (sys.executable, "-m", "gitgates", "headless", "--resume", "latest")
    with subprocess.Popen(argv, cwd=work.path, stdout=subprocess.PIPE) as first:
        while not (claude.folder / "at").exists():
            assert first.poll() is None
            time.sleep(0.01)
        second = work.gitgates("headless", "--resume", "latest")
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert second.returncode == 74
    assert b": already exists\n  Another run is using it, or left it behind" in second.stderr
    assert left(work) == []
