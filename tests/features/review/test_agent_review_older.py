"""What was committed or stashed before a session began is not its work, when it comes in."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin
from span_support import Colleague, long_ago, right_now
from test_agent_review import LINES, REVIEW, reason

COMMIT = "seq 60 > side.py; git add .; git commit -qm side"
MANY = "".join(f"name_{number} = {number}\n" for number in range(100))


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Return a session in a repository with an older branch, and an older stash."""
    long_ago(monkeypatch)
    repo.write("a.py", MANY)
    repo.commit_all("base")
    repo.git("checkout", "-qb", "older")
    repo.write("old.py", LINES)
    repo.write("a.py", f"{LINES}{MANY}")
    repo.commit_all("of the person")
    repo.git("checkout", "-q", "main")
    repo.write("stashed.py", LINES)
    repo.write("a.py", f"{MANY}{LINES}")
    repo.git("stash", "push", "-qu")
    agent = begin(repo, REVIEW)
    right_now(monkeypatch)
    return agent


def shell(agent: Agent, command: str) -> None:
    agent.pre("Bash", tool_input={"command": command}, tool_use_id=command)
    done = agent.repo.ask("sh", "-c", command)
    assert done.returncode == 0, done
    agent.post("Bash", tool_input={"command": command}, tool_use_id=command)


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "command",
    [
        "git cherry-pick older",
        "git cherry-pick -n older",
        "git checkout older -- old.py",
        "echo 2 > seed.py; git commit -qam own; git cherry-pick older",
        "git checkout -q older; git rebase -q main; git checkout -q main; git merge -q older",
        "git stash pop",
        "git stash apply; git add .; git commit -qm stash",
    ],
)
def test_what_comes_from_before_the_session_is_not_its_work(agent: Agent, command: str) -> None:
    shell(agent, command)
    assert "decision" not in agent.stop()


def test_commits_that_a_colleague_pushed(agent: Agent, tmp_path: Path) -> None:
    repo = agent.repo
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "origin.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    Colleague(repo, tmp_path / "theirs").push("theirs.py", LINES)
    shell(agent, "git fetch -q; git cherry-pick origin/main")
    assert "decision" not in agent.stop()
    Colleague(repo, tmp_path / "theirs").push("more.py", LINES)
    shell(agent, "git pull -q --rebase origin main")
    assert "decision" not in agent.stop()


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "command",
    [
        "git cherry-pick older; seq 60 >> old.py; git commit -qam more",
        "git cherry-pick -n older; seq 60 >> old.py",
        "git stash pop; seq 60 >> a.py",
        f"git checkout -qb side; {COMMIT}; git checkout -q main; git cherry-pick side",
        "seq 60 > x.py; git stash -qu; git stash pop",
        "git rm -q a.py; git commit -qm gone; git checkout HEAD~1 -- a.py; sed -i 1,60d a.py",
    ],
)
def test_what_the_session_adds_to_it_is(agent: Agent, command: str) -> None:
    shell(agent, command)
    reason(agent.stop())
