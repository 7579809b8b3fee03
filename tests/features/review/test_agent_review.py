"""The reminder: an agent that has changed much is asked whether that was reviewed."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import as_person, begin

REVIEW = '[hooks.Stop]\ngates = ["review"]\n'
CHECK = """
[gates.check]
command = "test ! -e bad"
"""
LINES = "".join(f"line = {number}\n" for number in range(60))


def reason(answer: dict[str, Any]) -> str:
    """Return why an agent may not stop."""
    assert answer.get("decision") == "block", answer
    return str(answer["reason"])


def say(agent: Agent, *args: str, agent_id: str = "", agent_type: str = "") -> Any:
    """Have the agent run a command of ours, as its shell tool does; return what came of it."""
    within = {"agent_id": agent_id, "agent_type": agent_type} if agent_id else {}
    line = shlex.join(("gitgates", *args))
    own = agent.pre("Bash", tool_input={"command": line}, **within)["hookSpecificOutput"]
    assert "permissionDecision" not in own, own
    args = tuple(shlex.split(own["updatedInput"]["command"])[1:])
    return agent.repo.gitgates(*args, env={"CLAUDE_CODE_SESSION_ID": agent.session})


def now() -> str:
    """Return the time as a transcript says it."""
    return datetime.now(UTC).isoformat()


def changed(repo: Repo, config: str = REVIEW, text: str = LINES) -> Agent:
    agent = begin(repo, config)
    agent.edit("a.py", text)
    return agent


def outcomes(agent: Agent) -> list[str]:
    return [fact["outcome"] for fact in agent.facts() if fact.get("gates") == "review"]


def test_a_change_of_sixty_lines_is_blocked(repo: Repo) -> None:
    agent = changed(repo)
    assert reason(agent.stop()) == REMINDER.format("", YOURSELF)
    again = "\nThis is the {} request."
    second = reason(agent.stop(again=True, last_assistant_message="2"))
    assert second == REMINDER.format("", YOURSELF) + again.format("second")
    third = reason(agent.stop(again=True, last_assistant_message="3"))
    last = " After that, you may stop, and the person is told why."
    assert third == REMINDER.format("", YOURSELF) + again.format("third") + last


def test_a_run_whose_gates_passed_is_listed_as_blocked_by_the_review(repo: Repo) -> None:
    agent = changed(repo, CHECK + '[hooks.Stop]\ngates = ["check", "review"]\n')
    reason(agent.stop())
    assert repo.gitgates("runs").stdout.rstrip().endswith(b"  blocked: review")
    assert b"`review` blocks" in repo.gitgates("runs", "show", "latest").stdout
    say(agent, "review", "skip", "--reason", "generated")
    assert "decision" not in agent.stop(again=True, last_assistant_message="2")
    assert repo.gitgates("runs").stdout.rstrip().endswith(b"  passed")


def test_it_is_listed_as_fixed_once_a_later_run_of_the_session_passes(repo: Repo) -> None:
    agent = changed(repo, CHECK + '[hooks.Stop]\ngates = ["check", "review"]\n')
    reason(agent.stop())
    say(agent, "review", "skip", "--reason", "generated")
    agent.edit("b.py", "x = 1\n")
    assert "decision" not in agent.stop(again=True, last_assistant_message="2")
    newest, first = repo.gitgates("runs").stdout.decode().splitlines()[1:]
    assert (newest.split()[-1], first.split("  ")[-1]) == ("passed", "fixed: review")


def test_only_what_is_there_is_named(repo: Repo, tmp_path: Path) -> None:
    agent = changed(repo)
    plugin = tmp_path / "plugin"
    for name in ("agents/reviewer.md", "skills/review/SKILL.md"):
        (plugin / name).parent.mkdir(parents=True)
        (plugin / name).write_text("x")
    agent.env |= {"CLAUDE_PLUGIN_ROOT": str(plugin), "CLAUDE_CONFIG_DIR": str(tmp_path / "home")}
    in_home = tmp_path / "home" / "agents" / "code-reviewer.md"
    in_home.parent.mkdir(parents=True)
    in_home.write_text("x")
    ways = (
        "- start a sub-agent of the type `gitgates:reviewer` or `code-reviewer`, and wait for it\n"
        "- use the skill `gitgates:review`\n"
    )
    assert reason(agent.stop()) == REMINDER.format(", in one of these ways", ways + YOURSELF)


YOURSELF = (
    "- review it yourself: read all of `gitgates review diff` as if somebody else had written "
    "it, then "
    '`gitgates review done --summary "what you looked at, and what you found"`'
)
REMINDER = """\
This session's changes are large enough to need a review, and there is no evidence of one: \
60 weighted lines (threshold 40), 1 weighted file (threshold 5).

- `a.py` +60 −0 (code)

