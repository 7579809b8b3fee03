"""The table of policies: a row and a module are all that a policy takes."""

from __future__ import annotations

import json

import example_policy
import pytest
from agent_support import begin
from conftest import Repo

from gitgates import policy
from gitgates.cli.run import command as run_verb
from gitgates.cli.run import explain
from gitgates.entry import githook, precommit
from gitgates.errors import GitError
from gitgates.install.agents import entries
from gitgates.install.selection import select
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
    assert [one.event for one in entries(Config(), "claude")] == [
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


def test_explain_names_it_for_a_hook_of_git(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    here.config(GATES_OF_GIT)
    explain(["pre-commit"], standalone_mode=False)
    assert "note: asked besides the gates: notes\n" in capfd.readouterr().out


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


GATES_OF_GIT = """
[gates.check]
command = "true"
[hooks.pre-commit]
gates = ["check"]
"""
NONE_OF_GIT = '[gates.check]\ncommand = "true"\n'


@pytest.fixture
def here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.chdir(repo.path)
    return repo


def git_hook(repo: Repo, hook: str) -> int:
    return githook.run([f"{repo.path}/.git/hooks/{hook}", hook])


def test_a_commit_is_refused_by_it_beside_gates_that_pass(
    here: Repo, capfd: pytest.CaptureFixture[str]
) -> None:
    here.config(GATES_OF_GIT)
    assert git_hook(here, "pre-commit") == 1
    first, *others = capfd.readouterr().err.splitlines()
    assert first.startswith("check  passed")
    assert others[0] == f"gitgates pre-commit: blocked: {NOTE}"
    here.write("NOTES", "done\n")
    assert git_hook(here, "pre-commit") == 0
    assert capfd.readouterr().err.endswith("gitgates pre-commit: 1 gate passed\n")


def test_a_commit_is_refused_by_it_where_no_gates_are_listed(
    here: Repo, capfd: pytest.CaptureFixture[str]
) -> None:
    here.config(NONE_OF_GIT)
    for hook in ("pre-commit", "pre-merge-commit"):
        assert git_hook(here, hook) == 1
        assert capfd.readouterr().err == f"gitgates {hook}: blocked: {NOTE}\n"
    assert git_hook(here, "post-commit") == 0
    assert precommit.run(["pre-commit"]) == 1
    assert capfd.readouterr().out == f"gitgates pre-commit: blocked: {NOTE}\n"


def test_a_commit_is_refused_by_both(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    here.config(GATES_OF_GIT.replace('"true"', '"false"'))
    assert git_hook(here, "pre-commit") == 1
    _first, note, closing, *_saved = capfd.readouterr().err.splitlines()
    assert note == f"gitgates: {NOTE}"
    assert closing == "gitgates pre-commit: blocked: gate `check` failed (exit status 1)"


def test_a_push_is_refused_by_it(
    here: Repo, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here.config(NONE_OF_GIT)
    pushed = f"refs/heads/main {'1' * 40} refs/heads/main {'0' * 40}\n".encode()
    monkeypatch.setattr(githook, "read_stdin", lambda: pushed)
    assert git_hook(here, "pre-push") == 1
    assert capfd.readouterr().err == f"gitgates pre-push: blocked: {NOTE}\n"
    monkeypatch.setattr(githook, "read_stdin", lambda: b"")
    assert git_hook(here, "pre-push") == 0


def test_a_run_by_hand_is_refused_by_it(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    here.config(GATES_OF_GIT)
    assert run_verb(["pre-commit", "--format", "json"], standalone_mode=False) == 1
    said = json.loads(capfd.readouterr().out)
    assert (said["verdict"], said["reason"], said["exit_status"]) == ("block", NOTE, 1)
    assert run_verb(["Stop", "--gate", "check"], standalone_mode=False) == 0


@pytest.mark.parametrize("trouble", [GitError("git is gone", "Put it back."), ValueError("bug")])
def test_one_that_fails_refuses_a_commit_once_the_others_were_asked(
    here: Repo,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    trouble: Exception,
) -> None:
    here.config(GATES_OF_GIT)

    def fail(*_args: object) -> Verdict:
        raise trouble

    monkeypatch.setattr(example_policy, "decide", fail)
    with pytest.raises(type(trouble), match=str(trouble)[:3]):
        git_hook(here, "pre-commit")
    assert "check  passed" in capfd.readouterr().err


def test_where_it_is_not_needed_it_is_not_loaded(
    here: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.config(GATES_OF_GIT)
    row = example_policy.ROW._replace(kinds=("before-push",), module="not_there")
    monkeypatch.setattr(policy, "POLICIES", (*policy.POLICIES[:-2], row))
    assert git_hook(here, "pre-commit") == 0


def test_its_hooks_of_git_are_installed() -> None:
    assert select(Config()) == (("pre-commit", "pre-merge-commit", "pre-push"), [])
