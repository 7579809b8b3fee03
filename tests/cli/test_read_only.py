"""Repositories that cannot be written, and the personal settings that git is to ignore."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = '[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n'
LOCAL = "gitgates.local.toml"
# Without these, root may write as little as anybody else.
AS_ANYBODY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
IS_ROOT = os.geteuid() == 0


@pytest.fixture(name="closed")
def _closed(repo: Repo) -> Iterator[Repo]:
    """Return a repository of which no folder may be written, with something staged."""
    if IS_ROOT and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere")
    repo.config(CONFIG)
    repo.commit_all("base")
    repo.write("new")
    repo.git("add", ".")
    folders = [Path(folder) for folder, _names, _files in os.walk(repo.path)]
    for folder in folders:
        folder.chmod(0o500)
    yield repo
    for folder in folders:
        folder.chmod(0o700)


def verb(repo: Repo, *args: str) -> subprocess.CompletedProcess[bytes]:
    return repo.ask(*(AS_ANYBODY if IS_ROOT else ()), sys.executable, "-m", "gitgates", *args)


@pytest.mark.slow
def test_what_a_commit_would_run_says_that_it_cannot_write(closed: Repo) -> None:
    done = verb(closed, "run", "--staged")
    assert done.returncode == 73
    assert b"cannot be written: Permission denied\n  Look at it with: ls -ld " in done.stderr
    assert b"Traceback" not in done.stderr
    done = verb(closed, "run", "--staged", "--format", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_status"]) == (73, 73)
    assert "cannot be written: Permission denied" in document["error"]["message"]


@pytest.mark.samples(1, "nightly")
@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    ["run", "check", "doctor", "explain", "verify HEAD", "runs list", "recover", "gc", "init"],
)
def test_no_verb_ends_in_a_traceback(closed: Repo, args: str) -> None:
    done = verb(closed, *args.split())
    assert b"Traceback" not in done.stderr, done.stderr
    assert done.returncode != 70


SAID = f"gitgates: {LOCAL} is only for this clone: git now ignores it (.git/info/exclude)\n"


@pytest.mark.parametrize("args", ["check", "run", "advice list"])
def test_personal_settings_are_ignored_once_they_are_seen(repo: Repo, args: str) -> None:
    repo.config(CONFIG)
    repo.commit_all("base")
    exclude = repo.write(".git/info/exclude", "mine")
    assert SAID not in repo.gitgates(*args.split()).stderr.decode()
    assert exclude.read_text() == "mine"
    repo.write(LOCAL, "jobs = 1\n")
    assert SAID in repo.gitgates(*args.split()).stderr.decode()
    assert exclude.read_text() == f"mine\n/{LOCAL}\n"
    assert repo.git("status", "--porcelain") == ""
    assert SAID not in repo.gitgates(*args.split()).stderr.decode()
    assert exclude.read_text() == f"mine\n/{LOCAL}\n"


def test_in_a_linked_worktree_it_is_the_exclude_of_the_repository(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.commit_all("base")
    repo.git("worktree", "add", "-q", "../linked")
    shutil.rmtree(repo.path / ".git/info")
    linked = Repo(repo.path.parent / "linked")
    linked.write(LOCAL, "jobs = 1\n")
    assert SAID in linked.gitgates("check").stderr.decode()
    assert linked.git("status", "--porcelain") == ""


def test_what_is_tracked_or_ignored_already_is_left(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.write(LOCAL, "jobs = 1\n")
    exclude = repo.path / ".git/info/exclude"
    before = exclude.read_bytes() if exclude.exists() else b""
    repo.write(".gitignore", "*.local.toml\n")
    assert SAID not in repo.gitgates("check").stderr.decode()
    repo.git("add", "-f", LOCAL)
    (repo.path / ".gitignore").unlink()
    assert SAID not in repo.gitgates("check").stderr.decode()
    assert (exclude.read_bytes() if exclude.exists() else b"") == before


@pytest.mark.slow
def test_where_that_cannot_be_written_it_is_said(closed: Repo) -> None:
    closed.path.chmod(0o700)
    closed.write(LOCAL, "jobs = 1\n")
    done = verb(closed, "check")
    assert done.returncode == 0
    why = f"{LOCAL} is not ignored by git, and .git/info/exclude cannot be written: Permission"
    assert why in done.stderr.decode()