## What to do now
Have the change reviewed{}, then end your turn again:
{}
Fix what the review finds. Later changes need another review only if they are \
significant again.
If this change needs no review, say why instead; this is recorded and reported to the person: \
`gitgates review skip --reason "…"`"""


def test_a_small_change_is_not(repo: Repo) -> None:
    agent = changed(repo, text="x = 1\n")
    assert agent.stop() == {}


def test_nothing_changed_and_questions_only(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    assert agent.stop() == {}
    agent.prompt("why?")
    assert agent.stop() == {}


def test_what_was_there_before_is_not_the_sessions(repo: Repo) -> None:
    begin(repo, REVIEW)
    repo.write("old.py", LINES)
    agent = Agent(repo, "s2")
    agent.start()
    agent.prompt()
    repo.commit_all("the person's")
    agent.edit("a.py", "x = 1\n")
    assert agent.stop() == {}


def test_plan_mode_and_deferred_stops(repo: Repo) -> None:
    agent = changed(repo)
    assert agent.stop(permission_mode="plan") == {}
    task = {"type": "subagent", "status": "running"}
    assert agent.stop(background_tasks=[task]) == {}
    assert agent.stop(background_tasks=[{**task, "type": "shell"}])["decision"] == "block"


def test_sub_agents_are_not_asked_unless_that_is_wanted(repo: Repo) -> None:
    agent = changed(repo)
    assert agent.sub_stop() == {}
    wanted = REVIEW + '[hooks.SubagentStop]\ngates = ["review"]\n'
    repo.config(wanted)
    assert "weighted lines (threshold 40)" in reason(agent.sub_stop(stop_hook_active=True))


def test_a_sub_agent_that_reviews_is_never_asked(repo: Repo) -> None:
    agent = changed(repo, '[hooks.SubagentStop]\ngates = ["review"]\n')
    assert agent.sub_stop("code-reviewer") == {}
    assert agent.sub_stop("plugin:code-reviewer", "a2") == {}


def test_a_skill_is_a_review(repo: Repo) -> None:
    agent = changed(repo)
    agent.stop()
    agent.post("Skill", tool_input={"skill": "code-review"})
    assert agent.stop(again=True) == {}


def test_a_plugins_skill_is_one_too_and_another_is_none(repo: Repo) -> None:
    agent = changed(repo)
    agent.post("Skill", tool_input={"skill": "format"})
    assert "there is no evidence of one" in reason(agent.stop())
    agent.post("Skill", tool_input={"skill": "tools:code-review"})
    assert agent.stop(again=True) == {}


def test_a_typed_command_is_a_review(repo: Repo) -> None:
    agent = changed(repo)
    agent.prompt("/code-review")
    agent.send("UserPromptExpansion", command_name="code-review", prompt="/code-review")
    assert agent.stop() == {}


def test_a_sub_agents_end_is_a_review_and_its_launch_is_none(repo: Repo) -> None:
    agent = changed(repo)
    within = {"agent_id": "r1", "agent_type": "code-reviewer"}
    agent.send("SubagentStart", **within)
    launch = {"subagent_type": "code-reviewer", "prompt": "x", "description": "d"}
    agent.post("Agent", tool_input=launch, tool_response={"status": "async_launched"})
    assert "there is no evidence of one" in reason(agent.stop())
    agent.sub_stop("code-reviewer", "r1")
    assert agent.stop(again=True) == {}


def test_a_sub_agent_saw_what_there_was_when_it_began(repo: Repo) -> None:
    agent = changed(repo, text="x = 1\n")
    agent.send("SubagentStart", agent_id="r1", agent_type="code-reviewer")
    agent.edit("a.py", LINES)
    agent.sub_stop("code-reviewer", "r1")
    said = reason(agent.stop())
    assert "The last review (the sub-agent `code-reviewer`) no longer covers it" in said


def test_the_end_of_a_summary_is_no_review(repo: Repo) -> None:
    agent = changed(repo)
    agent.sub_stop("", "c1")
    assert "there is no evidence of one" in reason(agent.stop())


def test_reported_findings_are_a_review(repo: Repo) -> None:
    agent = changed(repo)
    agent.post("ReportFindings", tool_input={"findings": []})
    assert agent.stop() == {}


def test_a_review_that_only_the_transcript_tells_of_is_not_known(repo: Repo) -> None:
    agent = changed(repo)
    call = {"type": "tool_use", "id": "t", "name": "Skill", "input": {"skill": "code-review"}}
    with (repo.path.parent / "s1.transcript").open("a") as file:
        record = {"type": "assistant", "message": {"content": [call]}, "timestamp": now()}
        file.write(json.dumps(record) + "\n")
    assert "there is no evidence of one" in reason(agent.stop())


def test_saying_that_it_was_reviewed(repo: Repo) -> None:
    agent = changed(repo)
    reason(agent.stop())
    done = say(agent, "review", "done", "--summary", "read all of it")
    assert done.returncode == 0, done.stderr
    assert agent.stop(again=True) == {}


def test_saying_that_no_review_is_needed(repo: Repo) -> None:
    agent = changed(repo)
    reason(agent.stop())
    done = say(agent, "review", "skip", "--reason", "generated by a tool")
    assert done.returncode == 0, done.stderr
    told = agent.stop(again=True)
    assert "the agent reports that none is needed: generated by a tool" in told["systemMessage"]
    assert agent.stop(again=True, last_assistant_message="yes") == {}  # it is told once
    ledger = (repo.path / ".git/gitgates/ledger.jsonl").read_text()
    assert "generated by a tool" in ledger


def test_a_later_typo_passes_and_a_later_rewrite_does_not(repo: Repo) -> None:
    agent = changed(repo)
    agent.post("Skill", tool_input={"skill": "code-review"})
    agent.edit("a.py", LINES.replace("line = 7\n", "line = 77\n"))
    assert agent.stop() == {}
    agent.prompt("more")
    agent.edit("b.py", LINES)
    assert "`b.py` +60" in reason(agent.stop())


def test_a_commit_hides_nothing_and_voids_nothing(repo: Repo) -> None:
    agent = changed(repo)
    repo.commit_all("work")
    assert "60 weighted lines" in reason(agent.stop())
    agent.post("Skill", tool_input={"skill": "code-review"})
    repo.git("commit", "-q", "--amend", "-m", "another message")
    assert agent.stop(again=True) == {}
    agent.edit("b.py", LINES)
    repo.commit_all("more")
    repo.git("reset", "-q", "--soft", "HEAD~2")
    repo.commit_all("all of it")
    assert "`b.py` +60" in reason(agent.stop())


def test_a_rebase_hides_nothing_and_voids_nothing(repo: Repo, tmp_path: Path) -> None:
    agent = changed(repo)
    repo.commit_all("work")
    agent.post("Skill", tool_input={"skill": "code-review"})
    repo.git("worktree", "add", "-q", "-b", "theirs", "../theirs", "HEAD~1")
    colleague = Repo(tmp_path / "theirs")
    colleague.write("theirs.py", LINES)
    colleague.commit_all("a colleague's")
    repo.git("rebase", "-q", "theirs")
    assert agent.stop() == {}
    agent.edit("b.py", LINES)
    said = reason(agent.stop())
    assert "`b.py` +60" in said
    assert "theirs.py" not in said


def test_the_breaker_of_the_same_review(repo: Repo) -> None:
    agent = changed(repo)
    for number in range(3):
        agent.edit("b.py", f"b = {number}\n")  # whatever is edited meanwhile
        reason(agent.stop(again=bool(number)))
    agent.edit("b.py", "b = 4\n")
    answer = agent.stop(again=True)
    assert "decision" not in answer
    assert "allowed to stop after 3 blocks in this prompt" in answer["systemMessage"]
    assert outcomes(agent) == ["blocked", "blocked", "blocked", "breaker"]
    assert "review-breaker" in (repo.path / ".git/gitgates/ledger.jsonl").read_text()
    agent.prompt("again")
    agent.edit("c.py", LINES)
    reason(agent.stop())


@pytest.mark.slow
def test_a_marker_restarts_the_count_and_ten_blocks_are_the_end(repo: Repo) -> None:
    agent = changed(repo)
    blocked = 0
    for number in range(12):
        agent.edit(f"new{number}.py", LINES)
        if agent.stop(again=bool(number)).get("decision") != "block":
            break
        blocked += 1
        agent.post("Skill", tool_input={"skill": "code-review"})
    assert blocked == 10


def test_the_second_delivery_of_a_stop_counts_once(repo: Repo) -> None:
    agent = changed(repo)
    first = agent.stop()
    assert agent.stop() == first
    assert outcomes(agent) == ["blocked"]


def test_with_gates_in_a_row_the_review_comes_last(repo: Repo) -> None:
    agent = changed(repo, CHECK + '[hooks.Stop]\ngates = ["review", "check"]\n')
    agent.edit("bad", "")
    said = reason(agent.stop())
    assert "check" in said
    assert "review" not in said.replace("preview", "")
    (repo.path / "bad").unlink()
    assert "there is no evidence of one" in reason(agent.stop(again=True))
    agent.post("Skill", tool_input={"skill": "code-review"})
    assert agent.stop(again=True) == {}


def test_with_gates_that_are_collected_both_are_said(repo: Repo) -> None:
    agent = changed(
        repo, CHECK + '[hooks.Stop]\ngates = ["check", "review"]\nstrategy = "collect"\n'
    )
    agent.edit("bad", "")
    said = reason(agent.stop())
    assert "`check`" in said
    assert "there is no evidence of one" in said


def test_mode_off_and_skipped_gates(repo: Repo) -> None:
    agent = changed(repo, '[review]\nmode = "off"\n' + REVIEW)
    assert agent.stop() == {}
    repo.config(REVIEW)
    as_person(repo, "approve", "rules")
    agent.env["GITGATES_SKIP"] = "review"
    assert "gate `review`" in agent.stop()["systemMessage"]
    repo.config("[review]\nrequired = true\n" + REVIEW)
    as_person(repo, "approve", "rules")
    reason(agent.stop())


def test_what_two_sessions_write_counts_for_both_where_a_shell_was_used(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    with agent.call("claude -p 'write it' --dangerously-skip-permissions"):
        inner = Agent(repo, "s2")
        inner.start()
        inner.prompt()
        inner.edit("theirs.py", LINES)
        assert "`theirs.py` +60" in reason(inner.stop())
    assert "`theirs.py` +60" in reason(agent.stop())


def test_what_only_others_wrote_is_not_the_sessions(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", "x = 1\n")
    repo.write("theirs.py", LINES)  # the person, or another session
    assert agent.stop() == {}
    agent.prompt("more")
    agent.edit("a.py", LINES)
    repo.write("late.py", LINES)
    said = reason(agent.stop())
    assert "`a.py` +60" in said
    assert "theirs.py" not in said
    assert "late.py" not in said
    assert "60 weighted lines" in say(agent, "review", "status").stdout.decode()
    say(agent, "review", "done", "--summary", "read it")
    repo.write("theirs.py", LINES * 3)
    assert agent.stop(again=True) == {}
    agent.edit("theirs.py", LINES * 4)  # now it is the agent's, too
    assert "`theirs.py`" in reason(agent.stop(again=True))


def test_what_a_shell_may_have_written_is_the_sessions(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    with agent.call():
        repo.write("made.py", LINES)
    assert "`made.py` +60" in reason(agent.stop())


def test_what_a_sub_agent_writes_is_the_sessions(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.pre("Agent", tool_input={"prompt": "do it", "subagent_type": "worker"})
    repo.write("theirs.py", LINES)
    with agent.call(agent_id="w1", agent_type="worker"):
        repo.write("made.py", LINES)
    said = reason(agent.stop())
    assert "`made.py` +60" in said
    assert "theirs.py" not in said


def test_what_a_shell_in_the_background_may_have_written_is_the_sessions(repo: Repo) -> None:
    agent = begin(repo, CHECK + '[hooks.Stop]\ngates = ["check", "review"]\n')
    with agent.call(tool_input={"command": "make", "run_in_background": True}):
        repo.write("bad", "")
    task = {"type": "shell", "status": "running"}
    reason(agent.stop(background_tasks=[task]))
    (repo.path / "bad").unlink()
    repo.write("made.py", LINES)
    assert "`made.py` +60" in reason(agent.stop(again=True))


def test_without_events_of_tools_all_that_has_changed_is_the_sessions(repo: Repo) -> None:
    repo.config(REVIEW)
    repo.commit_all("first")
    agent = Agent(repo)
    assert "decision" not in agent.stop()
    agent.write("a.py", LINES)
    assert "`a.py` +60" in reason(agent.stop(last_assistant_message="2"))


def test_in_a_linked_worktree(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, REVIEW)
    repo.git("worktree", "add", "-q", "../linked")
    linked = tmp_path / "linked"
    (linked / "a.py").write_text(LINES)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    said = reason(agent.send("Stop", cwd=str(linked), stop_hook_active=False))
    assert "`a.py` +60" in said


def test_a_session_whose_beginning_was_not_heard_of(repo: Repo) -> None:
    repo.config(REVIEW)
    repo.write("seed.py")
    repo.commit_all("first")
    repo.write("a.py", LINES)
    agent = Agent(repo)
    assert "the start of this session is not recorded" in reason(agent.stop())


@pytest.mark.parametrize("mode", ["remind", "require"])
def test_a_session_whose_beginning_was_not_heard_of_is_asked_after_its_next_tool(
    repo: Repo, mode: str
) -> None:
    agent = begin(repo, f'[review]\nmode = "{mode}"\n' + REVIEW)
    agent.edit("a.py", LINES)
    for journal in (repo.path / ".git/gitgates/sessions").iterdir():
        journal.unlink()
    reason(agent.stop())
    for event in ("PreToolUse", "PostToolUse"):
        call = {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "b1"}
        agent.send(event, **call)
    said = reason(agent.stop(again=True))
    assert "`a.py` +60" in said
    assert "the start of this session is not recorded" in said
