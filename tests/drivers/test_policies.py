"""The table of policies: a row and a module are all that a policy takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import example_policy
import pytest
from agent_support import begin
from conftest import Repo

from gitgates.cli.explain import command as explain
from gitgates.cli.run import command as run_verb
from gitgates.core import policy
from gitgates.core.errors import GitError, LockError
from gitgates.core.types import BLOCK, PRIORITIES, WARN, Config, Verdict
from gitgates.drivers.needs import needed_events
from gitgates.entry import githook, precommit
from gitgates.setup.install.agent_needs import entries
from gitgates.setup.install.selection import select

if TYPE_CHECKING:
    from collections.abc import Callable

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
    *before, breaker, trace = policy.POLICIES
    monkeypatch.setattr(policy, "POLICIES", (*before, example_policy.ROW, breaker, trace))


def test_it_is_asked_at_a_stop_and_counts_in_the_breaker(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    assert agent.stop() == {"decision": "block", "reason": NOTE}
    assert agent.stop(again=True) == {"decision": "block", "reason": NOTE}
    how = "after 2 blocks in this prompt, the maximum"
    said = f"gitgates let the agent stop {how}. {NOTE}"
    assert agent.stop(again=True) == {"systemMessage": said}
    assert agent.outcomes() == ["blocked", "blocked", "breaker"]
    repo.write("NOTES", "done\n")
    agent.prompt()
    assert agent.stop() == {}


def test_it_counts_where_gates_pass_anew_each_time(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    for name in ("a.py", "b.py"):
        agent.write(name, "a = 1\n")
        assert agent.stop() == {"decision": "block", "reason": NOTE}
    agent.write("c.py", "a = 1\n")
    assert "systemMessage" in agent.stop()
    assert agent.outcomes() == ["passed", "blocked", "passed", "blocked", "passed", "breaker"]


def test_a_second_delivery_gets_the_same_answer(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    said = agent.stop()
    assert (agent.stop(), agent.outcomes()) == (said, ["blocked"])


def test_it_stands_beside_gates_that_fail(repo: Repo) -> None:
    agent = begin(repo, CONFIG.replace('"true"', '"false"'))
    agent.write("a.py", "a = 1\n")
    reason = agent.stop()["reason"]
    assert reason.startswith("1 of 1 gates failed")
    assert reason.endswith(NOTE)
    assert agent.outcomes() == ["blocked"]


def test_its_events_are_installed() -> None:
    wanted = ("session-start", "prompt", "subagent-start", "turn-end")
    assert [need.kind for need in needed_events(Config())] == [*wanted]
    assert [one.event for one in entries(Config(), "claude")] == [
        *("SessionStart", "UserPromptSubmit", "SubagentStart", "Stop")
    ]


def test_explain_tells_what_it_says(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    agent = begin(here, CONFIG)

    def explained() -> str:
        before = agent.facts()
        explain(["Stop"], standalone_mode=False)
        assert agent.facts() == before
        return capfd.readouterr().out.partition("Stop in session s1, now:\n")[2]

    agent.write("a.py", "a = 1\n")
    assert explained() == f"  gates: would run check\n  notes: block: {NOTE}\n"
    assert agent.stop() == {"decision": "block", "reason": NOTE}
    passed = "  gates: none would run: they passed on the same content\n"
    assert explained() == f"{passed}  notes: block: {NOTE}\n"
    agent.stop(again=True)
    said = explained()
    let_go = agent.stop(again=True)["systemMessage"]
    assert said == f"{passed}  notes: block: {NOTE}\n  breaker: warn: {let_go}\n"
    here.write("NOTES", "done\n")
    assert explained() == "  gates: would run check\n"


def test_explain_names_it(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    begin(here, CONFIG)
    explain(["Stop"], standalone_mode=False)
    assert "note: also evaluated: notes\n" in capfd.readouterr().out
    explain(["Stop", "--format", "json"], standalone_mode=False)
    said = json.loads(capfd.readouterr().out)
    assert said["notes"] == ["also evaluated: notes"]
    assert [one for one in said["policies"] if one["to_agent"]] == [
        {"name": "notes", "verdict": "block", "to_agent": NOTE, "to_person": "", "note": ""}
    ]


def test_explain_names_it_for_a_hook_of_git(here: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    here.config(GATES_OF_GIT)
    explain(["pre-commit"], standalone_mode=False)
    said = capfd.readouterr().out
    assert "note: also evaluated: notes\n" in said
    assert said.endswith(f"\n\npre-commit, now:\n  notes: block: {NOTE}\n")
    here.write("NOTES", "done\n")
    explain(["pre-commit"], standalone_mode=False)
    assert "now:" not in capfd.readouterr().out


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
    assert said["reason"].startswith("1 of 1 gates failed")
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
    repo.git("add", "pyproject.toml")
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
    assert closing == "gitgates pre-commit: blocked by `check`"


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
    assert (said["verdict"], said["reason"], said["exit_status"]) == ("blocked", NOTE, 1)
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
    monkeypatch.setattr(policy, "POLICIES", (*policy.POLICIES[:-3], row))
    assert git_hook(here, "pre-commit") == 0


def test_its_hooks_of_git_are_installed() -> None:
    assert select(Config()) == (("pre-commit", "pre-merge-commit", "pre-push"), [])


BEFORE_TOOLS = """
[gates.check]
command = "true"
[hooks.PreToolUse]
gates = ["check"]
"""


def before_tools(
    monkeypatch: pytest.MonkeyPatch, decide: Callable[[object, Verdict], Verdict]
) -> None:
    """Have the example asked before tools, in place of what it decides."""
    row = example_policy.ROW._replace(kinds=("before-tool",))
    monkeypatch.setattr(policy, "POLICIES", (row, *policy.POLICIES))
    monkeypatch.setattr(example_policy, "needs", lambda _config: (policy.Need(kind="before-tool"),))
    monkeypatch.setattr(example_policy, "decide", decide)


@pytest.mark.parametrize("attended", [True, False])
def test_a_policy_can_have_the_person_asked(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, *, attended: bool
) -> None:
    question = Verdict(WARN, ask=True, to_agent="It is a migration.")
    before_tools(monkeypatch, lambda _call, so_far: so_far.joined(question))
    agent = begin(repo, BEFORE_TOOLS)
    agent.env["CLAUDE_CODE_SESSION_ATTENDED"] = str(int(attended))
    said = agent.pre()["hookSpecificOutput"]
    refused = "this session has no person to ask: it is refused."
    assert said == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask" if attended else "deny",
        "permissionDecisionReason": "It is a migration."
        if attended
        else f"It is a migration.\n\nThis requires a person's permission, but {refused}",
    }


@pytest.mark.parametrize(("closed", "decision"), [(True, "deny"), (False, None)])
def test_an_agent_gets_the_error_of_a_policy_and_what_to_do(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, *, closed: bool, decision: str | None
) -> None:
    def fail(*_args: object) -> Verdict:
        raise LockError("another run is in the way", "Try again.")

    before_tools(monkeypatch, fail)
    monkeypatch.setattr(example_policy, "fails_closed", lambda _config: closed, raising=False)
    said = begin(repo, BEFORE_TOOLS).pre()["hookSpecificOutput"]
    assert said.get("permissionDecision") == decision
    text = said["permissionDecisionReason" if closed else "additionalContext"]
    end = "Tell the person, who can fix this." if closed else "Go on; the person has been told."
    why = "another run is in the way\n  Try again."
    assert text == f"gitgates: PreToolUse was not checked: {why}\n{end}"


def test_one_that_is_always_asked_hears_of_a_final_verdict(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def decide(_call: object, so_far: Verdict) -> Verdict:
        seen.append(so_far.final)
        return so_far.joined(Verdict(BLOCK, to_agent="no", final=True))

    before_tools(monkeypatch, decide)
    monkeypatch.setattr(policy, "POLICIES", (policy.POLICIES[0], *policy.POLICIES))
    agent = begin(repo, BEFORE_TOOLS)
    agent.pre()
    assert len(seen) == 1
    monkeypatch.setattr(example_policy, "always", True, raising=False)
    agent.pre()
    assert seen[1:] == [False, True]


def test_the_table_is_in_the_order_of_priority() -> None:
    ranks = [PRIORITIES.index(row.priority) for row in policy.POLICIES]
    assert ranks == sorted(ranks)
