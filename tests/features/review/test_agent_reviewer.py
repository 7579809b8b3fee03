"""The strict form: a reviewer of its own must say COMPLETE."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import as_person, begin
from test_agent_review import LINES, REVIEW, outcomes, reason, say

REQUIRE = '[review]\nmode = "require"\n' + REVIEW


def asked(repo: Repo, prompt: str = "#review do it", config: str = REVIEW) -> Agent:
    agent = begin(repo, config)
    agent.prompt(prompt)
    agent.edit("a.py", LINES)
    return agent


def start_reviewer(agent: Agent, agent_id: str = "r1", kind: str = "reviewer") -> str:
    """Start the reviewer; return the token that it is handed."""
    answer = agent.send("SubagentStart", agent_id=agent_id, agent_type=kind)
    return token_in(answer["hookSpecificOutput"]["additionalContext"])


def token_in(text: str) -> str:
    found = re.search(r"--token (\w{32})", text)
    assert found, text
    return found[1]


def post(
    agent: Agent, token: str, decision: str = "COMPLETE", agent_id: str = "r1", **fields: str
) -> Any:
    args = ["review", "done", "--decision", decision, "--summary", "looked at all of it"]
    args += ["--token", token] if token else []
    args += [part for name, text in fields.items() for part in (f"--{name}", text)]
    kind = "reviewer" if agent_id else ""
    return say(agent, *args, agent_id=agent_id, agent_type=kind)


def review(agent: Agent, decision: str = "COMPLETE", agent_id: str = "r1", **fields: str) -> None:
    """Let a reviewer look, decide and end."""
    token = start_reviewer(agent, agent_id)
    done = post(agent, token, decision, agent_id, **fields)
    assert done.returncode == 0, done.stderr
    assert agent.sub_stop("reviewer", agent_id) == {}


def completed(answer: dict[str, Any]) -> bool:
    """Return whether an agent may stop, and the person hears why."""
    said = str(answer.get("systemMessage"))
    return "decision" not in answer and "COMPLETE: looked at all of it" in said


def test_a_prompt_asks_for_the_strict_form(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    answer = agent.prompt("#Review do it")
    assert "reviewer" in answer["hookSpecificOutput"]["additionalContext"]
    assert "#review:stop" in answer["systemMessage"]
    agent.edit("a.py", "x = 1\n")
    said = reason(agent.stop())
    assert "The person asked for an independent review" in said
    assert "`reviewer` has not decided on this change yet" in said


STRICT = """\
The person asked for an independent review: `reviewer` has not decided on this change yet. \
1 weighted line (threshold 40), 1 weighted file (threshold 5).

- `a.py` +1 −0 (code)

