"""`gitgates explain --reads`: what a gate reads, by a run under strace."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from process_support import has_ended

CONFIG = """
[gates.look]
command = "cat a.txt sub/b.txt /etc/hostname; ls sub; test -e none.txt || echo 1 > out.txt; exit 3"
[gates.slow]
command = "setsid sleep 300 & echo $! > new; mv new pid; sleep 300"
timeout = "1s"
[gates.gone]
command = "true"
working_dir = "no-such-folder"
[hooks.pre-commit]
gates = ["look"]
"""

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")


@pytest.fixture
def looked_at(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "a\n")
    repo.write("sub/b.txt", "b\n")
    repo.commit_all("first")
    return repo


def reads(repo: Repo, gate: str) -> dict[str, Any]:
    done = repo.gitgates("explain", "--reads", gate, "--format", "json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@needs_strace
def test_what_a_gate_reads(looked_at: Repo) -> None:
    document = reads(looked_at, "look")
    assert [path for path in document["content"] if not path.startswith("/")] == [
        "a.txt",
        "sub/b.txt",
    ]
    assert "/etc/hostname" in document["content"]
    assert (document["folders"], document["written"]) == (["sub"], ["out.txt"])
    assert "none.txt" in document["absent"]
    assert (document["exit_status"], document["why_not"]) == (3, "")
    text = looked_at.gitgates("explain", "--reads", "look").stdout.decode()
    assert text.startswith("gate `look` ended with exit status 3 after ")
    assert "files in the repository: 2\n  a.txt\n  sub/b.txt\n" in text
    assert "written: 1\n  out.txt\n" in text


@needs_strace
def test_a_gate_that_does_not_end_in_time(looked_at: Repo) -> None:
    done = looked_at.gitgates("explain", "--reads", "slow")
    assert done.returncode == 73
    assert b"gate `slow` did not end in 1 s\n  Set a longer `timeout`" in done.stderr
    assert has_ended(int((looked_at.path / "pid").read_text()))


@needs_strace
def test_an_interrupted_run_leaves_nothing(looked_at: Repo) -> None:
    program = (sys.executable, "-m", "gitgates", "explain", "--reads", "slow")
    child = subprocess.Popen(program, cwd=looked_at.path, stderr=subprocess.PIPE)
    while not (looked_at.path / "pid").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _out, said = child.communicate(timeout=30)
    assert (child.returncode, b"interrupted by signal 2" in said) == (130, True)
    assert has_ended(int((looked_at.path / "pid").read_text()))


@needs_strace
def test_a_gate_that_cannot_be_started(looked_at: Repo) -> None:
    done = looked_at.gitgates("explain", "--reads", "gone")
    assert done.returncode == 73
    assert b"gate `gone` could not be started: " in done.stderr
    assert b"no-such-folder" in done.stderr


def test_what_cannot_be_observed_says_why(looked_at: Repo, tmp_path: Path) -> None:
    git = shutil.which("git")
    assert git
    (tmp_path / "git").symlink_to(git)
    done = looked_at.gitgates("explain", "--reads", "look", env={"PATH": str(tmp_path)})
    assert done.returncode == 0
    assert b"gate `look` cannot be observed: strace is not installed: install" in done.stdout


def test_it_is_about_one_gate(looked_at: Repo) -> None:
    unknown = looked_at.gitgates("explain", "--reads", "lock")
    assert (unknown.returncode, b"look" in unknown.stderr) == (64, True)
    both = looked_at.gitgates("explain", "--reads", "look", "pre-commit")
    assert both.returncode == 64
    assert b"--reads is about one gate" in both.stderr
