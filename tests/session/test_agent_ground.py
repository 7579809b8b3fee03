"""Gates are commands: only those of the repository that the session was started in run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin

MARK = """
[gates.mark]
command = "echo ran >> \\"$COUNT_ABS\\"; false"
[hooks.PostToolUse]
gates = ["mark"]
[hooks.Stop]
gates = ["mark"]
"""


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    agent = begin(repo, MARK)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    return agent


def foreign(path: Path) -> Repo:
    """Return a repository that somebody else wrote, with gates of its own."""
    other = Repo.init(path)
    hooks = "".join(f'[hooks.{name}]\ngates = ["evil"]\n' for name in ("PostToolUse", "Stop"))
    other.config(f'[gates.evil]\ncommand = "touch evil-ran"\n{hooks}')
    other.write("x.py", "x\n")
    return other


def test_a_foreign_repository_runs_nothing_of_its_own(agent: Agent, tmp_path: Path) -> None:
    other = foreign(tmp_path / "other")
    assert agent.post(tool_input={"file_path": str(other.path / "x.py")})["decision"] == "block"
    agent.write("a.py", "x\n")
    assert agent.stop(cwd=str(other.path))["decision"] == "block"
    assert agent.runs() == 2  # of the project: a tool was used, and it has changed
    assert not (other.path / "evil-ran").exists()


def test_nor_does_one_that_was_cloned_into_the_project(agent: Agent) -> None:
    other = foreign(agent.repo.path / "third-party")
    agent.post(tool_input={"file_path": str(other.path / "x.py")})
    assert agent.runs() == 1
    assert not (other.path / "evil-ran").exists()


def test_a_worktree_of_the_project_is_its_own_ground(agent: Agent, tmp_path: Path) -> None:
    agent.repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked/a.py").write_text("x\n")
    said = agent.post(tool_input={"file_path": str(tmp_path / "linked/a.py")})
    assert "linked" in said["reason"]


def test_in_a_folder_of_repositories_each_is_its_own(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, MARK)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path.parent)
    agent.write("a.py", "x\n")
    assert agent.post()["decision"] == "block"
    far = foreign(tmp_path.parent / f"{tmp_path.name}-far")
    assert agent.post(tool_input={"file_path": str(far.path / "x.py")}, cwd=str(far.path)) == {}
    assert "is not the repository that the session was started in" in agent.said[-1]
    assert not (far.path / "evil-ran").exists()


def test_in_a_folder_of_repositories_a_command_is_about_where_it_goes(
    repo: Repo, tmp_path: Path
) -> None:
    agent = begin(repo, MARK)
    other = Repo.init(tmp_path / "other")
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path.parent)
    for cwd in (repo.path.parent, other.path):
        for command in (
            f"cd {repo.path} && rm -rf .git/hooks",
            f"cd '{os.path.relpath(repo.path, cwd)}'; git commit -n",
            f"ls; git -C {os.path.relpath(repo.path, cwd)} commit -nm x",
        ):
            said = agent.pre("Bash", "", tool_input={"command": command}, cwd=str(cwd))
            assert said["hookSpecificOutput"]["permissionDecision"] == "deny", command
        fine = f"cd {other.path} && git commit -n; rm -rf .git/hooks; ls {repo.path}/.git"
        assert agent.pre("Bash", "", tool_input={"command": fine}, cwd=str(cwd)) == {}


def test_in_a_folder_of_repositories_one_that_comes_later_runs_nothing(
    repo: Repo, tmp_path: Path
) -> None:
    there = foreign(tmp_path / "there")
    agent = begin(repo, MARK)
    agent.env["CLAUDE_PROJECT_DIR"] = str(tmp_path)
    stamp = datetime.now(UTC).isoformat()
    transcript = tmp_path / "s1.transcript"
    transcript.write_text(f'{{"type": "mode"}}\n{{"type": "user", "timestamp": "{stamp}"}}\n')
    source = foreign(tmp_path.parent / f"{tmp_path.name}-far")
    source.commit_all("evil")
    source.git("clone", "-q", str(source.path), str(tmp_path / "cloned"))
    os.utime(tmp_path / "cloned/.git/description", (1, 1))  # as an archive may claim
    for name in ("cloned", "there"):
        agent.post(path="", tool_input={"file_path": str(tmp_path / name / "x.py")})
    agent.send("Stop", cwd=str(tmp_path / "cloned"), stop_hook_active=False)
    assert f"{tmp_path}/cloned did not exist when the session began" in agent.said[-1]
    assert not (tmp_path / "cloned/evil-ran").exists()
    assert (there.path / "evil-ran").exists()
    assert agent.post()["decision"] == "block"  # of one that the session has been in already
    copy = tmp_path / "copy"  # with the journal of this session in it
    source.ask("cp", "-a", str(repo.path), str(copy))
    (copy / "a.py").write_text("x\n")
    named = {"file_path": str(copy / "a.py")}
    assert agent.post(path="", tool_input=named, cwd=str(copy)) == {}
    assert f"{copy} did not exist when the session began" in agent.said[-1]


def test_where_nobody_tells_when_the_session_began_only_its_first_events_are_answered(
    repo: Repo, tmp_path: Path
) -> None:
    agent = begin(repo, MARK)
    agent.env["CLAUDE_PROJECT_DIR"] = str(tmp_path)
    other = foreign(tmp_path / "other")
    agent.post(tool_input={"file_path": str(other.path / "x.py")})
    assert not (other.path / "evil-ran").exists()
    agent.send("UserPromptSubmit", cwd=str(other.path), prompt="go")
    agent.post(tool_input={"file_path": str(other.path / "x.py")})
    assert (other.path / "evil-ran").exists()
