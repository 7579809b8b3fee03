"""A session in the cloud, whose clone is new: git's hooks are installed as it begins, if asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import forked
import pytest
from install_support import BIN, FOREIGN, Repo, make_repo

CLOUD = {"CLAUDE_CODE_REMOTE": "true"}
FAILS = '[tool.gitgates.gates.g]\ncommand = "false"\n'
ASKS = f"[tool.gitgates]\ncloud_hooks = true\n{FAILS}"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path / "home")
    made.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
    made.configure("pre-commit", gate=ASKS)
    return made


def send(repo: Repo, event: str = "SessionStart", **env: str) -> str:
    """Deliver an event as the client does; return what is on stderr."""
    payload = {"session_id": "s", "hook_event_name": event, "cwd": str(repo.path)}
    env = {"CLAUDE_PROJECT_DIR": str(repo.path), **env}
    raw = json.dumps({**payload, "source": "startup"}).encode()
    command = ("agent-hook", "claude")
    done = forked.run(command, str(repo.path), {**repo.env, **env}, raw, hosts=True)
    assert done.returncode == 0
    return done.stderr.decode()


def test_the_first_commit_of_a_new_clone_is_checked(repo: Repo) -> None:
    assert send(repo, **CLOUD) == ""
    assert repo.hooks() == ["pre-commit", "pre-merge-commit"]
    assert "blocked by `g`" in repo.commit("a.txt").stderr
    before = {name: repo.hook(name).stat().st_mtime_ns for name in repo.hooks()}
    assert send(repo, **CLOUD) == ""  # resumed: nothing is written again
    assert {name: repo.hook(name).stat().st_mtime_ns for name in repo.hooks()} == before


def test_a_hook_of_others_still_runs(repo: Repo) -> None:
    repo.keep("pre-commit")
    send(repo, **CLOUD)
    assert "foreign ran" in repo.commit("a.txt").stdout + repo.commit("a.txt").stderr
    assert repo.hook("pre-commit.before-gitgates").read_bytes() == FOREIGN


def test_nothing_is_installed_elsewhere_or_unasked(repo: Repo) -> None:
    assert send(repo) == ""
    assert send(repo, CLAUDE_CODE_REMOTE="false") == ""
    assert send(repo, "UserPromptSubmit", **CLOUD) == ""
    assert repo.hooks() == []
    repo.configure("pre-commit", gate=FAILS)
    assert send(repo, **CLOUD) == ""
    assert repo.hooks() == []
    (repo.path / "pyproject.toml").unlink()
    assert send(repo, **CLOUD) == ""
    assert repo.hooks() == []


def test_why_it_could_not_be_done_is_said_and_the_session_goes_on(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "/nowhere/hooks")
    assert "git's hooks were not installed: core.hooksPath is `/nowhere/h" in send(repo, **CLOUD)
