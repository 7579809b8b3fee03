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


@pytest.mark.parametrize("start", ["", "main"])
def test_worktrees_of_a_bare_repository_from_above_and_from_within(
    repo: Repo, tmp_path: Path, start: str
) -> None:
    repo.config("[gates.a]\ncommand = 'test ! -e bad'\n[hooks.Stop]\ngates = ['a']\n")
    repo.commit_all("first")
    folder = tmp_path / "proj"
    repo.git("clone", "-q", "--bare", ".", str(folder / ".bare"))
    (folder / ".git").write_text("gitdir: ./.bare\n")
    above = Repo(folder)
    for name in ("main", "other", "third"):
        above.git("worktree", "add", "-q", "-f", name, "main", *(("-b", name) * (name != "main")))
    agent = Agent(Repo(folder))
    agent.env["CLAUDE_PROJECT_DIR"] = str(folder / start)
    at = {"cwd": str(folder / start)}
    agent.send("SessionStart", source="startup", **at)
    agent.send("UserPromptSubmit", prompt="go", **at)
    assert agent.send("Stop", stop_hook_active=False, **at) == {}
    # By a tool that names the file, and by a command that names it, wherever they are run.
    named = {"file_path": str(folder / "main/bad")}
    agent.pre("Write", "", tool_input=named, **at)
    (folder / "main/bad").touch()
    agent.post("Write", "", tool_input=named, **at)
    said = agent.send("Stop", stop_hook_active=False, **at)
    assert said["decision"] == "block"
    assert said["reason"].startswith(f"In {folder}/main: " if not start else "1 of 1 gate")
    (folder / "main/bad").unlink()
    assert agent.send("Stop", stop_hook_active=True, **at) == {}
    commit = {"command": f"git -C {folder}/other commit --no-verify -m x"}
    refused = agent.pre("Bash", "", tool_input=commit, **at)["hookSpecificOutput"]
    assert refused["permissionDecision"] == "deny"
    if not start:  # else another worktree's gates run where a file in it is named, as ever
        with agent.call(f"touch {folder}/other/bad >{folder}/other/log", **at):
            (folder / "other/bad").touch()
        (folder / "third/bad").touch()  # by somebody else
        blocked = agent.send("Stop", stop_hook_active=False, **at)
        assert blocked["reason"].startswith(f"In {folder}/other: 1 of 1 gate")
    assert not any("Traceback" in line for line in agent.said)


def test_a_worktree_whose_repository_is_gone_is_no_bug(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, MARK)
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (repo.path / ".git").rename(tmp_path / "gone")
    assert agent.send("Stop", stop_hook_active=False, cwd=str(tmp_path / "linked")) == {}
    assert "Traceback" not in "".join(agent.said)
    assert "git cannot read this repository" in agent.said[-1]
