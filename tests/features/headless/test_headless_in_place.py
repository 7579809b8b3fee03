"""A headless run in the working tree itself, and the way back."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, headless, left, prompts, result, started
from worktree_state import whole

GOOD = "echo good > a.txt"


@pytest.fixture
def work(repo: Repo) -> Repo:
    """Return a repository with files of all kinds, and nothing uncommitted."""
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.write(".gitignore", "*.env\nbuild/\n.gitattributes\n")
    repo.write("d/e/b.txt", "b\n")
    repo.write("crlf.txt", "one\r\ntwo\n")
    (repo.path / "link").symlink_to("a.txt")
    repo.write(".gitattributes", "crlf.txt text\n")  # git has other bytes of it
    repo.git("-c", "core.safecrlf=false", "add", ".")
    repo.git("commit", "-qm", "first")
    repo.write("secret.env", "secret\n").chmod(0o600)
    repo.write("build/out", "out\n")
    repo.write("untracked/run", "#!/bin/sh\n").chmod(0o755)
    (repo.path / "untracked/link").symlink_to("run")
    repo.git("branch", "spare")
    repo.git("status")
    return repo


def run(repo: Repo, *turns: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    command = agent(repo, *turns)
    return headless(repo, "go", "--in-place", "--agent-command", command, *args)


def contents(repo: Repo) -> object:
    """Return all that a run must restore: files without their times, the index, its refs."""
    files, *rest = whole(repo)
    refs = repo.git("for-each-ref", "refs/heads/main", "refs/heads/spare")
    head = repo.git("symbolic-ref", "-q", "HEAD"), repo.head()
    return {path: entry[:2] for path, entry in files.items()}, *rest, refs, head


def test_what_passes_is_committed_and_nothing_else(work: Repo) -> None:
    done = run(work, f"{GOOD}; echo b > b.txt; echo '*.env' > .gitignore; pwd")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "--name-only", "--format=", "HEAD") == ".gitignore\na.txt\nb.txt"
    assert "untracked/" in work.git("status", "--porcelain")
    assert left(work) == []
    body = work.git("log", "-1", "--format=%B")
    assert f"did turn 1\n\nGitgates-Run: {result(work)['execution_id']}" in body


RUINS = [
    "git rm -rq d; rm -rf untracked build secret.env; git add -A; git commit -qm mine",
    "git reset -q --hard; git clean -fdxq",
    "rm -rf d; echo file > d; rm a.txt; mkdir a.txt; echo x > a.txt/x; rm link; echo x > link",
    "rm .git/index; echo x > .git/index.lock",
    "git switch -qc elsewhere; git commit -q --allow-empty -m x; git branch -D spare",
    "git checkout -q --detach; git commit -q --allow-empty -m x",
    "git merge -q --no-commit --no-ff main; echo x > .git/MERGE_HEAD; mkdir .git/rebase-merge",
    "chmod 644 secret.env; chmod 755 a.txt; chmod 644 untracked/run; echo x > secret.env",
    "printf 'one\\ntwo\\n' > crlf.txt; echo x > new; echo x > new.env; mkdir n; echo x > n/x",
    "git update-index --assume-unchanged a.txt --skip-worktree d/e/b.txt; rm d/e/b.txt",
    "ln -sf b.txt link; ln -sf elsewhere untracked/link; rm untracked/run; mkdir untracked/run",
    "git branch -M main other; git symbolic-ref HEAD refs/heads/none",
    "echo untracked/ >> .gitignore; echo x >> untracked/run; echo '*.log' > .gitignore",
    "echo '/untracked/' >> .gitignore",
    "echo 'other' > .gitignore; git add -f secret.env; git commit -qm mine",
]


@pytest.mark.samples(3)
@pytest.mark.parametrize("ruin", [*RUINS, "; ".join(RUINS)])
def test_whatever_fails_is_as_before_and_kept(work: Repo, ruin: str) -> None:
    before = contents(work)
    done = run(work, f"{ruin}; rm -rf a.txt; echo worse > a.txt", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert b"your working tree is as before" in done.stdout
    assert contents(work) == before
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert work.git("show", f"{kept}:a.txt") == "worse"
    assert left(work) == []


def test_a_branch_is_made_and_removed_if_the_run_fails(work: Repo) -> None:
    before = contents(work)
    done = run(work, "echo worse > a.txt", args=("--branch", "fix", "--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert contents(work) == before
    (work.path.parent / "agent/prompt1").unlink()
    done = run(work, GOOD, args=("--branch", "fix"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("branch", "--show-current") == "fix"
    assert work.git("show", "fix:a.txt") == "good"
    assert work.git("show", "main:a.txt") == "bad"


def test_what_it_cannot_begin_with_is_named(work: Repo) -> None:
    work.write("a.txt", "mine\n")
    done = run(work, GOOD)
    assert done.returncode == 74
    assert b"--in-place needs a clean working tree; uncommitted changes: a.txt" in done.stderr
    work.git("checkout", "-q", "a.txt")
    work.write(".git/MERGE_HEAD", work.head())
    done = run(work, GOOD)
    assert done.returncode == 74
    assert b"an unfinished git command: MERGE_HEAD" in done.stderr
    (work.path / ".git/MERGE_HEAD").unlink()
    done = run(work, GOOD, args=("--include-uncommitted",))
    assert done.returncode == 64
    assert prompts(work) == []
    assert left(work) == []


def test_an_ignored_file_of_before_may_be_denied(work: Repo) -> None:
    work.config(f'{CONFIG}[headless]\ndeny = ["*.env"]\n')
    work.commit_all("limits")
    turns = (f"{GOOD}; echo x > secret.env", f"{GOOD}; echo y > secret.env")
    before = contents(work)
    done = run(work, *turns)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "deny: must not change: secret.env" in prompts(work)[1]
    assert contents(work) == before


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_kill_the_way_back_is_asked_for(work: Repo, number: int) -> None:
    before = contents(work)
    turn = "echo worse > a.txt; rm secret.env; git branch -qD spare; touch $AGENT/ready; sleep 600"
    command = agent(work, turn)
    process = started(work, "--in-place", "--agent-command", command)
    second = headless(work, "go", "--in-place", "--agent-command", command)
    assert second.returncode == 75
    assert b"another headless run is in progress here" in second.stderr
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert contents(work) != before
        done = headless(work, "go", "--in-place", "--agent-command", command)
        assert done.returncode == 74
        assert b"was killed here\n  To go back to before it: gitgates recover" in done.stderr
        assert b"is kept as refs/gitgates/failed/" in work.gitgates("recover").stdout
    assert contents(work) == before
    refs = work.git("for-each-ref", "--format=%(refname)", "refs/gitgates/failed")
    assert work.git("show", f"{refs}:a.txt") == "worse"
    assert left(work) == []
