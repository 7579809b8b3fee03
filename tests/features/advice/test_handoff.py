"""`gitgates handoff`, and the session that receives it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin

from gitgates.store import messages as store

GATES = '[gates.check]\ncommand = "test ! -e bad"\n[hooks.Stop]\ngates = ["check"]\n'
ADVICE = '[[advice]]\ntitle = "A"\nhook_command = "{}"\nhook_trigger = "before-handoff"\n'
INTENTS = "active_intents:\n  - {id: INT-1, title: T, status: IN_PROGRESS, owned_scope: ['**']}\n"


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITGATES_RIG", "GITGATES_ROLE", "GITGATES_AGENT"):
        monkeypatch.delenv(name, raising=False)


def hand_over(repo: Repo, *args: str, status: int = 0) -> str:
    done = repo.gitgates("handoff", *args)
    assert done.returncode == status, done.stderr
    return (done.stdout + done.stderr).decode()


def messages(repo: Repo) -> list[dict[str, Any]]:
    path = repo.path / ".git/gitgates/messages.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(agent: Agent, source: str = "startup") -> str:
    answer = agent.send("SessionStart", source=source)
    context = str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))
    return context.partition("An earlier session")[2]


def test_the_next_session_is_told_once(repo: Repo) -> None:
    agent = begin(repo, GATES)
    agent.write("bad", "")
    assert agent.stop()["decision"] == "block"
    said = hand_over(repo, "-m", "The parser is done.\nNext: its tests.", "--session", "s1")
    assert re.fullmatch(r"gitgates: handed over as \w+; the next session here receives it\n", said)
    text = told(Agent(repo, "s2"))
    assert text.startswith(" handed over its work (")
    commit = repo.git("rev-parse", "HEAD")[:12]
    assert text.split("\n", 1)[1] == (
        f"Worktree: {repo.path}; its content is unchanged\n"
        f"Branch: main at {commit}, with uncommitted changes\n"
        "Open failures: check (failed)\n"
        "The parser is done.\nNext: its tests."
    )
    assert told(Agent(repo, "s3")) == ""
    topics = [one["topic"] for one in messages(repo)]
    assert topics == ["handoff", "handoff/received"]


def test_a_compaction_is_no_next_session(repo: Repo) -> None:
    begin(repo, GATES)
    hand_over(repo, "--session", "s1")
    assert told(Agent(repo, "s1"), "compact") == ""
    assert told(Agent(repo, "s1"), "resume") == ""
    assert "(no message)" in told(Agent(repo, "s2"), "clear")


def test_another_content(repo: Repo) -> None:
    begin(repo, GATES)
    hand_over(repo, "--session", "s1")
    repo.write("new", "")
    assert "its content is different now" in told(Agent(repo, "s2"))


@pytest.mark.parametrize("name", ["GITGATES_RIG", "GITGATES_ROLE", "GITGATES_AGENT"])
def test_it_is_for_whom_it_names(repo: Repo, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    begin(repo, GATES)
    assert "the first session of toast receives it" in hand_over(repo, "--to", "toast")
    assert told(Agent(repo, "s2")) == ""
    monkeypatch.setenv(name, "toast")
    assert "(no message)" in told(Agent(repo, "s3"))


def test_of_many_the_newest_are_told_and_the_others_counted(repo: Repo) -> None:
    begin(repo, GATES)
    for number in range(5):
        hand_over(repo, "-m", f"number {number}", "--session", "s1")
    answer = Agent(repo, "s2").send("SessionStart", source="startup")
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert re.findall(r"number \d", text) == [f"number {n}" for n in (2, 3, 4)]
    assert "(and 2 older handoffs: gitgates journal read handoff)" in text
    assert told(Agent(repo, "s3")) == ""


def test_what_is_cut_is_said(repo: Repo) -> None:
    begin(repo, GATES)
    hand_over(repo, "-m", "x" * 5000, "--session", "s1")
    name = messages(repo)[0]["id"]
    end = f"\n{'x' * 4000}… (in full: gitgates journal show {name})"
    assert told(Agent(repo, "s2")).endswith(end)


def test_of_two_sessions_that_begin_at_once_one_is_told(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(repo, GATES)
    hand_over(repo, "--session", "s1")
    posted = store.post

    def be_late(folder: str, draft: store.Message) -> store.Message:
        posted(folder, draft._replace(session="s3"))
        return posted(folder, draft)

    monkeypatch.setattr(store, "post", be_late)
    assert told(Agent(repo, "s2")) == ""


def test_a_hook_that_blocks_keeps_the_work(repo: Repo) -> None:
    begin(repo, GATES + ADVICE.format("echo NO; false") + 'hook_on_failure = "block"\n')
    said = hand_over(repo, "-m", "x", status=1)
    assert "  | NO\n" in said
    assert said.endswith("gitgates: nothing was handed over\n")
    assert messages(repo) == []


def test_a_hook_that_warns_does_not(repo: Repo) -> None:
    begin(repo, GATES + ADVICE.format("echo NO; false"))
    assert "gitgates: handed over as " in hand_over(repo, "-m", "x")


def test_the_intent_is_told(repo: Repo) -> None:
    repo.write(".orchestration/active_intents.yaml", INTENTS)
    begin(repo, f"{GATES}[intents]\n")
    done = repo.gitgates("intent", "select", "INT-1", "--session", "s1")
    assert done.returncode == 0, done.stderr
    hand_over(repo, "--session", "s1")
    assert "\nIntent: INT-1\n" in told(Agent(repo, "s2"))


def test_the_review_is_told(repo: Repo) -> None:
    review = '[review]\nmin_lines = 1\n[gates.check]\ncommand = "true"\n'
    agent = begin(repo, f'{review}[hooks.Stop]\ngates = ["check", "review"]\n')
    with agent.call():
        agent.write("a.py", "a = 1\n" * 50)
    hand_over(repo, "--session", "s1")
    assert "\nReview: " in told(Agent(repo, "s2"))
    assert "review" in messages(repo)[0]["data"]["review"]


def test_what_others_write_into_the_log_is_no_bug(repo: Repo) -> None:
    begin(repo, GATES)
    data = {"to": ["x"], "root": 1, "failures": "y", "snapshot": None}
    line = {"v": 1, "id": "1", "time": "2026-01-01T00:00:00Z", "topic": "handoff", "text": "t"}
    here = {**data, "to": "", "root": str(repo.path), "failures": [{"a": "b\n"}]}
    log = repo.path / ".git/gitgates/messages.jsonl"
    log.write_text("".join(json.dumps({**line, "data": one}) + "\n" for one in (data, here)) + "{")
    assert "Open failures: {'a': 'b\\n'}\nt" in told(Agent(repo, "s2"))
