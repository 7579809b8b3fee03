"""What was lost once, with a real shell: all of it comes back, byte for byte, or is asked about."""

from __future__ import annotations

import errno
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from agent_support import Agent
from agent_support import begin as begin_session
from conftest import Repo
from points_support import files_of, found, undo

from gitgates.drivers import recorder
from gitgates.features.undo.moments import recorded
from gitgates.store.log import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow
CONFIG = '[gates.x]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["x"]\n'


@pytest.fixture
def agent(repo: Repo) -> Agent:
    """A session in a repository with work of a person: ignored, untracked, staged, and branches."""
    repo.write("a", "1\n")
    repo.write("src/a.py", "a = 1\n")
    repo.write(".gitignore", "data/\nconfig/\n.env\ngen/log/\n")
    repo.commit_all("one")
    repo.git("checkout", "-qb", "feat")
    repo.write(".env", "THEIRS=1\n")
    repo.git("add", "-f", ".env")
    repo.git("commit", "-qm", "feat")
    repo.git("checkout", "-q", "main")
    for number in (2, 3):
        repo.write("a", f"{number}\n")
        repo.git("commit", "-qam", f"commit {number}")
    for name in ("data/users.csv", "data/deep/b.csv", "config/skills/x", "gen/log/l", "gen/p.png"):
        repo.write(name, f"{name}\r\n")
    repo.write(".env", "KEY=1\n").chmod(0o600)
    repo.write("src/a.py", "a = 2\n")
    (repo.path / "data/deep").chmod(0o700)
    (repo.path / "gen").chmod(0o2775)
    return begin_session(repo, CONFIG)


def call(agent: Agent, use: str, command: str) -> bool:
    """Have an agent run a command; return whether it was asked about, or refused."""
    fields: Any = {"tool_input": {"command": command}, "tool_use_id": use}
    answer = agent.pre("Bash", "", **fields).get("hookSpecificOutput", {})
    if answer.get("permissionDecision") in ("ask", "deny"):
        return True
    env = {**os.environ, "GIT_MERGE_AUTOEDIT": "no"}
    subprocess.run(
        ["bash", "-c", command], cwd=agent.repo.path, env=env, capture_output=True, check=False
    )
    agent.post("Bash", "", **fields)
    return False


COMMANDS = (
    *("rm data/users.csv", "cd data && rm *.csv", "sed -i d data/users.csv", "echo | tee .env"),
    *("cp a data/users.csv", "find data -name '*.csv' -exec rm {} +", "rm -rf data gen"),
    *("git ls-files -o | xargs rm", "git clean -fdx config/skills", "git clean -fdxq"),
    *("mv gen/*.png gen/log/ && rm -rf gen", "mv data old && rm -rf old", "chmod -R 700 gen"),
    *("git checkout -f feat", "git merge feat", "git reset -q --hard feat", "git stash -a -q"),
    *("git restore --source=feat .env", "git stash -aq && git stash clear"),
    "python3 -c \"import shutil, os; shutil.rmtree('data'); os.remove('.env')\"",
    "git reset -q --hard HEAD~2 && git reflog expire --expire=now --all && git gc -q --prune=now",
    "git branch -D feat && git reflog expire --expire=now --all && git gc -q --prune=now",
    "git commit -q --amend -m other && git reflog expire --expire=now --all && git prune",
    "sed -i d .gitignore",
    *("find . -type f ! -name '*.py' -delete", "ls -A | grep -v src | xargs rm -rf"),
    "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +",
    "find . -path ./.git -prune -o -name '*.csv' -exec rm {} +",
    "find . ! -path './.git/*' -type f -delete",
)


@pytest.mark.samples(14)
@pytest.mark.parametrize("command", COMMANDS)
def test_it_comes_back_or_is_asked_about(agent: Agent, command: str) -> None:
    before = state(agent.repo)
    if call(agent, "t1", command):
        assert state(agent.repo) == before
        return
    assert state(agent.repo) != before, "the command has not done what it is here for"
    undo(agent.repo, "1", "--index", "--branch")
    assert state(agent.repo) == before


