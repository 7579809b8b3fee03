"""A repository that another user owns: nothing of it is run or read, unless git trusts it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = """
[gates.g]
command = "touch ran"
[hooks.pre-commit]
gates = ["g"]
[hooks.Stop]
gates = ["g"]
"""
SOMEBODY = 65534
pytestmark = pytest.mark.slow  # some processes each


@pytest.fixture(name="foreign")
def _foreign(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Return a repository that git takes for another user's."""
    repo.config(CONFIG)
    repo.commit_all("first")
    repo.write("a.txt", "changed")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    return repo


def trust(repo: Repo) -> None:
    repo.git("config", "--global", "--add", "safe.directory", str(repo.path))


VERBS = (
    *("check", "gc", "init", "runs", "run pre-commit", "install-hooks", "doctor"),
    "git-hook none pre-commit",
)


def test_gitgates_refuses_what_git_refuses(foreign: Repo) -> None:
    for verb in VERBS:
        done = foreign.gitgates(*verb.split())
        assert (done.returncode, done.stdout) == (74, b""), verb
        said = done.stderr.decode()
        assert f"gitgates: {foreign.path}: git does not trust this repository: detected dub" in said
        assert f"  git config --global --add safe.directory {foreign.path}\n" in said
        assert not (foreign.path / "ran").exists()
        assert not (foreign.path / ".git/gitgates").exists()


def test_what_git_is_told_to_trust_is_trusted(foreign: Repo) -> None:
    trust(foreign)
    for verb in ("check", "run pre-commit"):
        done = foreign.gitgates(*verb.split())
        assert done.returncode == 0, done.stderr


def agent_hook(repo: Repo, event: str) -> tuple[int, bytes, bytes]:
    payload = {"session_id": "s", "cwd": str(repo.path), "hook_event_name": event, "prompt": "x"}
    done = repo.gitgates("agent-hook", "claude", stdin=json.dumps(payload).encode())
    return done.returncode, done.stdout, done.stderr


def test_an_agent_passes_and_the_reason_is_said(foreign: Repo) -> None:
    status, said, error = agent_hook(foreign, "SessionStart")
    assert status == 0
    assert "git does not trust this repository" in json.loads(said)["systemMessage"]
    assert b"git does not trust this repository" in error
    for event in ("UserPromptSubmit", "Stop"):
        status, said, error = agent_hook(foreign, event)
        assert (status, said) == (0, b"")
        assert b"git does not trust this repository" in error
    assert not (foreign.path / "ran").exists()
    assert not (foreign.path / ".git/gitgates").exists()


def test_an_agents_gates_run_where_git_trusts(foreign: Repo) -> None:
    trust(foreign)
    for event in ("SessionStart", "UserPromptSubmit"):
        agent_hook(foreign, event)
    foreign.write("a.txt", "changed again")
    assert agent_hook(foreign, "Stop")[0] == 0
    assert (foreign.path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("part", ["", ".git"])
def test_each_part_has_to_be_ours(repo: Repo, part: str) -> None:
    repo.config(CONFIG)
    os.chown(repo.path / part, SOMEBODY, SOMEBODY)
    done = repo.gitgates("check")
    assert done.returncode == 74
    assert b"git config --global --add safe.directory" in done.stderr
    assert repo.gitgates("check", env={"SUDO_UID": str(SOMEBODY)}).returncode == 0
    trust(repo)
    assert repo.gitgates("check").returncode == 0


def test_git_is_not_asked_about_our_own(repo: Repo, tmp_path: Path) -> None:
    repo.config(CONFIG)
    log = tmp_path / "asked"
    program = repo.path.parent / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> \'{log}\'\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    assert repo.gitgates("check", env=env).returncode == 0
    assert not log.exists()
