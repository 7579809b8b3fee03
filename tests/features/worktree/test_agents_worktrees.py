"""The linked worktree of an agent gets what gates need, while it begins to work."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_support import Agent, begin
from conftest import Repo

pytestmark = pytest.mark.slow

CONFIG = """
[worktree]
agents = true
setup = 'test -f .env; echo x >> "$OUT/log"; {setup}'
inputs = ["app.lock"]
copy = [".env"]
[gates.check]
command = "cat deps/installed"
[hooks.Stop]
gates = ["check"]
"""


def linked_agent(repo: Repo, setup: str, session: str = "s2") -> Agent:
    """Return a session in a linked worktree that is new."""
    repo.write(".gitignore", ".env\ndeps/\n")
    repo.write(".env", "secret")
    repo.write("app.lock", "1")
    begin(repo, CONFIG.format(setup=setup))
    repo.git("worktree", "add", "-q", "../linked")
    return Agent(Repo(repo.path.parent / "linked"), session)


def test_it_is_installed_once_and_gates_wait_for_it(repo: Repo, out: Path) -> None:
    agent = linked_agent(repo, "sleep 0.3; mkdir -p deps; cp app.lock deps/installed")
    for session in ("s2", "s3"):
        agent = Agent(agent.repo, session)
        agent.start()
        agent.prompt()
        agent.write("a.py", f"x = '{session}'\n")
        assert agent.stop() == {}
    assert (agent.repo.path / ".env").read_text() == "secret"
    assert not (repo.path / "deps").exists()
    assert (out / "log").read_text() == "x\n"


def test_where_a_session_did_not_begin_there_its_end_does_it(repo: Repo, out: Path) -> None:
    assert out.exists()
    agent = linked_agent(repo, "mkdir deps; touch deps/installed")
    agent.prompt()
    agent.write("a.py", "x = 1\n")
    assert "decision" not in agent.stop()
    assert (agent.repo.path / "deps/installed").exists()


def test_what_fails_is_told(repo: Repo, out: Path) -> None:
    assert out.exists()
    agent = linked_agent(repo, "echo no network; exit 7")
    agent.start()
    agent.prompt()
    agent.write("a.py", "x = 1\n")
    answer = agent.stop()
    assert answer["decision"] == "block"  # by the gate, which lacks it
    for text in (answer["reason"], answer["systemMessage"]):
        assert "the setup of this worktree has failed: `test -f .env;" in text
        assert "failed with exit status 7" in text


def test_nothing_is_written_through_a_link_to_another_worktree(repo: Repo, out: Path) -> None:
    agent = linked_agent(repo, "rm -rf deps/*; touch deps/installed")
    repo.write("deps/mine", "of the person")
    (agent.repo.path / "deps").symlink_to(repo.path / "deps")
    agent.start()
    agent.prompt()
    agent.write("a.py", "x = 1\n")
    assert f"deps is a link to {repo.path}/deps, and `setup`" in agent.stop()["reason"]
    assert (repo.path / "deps/mine").exists()
    assert not (out / "log").exists()
    (agent.repo.path / "deps").unlink()
    (agent.repo.path / "inner").mkdir()
    (agent.repo.path / "deps").symlink_to("inner")
    agent = Agent(agent.repo, "s3")
    agent.start()
    agent.prompt()
    agent.write("a.py", "x = 2\n")
    assert agent.stop() == {}


def test_the_main_worktree_is_left_alone(repo: Repo, out: Path) -> None:
    agent = linked_agent(repo, "mkdir deps; touch deps/installed")
    agent = Agent(repo)
    agent.start()
    agent.prompt()
    agent.write("a.py", "x = 1\n")
    assert agent.stop()["decision"] == "block"
    assert not (out / "log").exists()