def state(repo: Repo) -> dict[str, object]:
    """Return files, permissions of folders, branches and the index."""
    now: dict[str, object] = {**files_of(repo.path)}
    now |= {
        name: (repo.path / name).stat().st_mode
        for name in ("data/deep", "gen")
        if (repo.path / name).is_dir()
    }
    now["refs"] = repo.git("for-each-ref", "refs/heads")
    now["head"] = repo.git("symbolic-ref", "HEAD")
    now["index"] = repo.git("ls-files", "--stage")
    return now


@pytest.mark.parametrize("change", [lambda path: path.write_text("x"), lambda path: path.unlink()])
def test_an_editing_tool_over_an_ignored_file(agent: Agent, change: Callable[..., object]) -> None:
    agent.pre("Write", ".env", tool_use_id="t1")
    change(agent.repo.path / ".env")
    agent.post("Write", ".env", tool_use_id="t1")
    undo(agent.repo, "1")
    assert (agent.repo.path / ".env").read_text() == "KEY=1\n"
    assert (agent.repo.path / ".env").stat().st_mode & 0o777 == 0o600


def test_an_editing_tool_over_what_is_too_large_to_be_saved_is_asked_about(agent: Agent) -> None:
    for name in ("huge", "data/huge"):
        with agent.repo.write(name, "").open("wb") as file:
            file.truncate(101 << 20)
        said = agent.pre("Write", name, tool_use_id=name)
        assert "cannot be saved first" in str(said), name
        assert said["hookSpecificOutput"]["permissionDecision"] == "ask"


def test_where_nothing_can_be_written_a_command_is_asked_about(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_args: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "journal")

    monkeypatch.setattr(Journal, "append_and_read", fails)
    assert call(agent, "t1", "make")
    assert not call(agent, "t2", "cat a")


def test_a_tool_that_nothing_is_known_of(agent: Agent) -> None:
    fields: Any = {"tool_input": {"x": "y"}, "tool_use_id": "t1"}
    agent.pre("mcp__files__write", "", **fields)
    (agent.repo.path / "data/users.csv").unlink()
    told = agent.post("mcp__files__write", "", **fields)
    assert "data/users.csv" in told["systemMessage"]
    undo(agent.repo, "--last")
    assert (agent.repo.path / "data/users.csv").exists()


# Out of time


