"""The reminder in daily life: questions, other people, branches, worktrees, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from review_support import document
from session_support import NO_UNDO, as_person, begin
from test_agent_review import LINES, REVIEW, changed, outcomes, reason, say


def test_a_question_after_an_agent_was_let_go_is_not_blocked_again(repo: Repo) -> None:
    agent = changed(repo)
    for number in range(4):
        agent.stop(again=bool(number), last_assistant_message=str(number))
    assert outcomes(agent) == ["blocked"] * 3 + ["breaker"]
    for text in ("why?", "thanks"):
        agent.prompt(text)
        assert agent.stop() == {}
    agent.edit("b.py", "x = 1\n")
    agent.prompt("go on")
    reason(agent.stop())


def test_a_session_that_only_reads_is_not_asked_for_what_others_change(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    repo.write("theirs.py", LINES)
    assert agent.stop() == {}
    agent.edit("more.py", LINES)
    said = reason(agent.stop())
    assert "`more.py` +60" in said
    assert "theirs.py" not in said


def test_what_changes_while_the_agent_is_idle_is_not_its_own(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}
    repo.write("theirs.py", LINES)
    repo.commit_all("the person's")
    agent.prompt("and now?")
    agent.edit("a.py", "x = 2\n")
    assert agent.stop() == {}
    agent.prompt("more")
    agent.edit("b.py", LINES)
    said = reason(agent.stop())
    assert "`b.py`" in said
    assert "theirs.py" not in said


def test_what_changes_while_it_is_idle_voids_no_review(repo: Repo) -> None:
    agent = changed(repo)
    agent.post("Skill", tool_input={"skill": "code-review"})
    assert agent.stop() == {}
    repo.write("theirs.py", LINES)
    agent.send("SessionStart", source="resume")
    agent.prompt("a typo")
    agent.edit("a.py", LINES.replace("line = 7\n", "line = 70\n"))
    assert agent.stop() == {}


def test_what_a_background_agent_writes_is_the_sessions(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    task = {"type": "subagent", "status": "running"}
    assert agent.stop(background_tasks=[task]) == {}
    agent.edit("b.py", LINES)
    agent.prompt("and now?")
    reason(agent.stop())


def calls(form: str) -> str:
    return "".join(f"x{n} = call(a{n}, b{n})\n".replace(", ", form) for n in range(60))


WRAPPED = calls(",\n    ").replace("(", "(\n    ").replace(")", ",\n)")


def weight(repo: Repo) -> tuple[bool, float, float, list[str]]:
    """Return what `review status` makes of the change: significant, lines, files, and why."""
    change = document(repo)["change"]
    whys = [one["why"] for one in change["paths"]]
    return change["significant"], change["lines"], change["files"], whys


def test_a_commit_on_a_branch_that_was_left_again(repo: Repo) -> None:
    agent = changed(repo)
    with agent.call():
        repo.git("checkout", "-qb", "feature")
        repo.commit_all("work")
        repo.git("checkout", "-q", "main")
    assert "`a.py` +60" in reason(agent.stop())


def test_a_review_in_a_worktree_holds_where_the_commits_come_to(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, REVIEW)
    repo.git("worktree", "add", "-q", "-b", "work", "../linked")
    linked = Repo(tmp_path / "linked")
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    agent.send("PreToolUse", cwd=str(linked.path), tool_name="Bash", tool_use_id="x")
    linked.write("a.py", LINES)
    linked.commit_all("work")
    agent.post("Skill", cwd=str(linked.path), tool_input={"skill": "code-review"})
    with agent.call():
        repo.git("merge", "-q", "work")
    assert agent.stop() == {}


@pytest.mark.slow
def test_a_worktree_that_only_the_shell_has_seen_is_asked_for_when_it_is_merged(
    repo: Repo, tmp_path: Path
) -> None:
    agent = begin(repo, REVIEW)
    with agent.call():
        repo.git("worktree", "add", "-q", "-b", "side", "../side")
        side = Repo(tmp_path / "side")
        side.write("a.py", LINES)
        side.commit_all("work")
    with agent.call():
        repo.git("merge", "-q", "side")
        repo.git("worktree", "remove", "../side")
        repo.git("branch", "-qd", "side")
    assert "`a.py` +60" in reason(agent.stop())


def test_instructions_run_where_the_change_is(repo: Repo, tmp_path: Path) -> None:
    agent = changed(repo)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    repo.git("worktree", "add", "-q", "../linked", "HEAD")
    said = reason(agent.stop(cwd=str(tmp_path / "linked")))
    assert f"cd {repo.path} && gitgates review done" in said
    assert f"cd {repo.path} && gitgates review skip" in said


NOT_IN_FORCE = (
    "gitgates: this session keeps the policy settings that it started with; to apply the "
    "change, run in a terminal:"
    " gitgates approve rules"
)


def test_settings_that_change_in_the_session_are_told(repo: Repo) -> None:
    agent = changed(repo)
    repo.config("[review]\nmin_lines = 500\n" + REVIEW + NO_UNDO)
    told = agent.stop()
    since = "since this session began"
    changes = f"gitgates: changed in the configuration {since}: gate `review`\n"
    assert told["systemMessage"] == changes + NOT_IN_FORCE
    reason(told)
    as_person(repo, "approve", "rules")
    assert agent.stop(again=True) == {}


def test_a_gate_that_is_taken_out_in_the_session_is_told(repo: Repo) -> None:
    agent = changed(repo)
    repo.config('[gates.ok]\ncommand = "true"\n[hooks.Stop]\ngates = ["ok"]\n')
    gone = "gone from the configuration since this session began: gate `review`"
    told = agent.stop()
    assert gone in told["systemMessage"]
    assert NOT_IN_FORCE in told["systemMessage"]
    reason(told)
    as_person(repo, "approve", "rules")
    assert agent.stop(again=True) == {}


def test_what_is_let_go_without_a_review_is_said_so(repo: Repo) -> None:
    agent = changed(repo)
    for number in range(3):
        reason(agent.stop(again=bool(number), last_assistant_message=str(number)))
    told = agent.stop(again=True, last_assistant_message="end")["systemMessage"]
    assert "review: not reviewed, and the agent was allowed to stop after 3 blocks" in told


def test_the_first_ways_are_those_that_we_bring(repo: Repo) -> None:
    config = '[review]\nskills = ["*-review", "review"]\nagents = ["*"]\n' + REVIEW
    repo.write(".claude/agents/reviewer.md", "x")
    repo.write(".claude/commands/gitgates/review.md", "x")
    repo.write(".claude/skills/review/SKILL.md", "x")
    said = reason(changed(repo, config).stop())
    assert "start a sub-agent of the type `reviewer`, and wait" in said
    assert "use the skill `gitgates:review` or `review`" in said


@pytest.mark.thorough
def test_a_slow_snapshot_loses_no_prompt(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, REVIEW)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 30\n")
    slow.chmod(0o755)
    agent.env["PATH"] = f"{slow.parent}:/usr/bin:/bin"
    answer = agent.prompt("#review do it")
    assert "an independent review is required" in answer["systemMessage"]
    assert "did not finish in time" in "".join(agent.said)
    agent.said.clear()
    del agent.env["PATH"]
    agent.edit("a.py", "x = 1\n")
    assert agent.said == []  # what git had started holds no lock any more
    assert "independent review" in reason(agent.stop())
    assert "#review do it" in say(agent, "review", "diff").stdout.decode()


def test_content_of_before_an_unheard_stop_is_still_asked_about(repo: Repo) -> None:
    agent = changed(repo)  # then the person interrupts: no stop comes
    agent.prompt("why?")
    reason(agent.stop())


def test_facts_of_others_do_not_break_a_stop(repo: Repo) -> None:
    agent = changed(repo)
    from gitgates.store.log import session_journal

    journal = session_journal(f"{repo.path}/.git/gitgates", agent.session)
    gone: dict[str, Any] = {"what": "marker", "how": "skill", "tree": "0" * 40, "head": ""}
    journal.append(gone, {"what": "rest", "tree": 7}, {"what": "settings"})
    assert "it cannot be compared" in reason(agent.stop())


def test_a_review_of_nothing_says_so(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    done = say(agent, "review", "done", "--summary", "x")
    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"gitgates: nothing relevant has changed in {repo.path} since the session began\n"
        "  If the change is in another worktree, run this there.\n"
    )
