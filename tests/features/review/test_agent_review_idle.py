"""What changes while the agent is idle is not its own; and nothing of its own becomes so."""

from __future__ import annotations

import select
import time

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin
from test_agent_review import LINES, REVIEW, changed, reason

from gitgates.git.repo import Git

HALF = "".join(f"line = {number}\n" for number in range(35))
MORE = "".join(f"more = {number}\n" for number in range(35))


def let_go(agent: Agent) -> None:
    """Let the agent stop again and again until nobody holds it."""
    for number in range(4):
        agent.stop(again=bool(number), last_assistant_message=f"{time.time()}")


def act(agent: Agent) -> None:
    agent.pre("Bash", tool_input={"command": "make all"})


def test_a_line_of_the_person_does_not_take_a_file_from_the_agent(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", HALF)
    assert agent.stop() == {}
    repo.write("a.py", HALF + "# a note of the person\n")
    agent.prompt("go on")
    act(agent)
    agent.edit("a.py", HALF + "# a note of the person\n" + MORE)
    assert "`a.py` +71" in reason(agent.stop())


def test_issues_are_not_settled_by_a_line_of_the_person(repo: Repo) -> None:
    agent = begin(repo, '[review]\nmode = "require"\n' + REVIEW)
    agent.edit("a.py", LINES)
    let_go(agent)
    repo.write("a.py", LINES + "# note\n")
    agent.prompt("mend it please")
    act(agent)
    reason(agent.stop())


def test_a_file_that_both_changed_is_shown_without_marks_of_a_merge(repo: Repo) -> None:
    repo.write("big.py", LINES)
    repo.commit_all("big")
    agent = begin(repo, REVIEW)
    agent.edit("big.py", LINES.replace("line", "row"))
    let_go(agent)
    repo.write("big.py", LINES.replace("line", "row").replace("row = 3\n", "row = 33\n"))
    agent.prompt("go on")
    act(agent)
    reason(agent.stop())
    shown = repo.gitgates("review", "diff").stdout.decode()
    assert "<<<<<<<" not in shown
    assert shown.count("\n+row = ") == 60


def test_a_stash_of_the_person_brings_the_agents_work_back(repo: Repo) -> None:
    agent = changed(repo)
    let_go(agent)
    repo.git("stash", "-qu")
    agent.prompt("what is there?")
    assert agent.stop() == {}
    repo.git("stash", "pop", "-q")
    agent.prompt("go on")
    act(agent)
    agent.edit("b.py", "x = 1\n")
    said = reason(agent.stop())
    assert "`a.py` +60" in said


@pytest.mark.thorough
def test_a_branch_of_the_person_that_was_left_again(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    assert agent.stop() == {}
    _wait_for_the_next_second()
    repo.git("switch", "-qc", "park")
    repo.write("own.py", LINES)
    repo.commit_all("parked")
    repo.git("switch", "-q", "main")
    _wait_for_the_next_second()
    agent.prompt("what is this?")
    act(agent)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}


def _wait_for_the_next_second() -> None:
    """Wait: the log of HEAD counts in seconds, and what is of one second cannot be told apart."""
    until = int(time.time()) + 1.05  # git's own clock is a tick behind
    while (left_s := until - time.time()) > 0:
        select.select([], [], [], left_s)


def test_a_summary_does_not_end_the_rest(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}
    agent.send("PreCompact", trigger="manual")
    agent.sub_stop("", "c1")
    repo.write("theirs.py", LINES)
    agent.prompt("go on")
    act(agent)
    assert agent.stop() == {}


def test_a_stop_in_plan_mode_begins_a_rest(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    act(agent)
    agent.stop(permission_mode="plan")
    repo.write("theirs.py", LINES)
    agent.prompt("do it")
    act(agent)
    assert agent.stop() == {}


def test_nobody_works_before_the_first_prompt(repo: Repo) -> None:
    begin(repo, REVIEW)
    agent = Agent(repo, "s2")
    agent.start()
    repo.write("theirs.py", LINES)
    agent.prompt()
    act(agent)
    assert agent.stop() == {}


def test_a_server_in_the_background_is_no_work(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    act(agent)
    server = {"type": "shell", "status": "running"}
    assert agent.stop(background_tasks=[server]) == {}
    repo.write("theirs.py", LINES)
    agent.prompt("go on")
    act(agent)
    assert agent.stop() == {}


def test_a_skill_that_says_it_failed_is_no_review(repo: Repo) -> None:
    agent = changed(repo)
    failed = {"success": False, "commandName": "code-review"}
    agent.post("Skill", tool_input={"skill": "code-review"}, tool_response=failed)
    assert "there is no evidence of one" in reason(agent.stop())


def test_what_the_person_commits_of_it_stays_the_agents(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", HALF)
    assert agent.stop() == {}
    _wait_for_the_next_second()
    repo.commit_all("all of it")
    _wait_for_the_next_second()
    agent.prompt("go on")
    act(agent)
    agent.edit("b.py", MORE)
    assert "70 weighted lines (threshold 40)" in reason(agent.stop())


def test_what_is_asked_for_is_reviewed_though_the_person_has_committed_it(repo: Repo) -> None:
    agent = changed(repo)
    let_go(agent)
    _wait_for_the_next_second()
    repo.commit_all("all of it")
    _wait_for_the_next_second()
    agent.prompt("#review what you did")
    assert "60 weighted lines (threshold 40)" in reason(agent.stop())


@pytest.mark.thorough
def test_what_the_person_commits_and_rewrites_is_not_the_agents(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}
    _wait_for_the_next_second()
    repo.write("own.py", LINES)
    repo.commit_all("own")
    repo.write("own.py", LINES.replace("line", "row"))
    _wait_for_the_next_second()
    agent.prompt("go on")
    act(agent)
    agent.edit("a.py", "x = 2\n")
    assert agent.stop() == {}


@pytest.mark.thorough
def test_what_the_person_pulls_and_removes_is_not_the_agents(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    repo.git("branch", "theirs")
    repo.git("worktree", "add", "-q", "../theirs", "theirs")
    colleague = Repo(repo.path.parent / "theirs")
    colleague.write("theirs.py", LINES)
    colleague.commit_all("a colleague's")
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}
    _wait_for_the_next_second()
    repo.git("merge", "-q", "--ff-only", "theirs")
    _wait_for_the_next_second()
    agent.prompt("what is new?")
    assert agent.stop() == {}
    (repo.path / "theirs.py").unlink()
    agent.prompt("go on")
    act(agent)
    agent.edit("a.py", "x = 2\n")
    assert agent.stop() == {}


def test_a_file_of_the_agent_that_the_person_renames_stays_the_agents(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", HALF)
    assert agent.stop() == {}
    (repo.path / "a.py").rename(repo.path / "lib.py")
    agent.prompt("go on")
    act(agent)
    agent.edit("lib.py", HALF + MORE)
    assert "`lib.py` +70" in reason(agent.stop())


def test_the_end_of_a_sub_agent_begins_no_rest(repo: Repo) -> None:
    agent = begin(repo, REVIEW + '[hooks.SubagentStop]\ngates = ["review"]\n')
    assert agent.sub_stop() == {}
    agent.edit("a.py", LINES)  # by a tool that we do not hear of; then the person interrupts
    agent.prompt("go on")
    reason(agent.stop())


@pytest.mark.thorough
def test_many_commits_of_an_idle_time_are_asked_for_at_once(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}
    _wait_for_the_next_second()
    for number in range(20):
        repo.write("own.py", LINES * (number + 1))
        repo.commit_all(f"own {number}")
    _wait_for_the_next_second()
    agent.prompt("go on")
    act(agent)
    agent.edit("a.py", "x = 2\n")
    asked: list[str] = []
    lines = Git.lines

    def noted(git: Git, *args: str) -> list[str]:
        asked.append(args[0])
        return lines(git, *args)

    monkeypatch.setattr(Git, "lines", noted)
    assert agent.stop() == {}
    assert asked.count("rev-list") < 10