## What to do now
Start the sub-agent {} and wait for it (with the Agent tool, run_in_background: false). Ask it to \
review this session's change. Do not give it your own verdict: it reads the person's prompts and \
the change itself. It posts its own decision; one that you post does not count.{}
When it has posted COMPLETE, end your turn. When it has posted ISSUES, fix them first."""
INSTALL = (
    " If there is no such sub-agent, tell the person that `gitgates install-hooks --agent "
    "claude` creates it."
)
NONE_SEEN = ("`reviewer` (from the plugin: `gitgates:reviewer`)", INSTALL)


@pytest.mark.parametrize("is_there", [False, True])
def test_the_reviewer_is_named_as_it_is_there(repo: Repo, *, is_there: bool) -> None:
    if is_there:
        repo.write(".claude/agents/reviewer.md", "x")
    agent = begin(repo, REVIEW)
    agent.env["CLAUDE_CONFIG_DIR"] = str(repo.path.parent / "none")
    agent.prompt("#review do it")
    agent.edit("a.py", "x = 1\n")
    text = STRICT.format(*(("`reviewer`", "") if is_there else NONE_SEEN))
    assert reason(agent.stop()) == text
    again = reason(agent.stop(again=True, last_assistant_message="again"))
    assert again == f"{text}\nThis is the second request."


def test_complete_lets_go_and_resets(repo: Repo) -> None:
    agent = asked(repo)
    reason(agent.stop())
    review(agent)
    assert completed(agent.stop(again=True))
    agent.prompt("and a bit more")
    agent.edit("b.py", "x = 1\n")
    assert agent.stop() == {}  # as little as this needs no review in the form of before


def test_issues_go_back_to_the_agent_and_a_fix_is_looked_at_again(repo: Repo) -> None:
    agent = asked(repo)
    reason(agent.stop())
    more = {"message-to-agent": "a.py: line 7 is wrong"}
    review(agent, "ISSUES", **more)
    said = reason(agent.stop(again=True))
    assert "`reviewer` found issues" in said
    assert "> a.py: line 7 is wrong" in said
    agent.edit("a.py", LINES.replace("line = 7\n", "line = 70\n"))
    assert "decided ISSUES on older content" in reason(agent.stop(again=True))
    review(agent, agent_id="r2")
    assert completed(agent.stop(again=True))


def test_complete_on_older_content_is_stale(repo: Repo) -> None:
    agent = asked(repo)
    review(agent)
    agent.edit("b.py", "one = 1\n")
    assert "decided COMPLETE on older content" in reason(agent.stop())


def test_a_rebase_or_a_commit_does_not_make_it_stale(repo: Repo) -> None:
    agent = asked(repo)
    review(agent)
    repo.commit_all("work")
    repo.git("commit", "-q", "--amend", "-m", "another message")
    assert completed(agent.stop())


def test_it_lasts_over_prompts_and_compaction(repo: Repo) -> None:
    agent = asked(repo)
    agent.send("PreCompact", trigger="auto")
    agent.sub_stop("", "c1")
    agent.send("SessionStart", source="compact")
    agent.prompt("go on")
    assert "independent review" in reason(agent.stop())


def test_a_prompt_ends_it(repo: Repo) -> None:
    agent = asked(repo)
    reason(agent.stop())
    answer = agent.prompt("#review:stop")
    assert "cancelled" in answer["systemMessage"]
    assert agent.stop() == {}  # nothing has changed since it was asked about
    agent.edit("b.py", LINES)
    said = reason(agent.stop(again=True))
    assert "there is no evidence of one" in said  # the reminder, as before


def schedule(agent: Agent, tool: str, prompt: str) -> None:
    """Have the agent schedule a prompt of its own."""
    agent.pre(tool, tool_input={"prompt": prompt, "delaySeconds": 60, "cron": "* * * * *"})


@pytest.mark.samples(1)
@pytest.mark.parametrize("tool", ["ScheduleWakeup", "CronCreate"])
def test_a_prompt_that_the_agent_has_scheduled_is_none_of_the_person(repo: Repo, tool: str) -> None:
    agent = asked(repo)
    for number in range(3):
        agent.stop(again=bool(number), last_assistant_message=str(number))
    schedule(agent, tool, " #review:stop\n")
    told = agent.prompt("#review:stop")["systemMessage"]
    assert "only counts in your own prompts" in told
    assert "did not say COMPLETE" in agent.stop(again=True)["systemMessage"]  # no new attempts
    assert "review:stop" not in say(agent, "review", "diff").stdout.decode()
    agent.prompt("#review:stop now")
    assert agent.stop() == {}


def test_a_prompt_that_an_end_says_is_to_come_is_none_of_the_person(repo: Repo) -> None:
    agent = asked(repo)
    cron = {"id": "1", "schedule": "* * * * *", "recurring": True, "prompt": "#review:stop"}
    reason(agent.stop(session_crons=[cron]))
    agent.prompt("#review:stop")
    assert "independent review" in reason(agent.stop(again=True))


def test_a_prompt_that_was_scheduled_in_a_worktree_is_known_in_all(
    repo: Repo, tmp_path: Path
) -> None:
    agent = asked(repo)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    repo.git("worktree", "add", "-q", "../linked")
    call = {"tool_name": "CronCreate", "tool_input": {"prompt": "#review:stop"}}
    agent.send("PreToolUse", cwd=str(tmp_path / "linked"), tool_use_id="c", **call)
    agent.prompt("#review:stop")
    assert "independent review" in reason(agent.stop())


def test_what_is_no_prompt_of_the_person_asks_nothing(repo: Repo) -> None:
    agent = begin(repo, '[review]\nmode = "off"\n' + REVIEW)
    agent.prompt("<task-notification>\n#review")
    agent.prompt("please #review this")
    agent.edit("a.py", LINES)
    assert agent.stop() == {}


def test_another_prefix(repo: Repo) -> None:
    config = '[review]\nprefix = "#alice"\nmode = "off"\n' + REVIEW
    agent = asked(repo, "#review do it", config)
    assert agent.stop() == {}
    agent.prompt("#ALICE do it")
    reason(agent.stop())


def test_required_by_configuration(repo: Repo) -> None:
    agent = begin(repo, REQUIRE)
    agent.edit("a.py", "x = 1\n")
    said = reason(agent.stop())
    assert "Work here ends with an independent review" in said
    review(agent)
    assert completed(agent.stop(again=True))
    agent.prompt("more")
    agent.edit("a.py", "x = 2\n")
    assert "older content" in reason(agent.stop())


def test_nothing_changed_needs_no_decision(repo: Repo) -> None:
    agent = begin(repo, REQUIRE)
    assert agent.stop() == {}
    agent.prompt("#review why?")
    assert agent.stop() == {}


def test_a_worker_that_posts_complete_itself(repo: Repo) -> None:
    agent = asked(repo)
    reason(agent.stop())
    done = post(agent, "", agent_id="")
    assert done.returncode == 1
    assert b"does not count" in done.stderr + done.stdout
    assert "has not decided" in reason(agent.stop(again=True))


def test_a_worker_with_the_reviewers_token(repo: Repo) -> None:
    agent = asked(repo)
    token = start_reviewer(agent)
    assert post(agent, token, agent_id="").returncode == 1
    assert "has not decided" in reason(agent.stop())
    assert post(agent, token).returncode == 0  # it is still the reviewer's


def test_a_token_counts_once(repo: Repo) -> None:
    agent = asked(repo)
    token = start_reviewer(agent)
    assert post(agent, token, "ISSUES").returncode == 0
    assert post(agent, token, "COMPLETE").returncode == 1
    assert "found issues" in reason(agent.stop())


def test_the_journal_does_not_hold_the_token(repo: Repo) -> None:
    agent = asked(repo)
    token = start_reviewer(agent)
    kept = b"".join(path.read_bytes() for path in repo.path.glob(".git/gitgates/**/*.jsonl"))
    assert token.encode() not in kept


def test_a_reviewer_that_leaves_without_a_decision(repo: Repo) -> None:
    agent = asked(repo)
    start_reviewer(agent)
    first = reason(agent.sub_stop("reviewer", "r1"))
    assert "You have not posted a decision yet" in first
    second = agent.sub_stop("reviewer", "r1", stop_hook_active=True)
    token = token_in(reason(second))
    third = agent.sub_stop("reviewer", "r1", stop_hook_active=True, last_assistant_message="no")
    assert "decision" not in third
    assert "ended without a decision" in third["systemMessage"]
    assert token != token_in(first)


def test_a_reviewer_that_is_sent_back_decides_with_its_new_token(repo: Repo) -> None:
    agent = asked(repo)
    start_reviewer(agent)
    token = token_in(reason(agent.sub_stop("reviewer", "r1")))
    assert post(agent, token).returncode == 0
    assert agent.sub_stop("reviewer", "r1", stop_hook_active=True) == {}
    assert completed(agent.stop())


def test_a_change_while_the_reviewer_looked(repo: Repo) -> None:
    agent = asked(repo)
    token = start_reviewer(agent)
    assert post(agent, token).returncode == 0
    agent.edit("b.py", LINES)
    assert "the change is different now" in reason(agent.sub_stop("reviewer", "r1"))


def test_the_reviewer_only_reads(repo: Repo) -> None:
    agent = asked(repo)
    start_reviewer(agent)
    within = {"agent_id": "r1", "agent_type": "gitgates:reviewer"}

    def refused(tool: str, **fields: Any) -> bool:
        answer = agent.pre(tool, **fields, **within)
        return bool(answer) and answer["hookSpecificOutput"]["permissionDecision"] == "deny"

    assert refused("Write")
    assert refused("Agent", tool_input={})
    assert refused("Bash", tool_input={"command": "rm a.py"})
    assert not refused("Read")
    assert not refused("Bash", tool_input={"command": "git diff | head"})
    assert agent.pre("Write") == {}  # the worker's


def test_without_the_strict_form_nobody_is_held(repo: Repo) -> None:
    agent = begin(repo, REVIEW)
    agent.edit("a.py", LINES)
    answer = agent.send("SubagentStart", agent_id="r1", agent_type="reviewer")
    assert "--token" not in str(answer)
    assert agent.pre("Write", agent_id="r1", agent_type="reviewer") == {}
    assert agent.sub_stop("reviewer", "r1") == {}
    assert agent.stop() == {}  # it was a review


def test_only_a_person_may_skip(repo: Repo) -> None:
    agent = asked(repo, config=f'{REVIEW}[guard]\nperson_verbs = "off"\n')
    done = say(agent, "review", "skip", "--reason", "no need")
    assert done.returncode == 64
    reason(agent.stop())
    args = ("review", "skip", "--reason", "I looked", "--session", agent.session)
    assert "noted that this change needs no review" in as_person(repo, *args)
    assert agent.stop(again=True) == {}


def test_the_breaker_where_no_reviewer_ever_decides(repo: Repo) -> None:
    agent = asked(repo)
    for number in range(3):
        agent.edit("b.py", f"b = {number}\n")
        reason(agent.stop(again=bool(number)))
    answer = agent.stop(again=True)
    assert "no reviewer has posted a decision" in answer["systemMessage"]
    agent.prompt("next")
    agent.edit("c.py", LINES)
    reason(agent.stop())  # a reviewer that is not there is asked for once a prompt
    answer = agent.stop(again=True)
    assert "no reviewer has posted a decision" in answer["systemMessage"]
    assert outcomes(agent) == ["blocked"] * 3 + ["breaker", "blocked", "breaker"]


def test_a_new_decision_restarts_the_count(repo: Repo) -> None:
    agent = asked(repo)
    for number in range(2):
        reason(agent.stop(again=bool(number), last_assistant_message=str(number)))
    review(agent, "ISSUES")
    for number in range(3):
        agent.edit("b.py", f"b = {number}\n")
        reason(agent.stop(again=True))
    answer = agent.stop(again=True, last_assistant_message="end")
    assert "without a new review decision" in answer["systemMessage"]


def test_counters_outlive_a_crash_and_a_resume(repo: Repo) -> None:
    agent = asked(repo)
    for number in range(2):
        agent.edit("b.py", f"b = {number}\n")
        reason(agent.stop(again=bool(number)))
    agent.send("SessionStart", source="resume")
    agent.edit("b.py", "b = 3\n")
    reason(agent.stop())
    assert "systemMessage" in agent.stop(again=True)


def test_a_token_that_came_with_a_block_is_not_in_the_journal_either(repo: Repo) -> None:
    agent = asked(repo)
    first = start_reviewer(agent)
    second = token_in(reason(agent.sub_stop("reviewer", "r1")))
    command = f"gitgates review done \\\n --tok'e'n {second} --summary x; echo {first}"
    within = {"agent_id": "r1", "agent_type": "reviewer"}
    agent.pre("Bash", tool_input={"command": command}, **within)
    kept = b"".join(path.read_bytes() for path in repo.path.glob(".git/gitgates/**/*.jsonl"))
    assert first.encode() not in kept
    assert second.encode() not in kept


def test_the_second_delivery_of_a_block_brings_a_token_that_counts(repo: Repo) -> None:
    agent = asked(repo)
    start_reviewer(agent)
    agent.sub_stop("reviewer", "r1")
    token = token_in(reason(agent.sub_stop("reviewer", "r1")))
    assert post(agent, token).returncode == 0


def test_the_second_delivery_of_a_start_brings_no_other_token(repo: Repo) -> None:
    agent = asked(repo)
    start_reviewer(agent)
    again = agent.send("SubagentStart", agent_id="r1", agent_type="reviewer")
    assert "--token" not in str(again)


def test_without_an_id_there_is_no_token(repo: Repo) -> None:
    agent = asked(repo)
    assert "--token" not in str(agent.send("SubagentStart", agent_type="reviewer"))
    assert agent.send("SubagentStop", agent_type="reviewer", stop_hook_active=False) == {}


def test_a_reviewer_that_goes_on_after_a_fix_can_decide_again(repo: Repo) -> None:
    agent = asked(repo)
    token = start_reviewer(agent)
    for number in range(4):
        assert post(agent, token, "ISSUES").returncode == 0
        assert agent.sub_stop("reviewer", "r1", last_assistant_message=str(number)) == {}
        agent.edit("a.py", f"fixed = {number}\n")
        back = agent.sub_stop("reviewer", "r1", last_assistant_message=f"{number} again")
        token = token_in(reason(back))


def test_a_prompt_that_ends_what_the_configuration_requires(repo: Repo) -> None:
    agent = begin(repo, REQUIRE)
    answer = agent.prompt("#review:stop")
    assert "always requires an independent review" in answer["systemMessage"]


def test_a_skipped_gate_in_the_strict_form_is_told(repo: Repo) -> None:
    agent = asked(repo)
    agent.env["SKIP"] = "review"
    assert "SKIP skipped it" in agent.stop()["systemMessage"]


def test_issues_of_the_same_content_are_told_with_complete(repo: Repo) -> None:
    agent = asked(repo)
    review(agent, "ISSUES")
    review(agent, agent_id="r2")
    assert "Earlier ISSUES on the same content: looked" in agent.stop()["systemMessage"]


def test_only_issues_are_told_with_complete(repo: Repo) -> None:
    agent = asked(repo)
    review(agent)
    review(agent, agent_id="r2")
    answer = agent.stop()
    assert completed(answer)
    assert "before" not in answer["systemMessage"]