def test_what_there_is_no_time_to_save_is_asked_about(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_LOOK_S", 0.0)
    agent.repo.write("big", "1\n" * 1000)
    for command in ("rm -rf data", "make", "git branch -v new"):
        assert call(agent, command, command), command
    assert not call(agent, "t9", "cat a | wc")


# Whose it is


def test_what_a_person_writes_after_a_refused_call_stays(agent: Agent) -> None:
    fields: Any = {"tool_input": {"command": "make"}, "tool_use_id": "t1"}
    agent.pre("Bash", "", **fields)
    agent.stop()
    agent.repo.write("a", "by a person\n")
    agent.prompt()
    call(agent, "t2", "echo 1 > new")
    undo(agent.repo, "--session", "s1")
    assert (agent.repo.path / "a").read_text() == "by a person\n"
    assert not (agent.repo.path / "new").exists()


def test_the_index_is_put_back_path_by_path_after_a_commit(agent: Agent) -> None:
    repo = agent.repo
    repo.write("staged", "by a person\n")
    repo.git("add", "staged")
    call(agent, "t1", "git rm -q --cached a && git add src/a.py")
    repo.git("add", "a")
    repo.git("commit", "-qm", "by a person")
    undo(repo, "--last", "--index")
    repo.git("commit", "-qam", "next", "--allow-empty")
    assert "staged" in repo.git("ls-tree", "--name-only", "HEAD")
    assert "a" in repo.git("ls-tree", "--name-only", "HEAD").split("\n")


def test_what_a_person_has_committed_stays_in_the_index(agent: Agent) -> None:
    call(agent, "t1", "git add -f data/users.csv")
    agent.repo.git("commit", "-qm", "by a person")
    undo(agent.repo, "--last", "--index")
    assert "D " not in agent.repo.git("status", "--porcelain")


# Git's own state


def conflicting(repo: Repo) -> None:
    repo.git("stash", "-q")
    repo.git("checkout", "-qb", "side", "HEAD~2")
    repo.write("a", "side\n")
    repo.git("commit", "-qam", "side")
    repo.git("checkout", "-q", "main")


def test_a_merge_of_the_agent_is_undone_with_what_git_keeps_of_it(agent: Agent) -> None:
    conflicting(agent.repo)
    agent.stop()
    agent.prompt()
    call(agent, "t1", "git merge side")
    assert (agent.repo.path / ".git/MERGE_HEAD").exists()
    undo(agent.repo, "--last", "--index")
    assert not (agent.repo.path / ".git/MERGE_HEAD").exists()
    assert agent.repo.git("status", "--porcelain", "a") == ""


def test_a_merge_of_a_person_comes_back_with_what_git_keeps_of_it(agent: Agent) -> None:
    conflicting(agent.repo)
    agent.repo.ask("git", "merge", "side")
    agent.stop()
    agent.prompt()
    merge = (agent.repo.path / ".git/MERGE_HEAD").read_bytes()
    before = agent.repo.git("ls-files", "--stage")
    call(agent, "t1", "git merge --abort")
    undo(agent.repo, "--last", "--index")
    assert (agent.repo.path / ".git/MERGE_HEAD").read_bytes() == merge
    assert agent.repo.git("ls-files", "--stage") == before


def test_a_rebase_that_waits_is_undone_with_its_branch(agent: Agent) -> None:
    conflicting(agent.repo)
    agent.stop()
    agent.prompt()
    call(agent, "t1", "git rebase side")
    assert (agent.repo.path / ".git/rebase-merge").is_dir()
    undo(agent.repo, "--last", "--index", "--branch")
    assert not (agent.repo.path / ".git/rebase-merge").exists()
    assert agent.repo.git("symbolic-ref", "--short", "HEAD") == "main"


# Where it is


def test_a_repository_that_was_moved_has_its_points(agent: Agent) -> None:
    call(agent, "t1", "rm -rf data")
    moved = agent.repo.path.rename(agent.repo.path.with_name("moved"))
    repo = Repo(moved)
    undo(repo, "1")
    assert (moved / "data/users.csv").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owners_come_back(agent: Agent) -> None:
    os.chown(agent.repo.path / ".env", 12345, 23456)
    agent.stop()
    agent.prompt()
    call(agent, "t1", "echo 1 > new")
    call(agent, "t2", "rm .env")
    undo(agent.repo, "--last")
    now = (agent.repo.path / ".env").stat()
    assert (now.st_uid, now.st_gid) == (12345, 23456)


def test_git_itself_may_be_removed_and_the_points_stay(agent: Agent) -> None:
    assert call(agent, "t1", "rm -rf .git")
    call(agent, "t2", "python3 -c \"import shutil; shutil.rmtree('data')\"")
    assert [point.number for point in recorded(found(agent.repo))] == [1]


@pytest.mark.parametrize("adds", [True, False])
def test_its_own_file_in_which_a_person_has_added_lines_is_told(agent: Agent, adds: bool) -> None:  # noqa: FBT001 - a parameter
    agent.edit("own.py", "x = 1\n")
    if adds:
        agent.repo.write("own.py", "x = 1\ny = 2\n")
    agent.edit("own.py", "x = 1\ny = 2\nz = 3\n")
    known: dict[str, Any] = {"tool_input": {"command": "rm own.py"}, "tool_use_id": "u1"}
    agent.pre("Bash", **known)
    (agent.repo.path / "own.py").unlink()
    assert ("what no commit has: own.py" in str(agent.post("Bash", **known))) is adds
