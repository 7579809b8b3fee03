"""Save points as an agent's session takes them: whose a change is, and what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_support import Agent, begin
from conftest import Repo
from points_support import undo

from gitgates.files.points import points as points_of_files
from gitgates.git.repo import find_repo

CONFIG = '[gates.x]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["x"]\n'


@pytest.fixture
def agent(repo: Repo) -> Agent:
    """A session that has begun, and has changed something."""
    agent = begin(repo, CONFIG)
    command(agent, "echo 1 > first", lambda: repo.write("first", "1\n"))
    return agent


def command(agent: Agent, text: str, run: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Have an agent run a command; return what the host is told afterwards."""
    fields: Any = {"tool_input": {"command": text}, "tool_use_id": text}
    assert "ask" not in json.dumps(agent.pre("Bash", **fields))
    run()
    return agent.post("Bash", **fields)


def points(repo: Repo) -> list[dict[str, Any]]:
    """Return the points of a worktree, the newest first."""
    listed: list[dict[str, Any]] = json.loads(undo(repo, "--format", "json").stdout)["points"]
    return listed


def test_what_is_found_changed_after_a_reading_command_is_somebody_elses(agent: Agent) -> None:
    agent.repo.write("first", "by a person\n")
    command(agent, "cat first")
    command(agent, "echo 2 > second", lambda: agent.repo.write("second", "2\n"))
    assert [point["by"] for point in points(agent.repo)] == ["agent", "others", "agent"]


# Another worktree of the repository


@pytest.fixture
def linked(agent: Agent) -> Repo:
    """A worktree beside that of the session, with work of a person in it."""
    agent.repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    linked = Repo(agent.repo.path.parent / "linked")
    linked.write("seed.py", "seed = 2\n").chmod(0o755)
    linked.write("new/file", b"\xff")
    return linked


@pytest.mark.parametrize(
    "removes",
    ["rm -rf ../linked/new", "git worktree remove --force ../linked", "rm -rf ../linked"],
)
def test_what_is_in_another_worktree_is_asked_about(linked: Repo, removes: str) -> None:
    agent = Agent(Repo(linked.path.parent / "repo"))
    assert_asks(agent, removes, "another worktree")


def assert_asks(agent: Agent, text: str, why: str) -> None:
    answer = agent.pre("Bash", tool_input={"command": text}, tool_use_id=text)
    own = answer["hookSpecificOutput"]
    assert own["permissionDecision"] == "ask", answer
    assert why in own["permissionDecisionReason"]


def test_what_breaks_the_configuration_is_undone(repo: Repo) -> None:
    agent = begin(repo, '[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    before = (repo.path / "pyproject.toml").read_bytes()
    agent.pre("Bash", "", tool_input={"command": "true > b"}, tool_use_id="t1")
    (repo.path / "pyproject.toml").write_text("[tool.gitgates\n")
    agent.post("Bash", "", tool_input={"command": "true > b"}, tool_use_id="t1")
    done = repo.gitgates("undo", "--last")
    assert done.returncode == 0, done.stderr
    assert (repo.path / "pyproject.toml").read_bytes() == before


def test_what_a_person_permits_comes_back_as_well(repo: Repo) -> None:
    rules = '[guard]\nlost_work = "ask"\n'
    agent = begin(repo, f'[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n{rules}')
    repo.write("seed.py", "work\n")
    call = {"tool_input": {"command": "git reset --hard"}, "tool_use_id": "t1"}
    answer = agent.pre("Bash", "", **call)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"
    repo.git("reset", "-q", "--hard")
    agent.post("Bash", "", **call)
    assert repo.gitgates("undo", "--last").returncode == 0
    assert (repo.path / "seed.py").read_text() == "work\n"


@pytest.mark.parametrize(("rule", "verdict"), [("deny", "deny"), ("ask", "ask"), ("save", "")])
def test_rules_hold_where_no_points_are_taken(repo: Repo, rule: str, verdict: str) -> None:
    rules = f'[guard]\nlost_work = "{rule}"\n[undo]\nenabled = false\n'
    agent = begin(repo, f'[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n{rules}')
    repo.write("seed.py", "work\n")
    answer = agent.pre("Bash", "", tool_input={"command": "git reset --hard"})
    own = answer.get("hookSpecificOutput", {})
    assert own.get("permissionDecision", "") == verdict
    assert "gitgates undo" not in own.get("permissionDecisionReason", "")
    assert not points_of_files(find_repo(str(repo.path), {}))
