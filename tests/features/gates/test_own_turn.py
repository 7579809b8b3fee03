"""A gate that waits at an agent's stop: within the host's limit, then by one command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from agent_support import COUNT, Agent
from conftest import Repo
from session_support import begin

from gitgates.proc.pool import Use
from gitgates.proc.resources import Resources, Wait

CONFIG = f"""
[gates.check]
command = '''{COUNT}; ! grep -n BAD *.py'''
resources = ["db"]
timeout = 3
[hooks.Stop]
gates = ["check"]
timeout = 1.6
"""
COMMAND = "`gitgates run Stop --wait`"


@pytest.fixture(name="other")
def _other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resources:
    """A run that holds the resource."""
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    other = Resources(os.environ, {})
    assert isinstance(other.take(Use("t", "", "/other"), ("db",)), tuple)
    return other


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    agent = begin(repo, CONFIG)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s1")
    monkeypatch.setenv("COUNT_ABS", str(agent.count_abs))
    return agent


def test_it_is_told_what_for_and_a_pass_of_the_command_counts(
    repo: Repo, other: Resources, agent: Agent
) -> None:
    agent.write("a.py", "good\n")
    for number in (1, 2):
        said = agent.stop(again=number > 1)
        assert said["decision"] == "block"
        assert "1 still waiting (`check`)" in said["reason"]
        assert "it waits for `db` after `t` in /other, place 1" in said["reason"]
        assert f"attempt {number} of 4" in said["reason"]
        assert COMMAND in said["reason"]
        assert "cannot-fix" not in said["reason"]
    assert agent.state().rounds[-1].statuses == (("check", "waiting"),)
    later = Resources(os.environ, {})
    assert isinstance(later.take(Use("t"), ("db",)), Wait)
    other.close()
    done = repo.gitgates("run", "Stop", "--wait")
    assert done.returncode == 0, done.stderr  # before who came after it was told
    later.close()
    assert b"check  passed" in done.stdout
    assert agent.stop(again=True) == {}
    assert agent.runs() == 1
    assert agent.outcomes() == ["blocked", "blocked", "passed"]


def test_a_failure_of_the_command_is_no_attempt(repo: Repo, other: Resources, agent: Agent) -> None:
    other.close()
    agent.write("a.py", "BAD\n")
    done = repo.gitgates("run", "Stop", "--wait")
    assert (done.returncode, b"a.py:1:BAD" in done.stdout) == (1, True)
    assert "attempt 1 of 4" in agent.stop()["reason"]
    agent.write("a.py", "good\n")
    assert agent.stop(again=True) == {}
    assert repo.gitgates("run", "Stop", "--wait").stdout == (
        b"gitgates: nothing to run: the gates passed on this content, or are skipped\n"
    )


@pytest.mark.parametrize(
    "words", [["--wait"], ["pre-commit", "--wait"], ["Stop", "check", "--wait"]], ids=" ".join
)
def test_wait_is_for_all_gates_of_an_ending(repo: Repo, words: list[str]) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("run", *words)
    assert done.returncode == 64
    assert b"--wait runs all gates of a hook that ends an agent's work" in done.stderr


def test_a_person_waits_anyway(repo: Repo) -> None:
    repo.config(CONFIG.replace(COUNT, "true"))
    repo.write("a.py", "good\n")
    assert repo.gitgates("run", "Stop", "--wait").returncode == 0
