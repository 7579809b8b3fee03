"""`gitgates review done`: whose decision counts, of what, and how often."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys

import pytest
from agent_support import Agent
from conftest import Repo
from review_support import (
    CONFIG,
    KEPT,
    LINES,
    TOKEN,
    change,
    document,
    evidence,
    hand_token,
    journal,
    run_by_agent,
    said,
    without_ids,
)
from session_support import begin

pytestmark = pytest.mark.slow


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    """Return a session that has changed something, and is to have it reviewed."""
    agent = begin(repo, CONFIG)
    with agent.call():
        change(repo)
    return agent


def post(
    agent: Agent, decision: str, *args: str, summary: str = "x", agent_id: str = "r1"
) -> tuple[int, str]:
    """Post as an agent does. Return status, output."""
    whole = ("review", "done", "--decision", decision, "--summary", summary, *args)
    return run_by_agent(agent, *whole, agent_id=agent_id)


def test_a_decision_that_counts(agent: Agent) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    args = ("done", "--token", TOKEN, "--decision", "issues", "--summary", "two bugs")
    status, told = run_by_agent(agent, "review", *args, agent_id="r1")
    assert (status, without_ids(told, agent)) == (
        0,
        "gitgates: recorded the reviewer's ISSUES (message ID)\n",
    )
    known = evidence(agent)
    assert (known.decisions[0].agent, known.decisions[0].how) == ("r1", "decision")
    assert known.used
    message = json.loads((agent.repo.path / ".git/gitgates/messages.jsonl").read_text())
    assert (message["topic"], message["text"]) == ("review/s1", "ISSUES: two bugs")
    assert message["data"]["message_to_agent"] == "two bugs"
    kept = said(agent.repo)
    assert "  ISSUES, just now: by the reviewer, still valid\n" in kept
    assert f"{KEPT}the reviewer found issues\n" in kept
    assert TOKEN not in kept + json.dumps(document(agent.repo)) + json.dumps(message)
    assert "two bugs" in agent.stop()["reason"]


def test_the_whole_way_of_a_reviewer(agent: Agent) -> None:
    agent.prompt("#review do it")
    assert "Start the sub-agent `reviewer`" in agent.stop()["reason"]
    who = {"agent_type": "reviewer", "agent_id": "r1"}
    task = agent.send("SubagentStart", **who)["hookSpecificOutput"]["additionalContext"]
    token = task.partition("--token ")[2].split()[0]
    assert agent.sub_stop("reviewer", "r1")["decision"] == "block"
    args = ("--token", token, "--decision", "COMPLETE", "--summary", "it is right")
    status, told = run_by_agent(agent, "review", "done", *args, **who)
    assert (status, without_ids(told, agent)) == (
        0,
        "gitgates: recorded the reviewer's COMPLETE (message ID)\n",
    )
    assert agent.sub_stop("reviewer", "r1", stop_hook_active=True) == {}
    assert "decision" not in agent.stop(again=True)


def test_complete_lets_go(agent: Agent) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    opinion = ("--second-opinion", "codex=fine", "--reasoning", "read it", "--token", TOKEN)
    assert post(agent, "COMPLETE", *opinion, summary="good")[0] == 0
    message = json.loads((agent.repo.path / ".git/gitgates/messages.jsonl").read_text())
    assert (message["agent"], message["data"]) == (
        "r1",
        {
            "decision": "COMPLETE",
            "summary": "good",
            "reasoning": "read it",
            "message_to_agent": "",
            "second_opinions": {"codex": "fine"},
            "counts": True,
        },
    )
    assert said(agent.repo).endswith("the agent may stop: the reviewer said COMPLETE\n")
    assert "decision" not in agent.stop()


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("token", "agent_id", "why"),
    [
        (TOKEN, "", "it came from the main agent, but the token belongs to another agent"),
        (TOKEN, "a2", "it came from the agent a2, but the token belongs to another agent"),
        ("guessed", "r1", "the token does not belong to this session"),
        ("", "", "only the reviewer's own decision counts, with its token (--token)"),
    ],
)
def test_a_claim(agent: Agent, token: str, agent_id: str, why: str) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    args = ("review", "done", "--decision", "COMPLETE", "--summary", "x", f"--token={token}")
    status, told = run_by_agent(agent, *args, agent_id=agent_id)
    assert (status, without_ids(told, agent)) == (
        1,
        (
            "gitgates: recorded as an unverified claim (message ID); it does not count, because "
            f"{why}\n"
        ),
    )
    known = evidence(agent)
    assert [one.how for one in known.decisions] == ["claim"]
    assert not known.used
    assert agent.stop()["decision"] == "block"


def test_a_decision_is_of_what_the_reviewer_saw(agent: Agent) -> None:
    agent.prompt("#review do it")
    began = document(agent.repo)["now"]["tree"]
    journal(agent, {"what": "review-began", "agent": "r1", "tree": began, "head": ""})
    hand_token(agent)
    agent.pre("Bash", tool_input={"command": "make"})
    agent.edit("b.py", LINES)
    assert post(agent, "COMPLETE", "--token", TOKEN)[1].endswith(
        "  The change differs from when you were started; the decision applies to the earlier "
        "one.\n"
    )
    assert evidence(agent).decisions[0].point.tree == began
    assert f"{KEPT}the reviewer decided on older content\n" in said(agent.repo)
    # Sent back, it has looked again.
    now = document(agent.repo)["now"]["tree"]
    back = {"what": "round", "gates": "reviewer", "outcome": "blocked"}
    journal(agent, {**back, "agent": "r1", "prompt": "", "tree": now})
    other = hashlib.sha256(b"other").hexdigest()
    journal(agent, {"what": "token", "agent": "r1", "digest": other})
    assert post(agent, "COMPLETE", "--token", "other")[0] == 0
    assert said(agent.repo).endswith("the agent may stop: the reviewer said COMPLETE\n")


POST = ("review", "done", "--decision", "COMPLETE", "--summary", "x", "--token", TOKEN)
FORGED = (sys.executable, "-m", "gitgates", *POST, "--caller=own")
UNSEEN = (
    "gitgates: recorded as an unverified claim (message ID); it does not count, because it was not "
    "posted by a visible command of the agent that received the token. Run `gitgates review "
    "done` as a separate, plain command, not from a script"
    "\n"
)
OTHER = (
    "gitgates: recorded as an unverified claim (message ID); it does not count, because it "
    "came from the agent a2, but the token belongs to another agent"
    "\n"
)


@pytest.mark.samples(1)
@pytest.mark.parametrize("seen", ["", "other"], ids=["no command", "another agent's"])
@pytest.mark.parametrize("env", [{}, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s1"}])
def test_a_command_that_does_not_say_that_it_is_of_the_reviewer(
    agent: Agent, env: dict[str, str], seen: str
) -> None:
    """A script of the worker, or a person: a token is not enough."""
    agent.prompt("#review do it")
    hand_token(agent)
    journal(agent, {"what": "caller", "nonce": "other", "agent": "a2", "agent_type": "r"})
    done = agent.repo.gitgates(*POST, *((f"--caller={seen}",) if seen else ()), env=env)
    wanted = OTHER if seen else UNSEEN
    assert (done.returncode, without_ids(done.stdout.decode(), agent)) == (1, wanted)
    known = evidence(agent)
    assert ([one.how for one in known.decisions], known.used) == (["claim"], frozenset())
    assert post(agent, "COMPLETE", "--token", TOKEN)[0] == 0
    assert "decision" not in agent.stop()


def test_what_was_posted_before_is_no_sign_of_another_post(agent: Agent) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    assert post(agent, "ISSUES", "--token", TOKEN)[0] == 0
    args = ("--decision", "ISSUES", "--summary", "x", "--token", TOKEN)
    assert without_ids(said(agent.repo, "done", *args, status=1), agent) == UNSEEN


def test_a_reviewer_takes_complete_back(agent: Agent) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    assert post(agent, "COMPLETE", "--token", TOKEN)[0] == 0
    # Others do not, and it cannot say so a second time.
    assert post(agent, "ISSUES", "--token", TOKEN, agent_id="a2")[0] == 1
    status, told = post(agent, "COMPLETE", "--token", TOKEN, summary="again")
    assert status == 1
    assert without_ids(told, agent) == (
        "gitgates: recorded as an unverified claim (message ID); it does not count, because "
        "a decision was already posted with this token; only ISSUES may follow\n"
    )
    assert said(agent.repo).endswith("the agent may stop: the reviewer said COMPLETE\n")
    status, told = post(agent, "ISSUES", "--token", TOKEN, summary="one was left")
    assert (status, without_ids(told, agent)) == (
        0,
        "gitgates: recorded the reviewer's ISSUES (message ID)\n",
    )
    assert "one was left" in agent.stop()["reason"]
    assert post(agent, "COMPLETE", "--token", TOKEN, summary="after all")[0] == 1


def test_two_reviewers_at_once(agent: Agent) -> None:
    """As the client plays it: both were about to post the same words when the first one did."""
    agent.prompt("#review do it")
    commands = []
    for name in ("r1", "r2"):
        who = {"agent_type": "reviewer", "agent_id": name}
        task = agent.send("SubagentStart", **who)["hookSpecificOutput"]["additionalContext"]
        token = task.partition("--token ")[2].split()[0]
        line = f"gitgates review done --token {token} --decision COMPLETE --summary 'right'"
        own = agent.pre("Bash", tool_input={"command": line}, **who)["hookSpecificOutput"]
        commands.append(own["updatedInput"]["command"])
    for command in commands:
        done = agent.repo.gitgates(*shlex.split(command)[1:])
        assert (done.returncode, done.stderr) == (0, b"")
    assert [(one.agent, one.how) for one in evidence(agent).decisions] == [
        ("r1", "decision"),
        ("r2", "decision"),
    ]


@pytest.mark.samples(1)
@pytest.mark.parametrize("token", ["TOKEN", TOKEN])
def test_a_worker_that_posts_is_not_in_the_reviewers_way(agent: Agent, token: str) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    assert post(agent, "COMPLETE", "--token", token, agent_id="")[0] == 1
    assert post(agent, "COMPLETE", "--token", TOKEN)[0] == 0
    assert "decision" not in agent.stop()


def test_reviewers_that_do_not_agree_are_both_shown(agent: Agent) -> None:
    agent.prompt("#review do it")
    hand_token(agent)
    other = hashlib.sha256(b"other").hexdigest()
    journal(agent, {"what": "token", "agent": "r2", "digest": other})
    assert post(agent, "ISSUES", "--token", TOKEN, summary="data loss")[0] == 0
    assert post(agent, "COMPLETE", "--token", "other", agent_id="r2")[0] == 0
    assert (
        "decisions:\n"
        "  COMPLETE, just now: by the reviewer, still valid\n"
        "  ISSUES, just now: by a reviewer, superseded\n"
    ) in said(agent.repo)
    assert [(one["agent"], one["decision"]) for one in document(agent.repo)["decisions"]] == [
        ("r2", "COMPLETE"),
        ("r1", "ISSUES"),
    ]


def test_status_where_a_tree_is_gone(agent: Agent) -> None:
    """What cannot be compared no longer valid, and hides nothing else."""
    agent.prompt("#review do it")
    gone = {"tree": "1" * 40, "head": "", "patch": ""}
    counted = {"decision": "COMPLETE", "counts": True, "digest": "", "agent": "r1"}
    journal(agent, {"what": "marker", "how": "done", **gone})
    journal(agent, {"what": "decision", **counted, **gone})
    told = said(agent.repo)
    assert "reviews:\n" in told
    assert told.count("no longer valid: it cannot be compared: ") == 2
    assert f"{KEPT}the reviewer decided on older content\n" in told
