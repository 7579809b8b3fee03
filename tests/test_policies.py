"""The table of policies: a row and a module are all that a policy takes."""

from __future__ import annotations

import json

import example_policy
import pytest
from agent_support import begin
from conftest import Repo

from gitgates import policy
from gitgates.cli.explain import command as explain
from gitgates.errors import GitError
from gitgates.install.agents import entries
from gitgates.policies.needs import needs
from gitgates.types import Config, Verdict

CONFIG = """
breaker = { prompt = 2, session = 9 }
[gates.check]
command = "true"
[hooks.Stop]
gates = ["check"]
"""
NOTE = "Leave a note in NOTES."


@pytest.fixture(autouse=True)
def _example(monkeypatch: pytest.MonkeyPatch) -> None:
    *before, breaker = policy.POLICIES
    monkeypatch.setattr(policy, "POLICIES", (*before, example_policy.ROW, breaker))


def test_it_is_asked_at_a_stop_and_counts_in_the_breaker(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    assert agent.stop() == {"decision": "block", "reason": NOTE}
    assert agent.stop(again=True) == {"decision": "block", "reason": NOTE}
    how = "after 2 blocks in this prompt, the most there may be"
    said = f"gitgates let the agent go {how}. {NOTE}"
    assert agent.stop(again=True) == {"systemMessage": said}
    assert agent.outcomes() == ["blocked", "blocked", "breaker"]
    repo.write("NOTES", "done\n")
    agent.prompt()
    assert agent.stop() == {}


def test_a_second_delivery_gets_the_same_answer(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    said = agent.stop()
    assert (agent.stop(), agent.outcomes()) == (said, ["blocked"])


def test_it_stands_beside_gates_that_fail(repo: Repo) -> None:
    agent = begin(repo, CONFIG.replace('"true"', '"false"'))
    agent.write("a.py", "a = 1\n")
    reason = agent.stop()["reason"]
    assert reason.startswith("1 of 1 gate did not let this pass")
    assert reason.endswith(NOTE)
    assert agent.outcomes() == ["blocked"]


def test_its_events_are_installed() -> None:
    wanted = ("session-start", "prompt", "subagent-start", "turn-end")
    assert [need.kind for need in needs(Config())] == [*wanted]
    assert [one.event for one in entries(Config())] == [
        *("SessionStart", "UserPromptSubmit", "SubagentStart", "Stop")
    ]


def test_explain_names_it(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    repo.config(CONFIG)
    monkeypatch.chdir(repo.path)
    explain(["Stop"], standalone_mode=False)
    assert "note: asked besides the gates: notes\n" in capfd.readouterr().out
    explain(["Stop", "--format", "json"], standalone_mode=False)
    assert json.loads(capfd.readouterr().out)["notes"] == ["asked besides the gates: notes"]


@pytest.mark.parametrize("trouble", [GitError("git is gone", "Put it back."), ValueError("bug")])
def test_one_that_fails_stops_no_other(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    agent = begin(repo, CONFIG.replace('"true"', '"false"'))
    agent.write("a.py", "a = 1\n")

    def fail(*_args: object) -> Verdict:
        raise trouble

    monkeypatch.setattr(example_policy, "decide", fail)
    said = agent.stop()
    assert said["reason"].startswith("1 of 1 gate did not let this pass")
    assert str(trouble) in "".join(agent.said)
