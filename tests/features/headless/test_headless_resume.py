"""Going on in the conversation of an earlier headless run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
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
    work.config(CONFIG.replace("a.txt", "a.txt && ! grep wrong wrong.log 2> /dev/null"))
    work.commit_all("second")
    (work.path / ".git/info/exclude").write_text("wrong.log\n")
    (work.path / "wrong.log").write_text("wrong\n")
    assert work.gitgates("headless", "go").returncode == 1
    (work.path / "wrong.log").unlink()
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
    assert work.gitgates("headless", "make it good", "--worktree").returncode == 1
    done = work.gitgates("headless", "--resume", "latest", "--branch", "topic")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "topic:a.txt") == "half\ngood"
    assert work.git("show", "topic:where1") == work.git("show", "topic:where2")
    assert (work.path / "a.txt").read_text() == "bad\n"
    assert len(work.git("worktree", "list").splitlines()) == 1


def test_work_that_does_not_fit_is_no_reason_to_begin(work: Repo, claude: Claude) -> None:
    claude.turns("echo half > a.txt", "echo good > a.txt")
    assert work.gitgates("headless", "go").returncode == 1
    work.write("a.txt", "mine\n")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 74
    assert b"do not apply here:\n  patch failed: a.txt:1" in done.stderr
    assert (work.path / "a.txt").read_text() == "mine\n"
    assert len(claude.prompts) == 1
    assert b"checkpoint" not in work.gitgates("recover", "--list").stdout
    work.git("checkout", "-q", "--orphan", "other")
    work.commit_all("another first")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 74
    assert b"have no commit in common with HEAD" in done.stderr


REFUSED = (
    (("--resume", "2020"), "--resume 2020: no headless run of that name with a finished turn"),
    (("--resume", "latest", "--agent", "codex"), "is a conversation of claude"),
    (("--resume", "latest", "--agent-command", "x"), "is a conversation of claude"),
    (("--resume", "latest", "--worktree"), "its conversation belongs to this folder"),
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
    assert work.gitgates("headless", "make it good", "--worktree").returncode == 1
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
    assert len(work.git("branch", "--list", "headless/*").splitlines()) == 1


@pytest.mark.samples(1)
@pytest.mark.parametrize("own", ["there", "stashed"])
def test_own_changes_are_no_work_of_the_run(work: Repo, claude: Claude, own: str) -> None:
    """They are in a file that the failed run had changed, and are not committed."""
    lines = "".join(f"{n}\n" for n in range(20))
    work.write("b.txt", lines)
    work.commit_all("lines")
    mine = lines.replace("0\n", "mine\n", 1)
    work.write("b.txt", mine)
    claude.turns("sed -i s/19/agent/ b.txt; echo half > a.txt", "echo good > a.txt")
    assert work.gitgates("headless", "go").returncode == 1
    assert (work.path / "b.txt").read_text() == mine
    if own == "stashed":
        work.git("stash", "-q")
    done = work.gitgates("headless", "--resume", "latest")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "HEAD:b.txt") == lines.replace("19", "agent").strip()
    if own == "stashed":
        work.git("stash", "pop", "-q")
    assert (work.path / "b.txt").read_text() == mine.replace("19", "agent")
    assert work.git("diff", "--numstat") == "1\t1\tb.txt"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        "rm b.txt",
        "rm b.txt; ln -s a.txt b.txt",
        "chmod +x b.txt; echo mine > b.txt",
        "echo mine > new.txt",
        "git rm -q b.txt; mkdir b.txt; echo mine > b.txt/c",
    ],
)
def test_own_changes_of_any_kind_are_no_work_of_the_run(
    work: Repo, claude: Claude, change: str
) -> None:
    work.write("b.txt", "b\n")
    work.commit_all("b")
    subprocess.run(change, shell=True, cwd=work.path, check=True)
    before = work.git("status", "--porcelain")
    turn = "rm -rf b.txt; echo agent > b.txt; echo agent >> new.txt"
    claude.turns(turn, "cat b.txt new.txt >&2; echo good > a.txt; git diff > diff.txt")
    assert work.gitgates("headless", "go").returncode == 1
    assert work.git("status", "--porcelain") == before
    done = work.gitgates("headless", "--resume", "latest")
    # It cannot be separated, or it can; what is there is what the agent had made of it.
    assert done.returncode in (0, 1), (done.stdout, done.stderr)
    assert (work.path / "b.txt").read_text() == "agent\n"
    new = "mine\nagent\n" if "new.txt" in change else "agent\n"
    assert (work.path / "new.txt").read_text() == new
