"""An agent is at work, and somebody else writes in the same worktree: what counts for whom."""

from __future__ import annotations

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin
from test_agent_stop import NO_BAD, WAY_OUT

UNDO = "[undo]\nenabled = true\n"  # whose points tell who has changed what


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    return begin(repo, f"{NO_BAD}{UNDO}")


def write(agent: Agent, name: str, content: str) -> None:
    agent.pre("Write", name)
    agent.repo.write(name, content)
    agent.post("Write", name)


def shell(agent: Agent, command: str) -> None:
    agent.pre("Bash", tool_input={"command": command})
    agent.repo.ask("sh", "-c", command)
    agent.post("Bash", tool_input={"command": command})


def test_settings_that_somebody_else_is_editing_are_told_to_the_person(agent: Agent) -> None:
    good = (agent.repo.path / "pyproject.toml").read_text()
    agent.repo.write("pyproject.toml", good + "\n[tool.gitgates.hooks.Stop\n")
    told = agent.stop()
    assert "decision" not in told
    assert "pyproject.toml" in told["systemMessage"]
    agent.prompt("and why?")
    assert "decision" not in agent.stop()
    write(agent, "pyproject.toml", "[tool.gitgates.hooks.Stop\n")
    assert agent.stop()["decision"] == "block"  # now the agent has a part in it


def test_settings_that_were_broken_before_are_told_to_the_person(repo: Repo) -> None:
    begin(repo, NO_BAD)
    repo.write("pyproject.toml", "[tool.gitgates]\njobs = \n")
    repo.commit_all("broken")
    late = Agent(repo, "late")
    late.start()
    late.prompt()
    late.write("a.py", "good\n")
    told = late.stop()
    assert "decision" not in told
    assert "was not caused by this turn" in told["systemMessage"]


def test_settings_that_the_agent_breaks_with_an_edit_block(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace('["check"]', '["check", "review"]'))
    agent.pre("Write", "pyproject.toml")
    repo.write("pyproject.toml", "[tool.gitgates]\njobs = \n")
    agent.post("Write", "pyproject.toml")
    assert agent.stop()["decision"] == "block"


@pytest.mark.parametrize("listed", ['["check"]', '["check", "review"]'])
def test_a_failure_in_what_somebody_else_writes_names_it(repo: Repo, listed: str) -> None:
    agent = begin(repo, NO_BAD.replace('["check"]', listed) + UNDO)
    write(agent, "a.py", "good = 1\n")
    for command in ("ls", "echo 1 > made.txt"):
        shell(agent, command)
    repo.write("tests.py", "BAD\n")
    reason = agent.stop()["reason"]
    assert "changed by somebody else in the meantime: tests.py" in reason
    command = f"{WAY_OUT} 'tests.py is being written by somebody else'"
    agent.pre("Bash", tool_input={"command": command})
    env = {"CLAUDE_CODE_SESSION_ID": agent.session}
    done = repo.gitgates("cannot-fix", "check", "--reason", "tests.py is not mine", env=env)
    assert done.returncode == 0, done.stderr
    told = agent.stop(again=True)
    assert "decision" not in told
    assert "tests.py is not mine" in told["systemMessage"]


def test_what_a_shell_may_have_written_is_named_as_nobody_elses(agent: Agent) -> None:
    agent.edit("a.py", "BAD\n")
    assert "somebody else" not in agent.stop()["reason"]


def test_a_file_that_both_have_written_is_not_named_as_somebody_elses(agent: Agent) -> None:
    write(agent, "a.py", "good = 1\n")
    agent.repo.write("a.py", "BAD\n")
    agent.repo.write("b.py", "BAD\n")
    assert "in the meantime: b.py" in agent.stop()["reason"]


def test_a_worktree_that_an_agent_makes_inside_is_not_its_change(agent: Agent) -> None:
    shell(agent, "git worktree add -q .claude/worktrees/w1")
    assert (agent.repo.path / ".claude/worktrees/w1/seed.py").exists()
    assert agent.stop() == {}


def test_many_files_of_somebody_else_keep_the_way_out_in_sight(repo: Repo) -> None:
    agent = begin(repo, f"{NO_BAD}max_retries = 1\n{UNDO}")
    write(agent, "a.py", "good = 1\n")
    for number in range(12):
        repo.write(f"test_of_a_rather_long_name_{number}.py", "BAD\n")
    reason = agent.stop()["reason"]
    assert "and 2 more. A failure caused by them is not yours to fix" in reason
    write(agent, "a.py", "good = 2\n")
    told = agent.stop(again=True)["systemMessage"]
    assert "changed by somebody else in the meantime" in told
    assert "not yours to fix" not in told  # that is for the agent
