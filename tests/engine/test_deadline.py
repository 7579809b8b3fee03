"""A run with a limit for all of its gates: what is late is never passed, and nothing hangs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from conftest import Repo
from run_support import Heard, config_of, results, run_gates

from gitgates.core.agent_types import Payload
from gitgates.core.types import (
    ALLOW,
    BLOCK,
    STOP,
    WARN,
    Decision,
    Event,
    Findings,
    Gate,
    GateResult,
    make_gate,
)
from gitgates.engine.plan.command import gate_env
from gitgates.engine.plan.walk import ENDED
from gitgates.engine.run.job import Deadline, RunOptions
from gitgates.hosts.agents.claude import HOST

LATE = "the 7 s limit for all gates was reached before it started"


PAYLOAD = Payload(host="claude")


def run(
    repo: Repo, *gates: Gate, left_s: float = 60.0, strategy: str = "sequence", **options: Any
) -> tuple[Decision, list[str]]:
    """Run gates as an agent's hook does, with some of seven seconds left."""
    config = config_of(gates, "Stop", strategy=strategy)
    event = Event(host="claude", name="Stop", root_abs=str(repo.path), paths=(), payload=PAYLOAD)
    heard = Heard()
    how = RunOptions(deadline=Deadline(time.monotonic() + left_s, 7), **options)
    return run_gates(config, event, heard, options=how), heard.gates


def statuses(decision: Decision) -> list[tuple[str, str, str]]:
    return [(result.gate, result.status, result.reason) for result in results(decision)]


def gate(name: str, command: str = "true", **fields: Any) -> Gate:
    return make_gate(name=name, command=command, **fields)


def test_there_is_time(repo: Repo) -> None:
    decision, heard = run(repo, gate("a"), gate("b"))
    assert (decision.verdict, statuses(decision)) == (
        ALLOW,
        [("a", "passed", ""), ("b", "passed", "")],
    )
    assert heard == ["a started", "a passed", "b started", "b passed"]


@pytest.mark.parametrize(
    ("strategy", "fields", "verdict", "met"),
    [
        ("sequence", {}, BLOCK, "a"),
        ("collect", {}, BLOCK, "ab"),
        ("sequence", {"on_fail": "STOP"}, STOP, "a"),
        # Both were due at once, and neither was started.
        ("collect", {"on_fail": "STOP"}, STOP, "ab"),
        ("sequence", {"on_fail": "CONTINUE"}, WARN, "ab"),
        ("collect", {"on_fail": "CONTINUE"}, WARN, "ab"),
        ("sequence", {"on_pass": "STOP", "on_fail": "CONTINUE"}, WARN, "ab"),
        ("sequence", {"writes": True}, BLOCK, "a"),
        ("collect", {"writes": True}, BLOCK, "ab"),
        ("sequence", {"observe": True}, WARN, "ab"),  # because of the other
    ],
)
def test_no_time_is_left(
    repo: Repo, strategy: str, fields: dict[str, Any], verdict: int, met: str
) -> None:
    gates = (gate("a", "touch ran", **fields), gate("b", "touch ran", on_fail="CONTINUE"))
    decision, heard = run(repo, *gates, left_s=-1, strategy=strategy)
    assert decision.verdict == verdict
    assert statuses(decision) == [(name, "not-run", LATE) for name in met]
    assert heard == [f"{name} not-run" for name in met]
    assert not (repo.path / "ran").exists()


def test_a_chain_after_the_limit_does_not_run_either(repo: Repo) -> None:
    gates = (gate("a", on_fail="mend"), gate("mend", "touch ran"))
    decision, _heard = run(repo, *gates, left_s=-1)
    assert decision.verdict == BLOCK
    assert statuses(decision) == [("a", "not-run", LATE), ("mend", "not-run", LATE)]


@pytest.mark.slow
def test_the_limit_ends_a_gate_and_those_after_it_do_not_run(repo: Repo) -> None:
    slow = gate("slow", "sleep 60", on_fail="CONTINUE")
    began = time.monotonic()
    decision, heard = run(repo, slow, gate("late"), left_s=0.2)
    assert time.monotonic() - began < 20
    assert decision.verdict == BLOCK
    assert statuses(decision) == [
        ("slow", "timed-out", "limit 7 s for all gates of the hook"),
        ("late", "not-run", LATE),
    ]
    assert heard == ["slow started", "slow timed-out", "late not-run"]


@pytest.mark.slow
def test_a_gates_own_limit_is_named_where_it_was_the_nearer(repo: Repo) -> None:
    decision, _heard = run(repo, gate("slow", "sleep 60", timeout_s=0.1))
    assert statuses(decision) == [("slow", "timed-out", "limit 0.1 s")]


@pytest.mark.slow
def test_the_limit_that_was_nearer_is_named_though_the_other_passed_too(repo: Repo) -> None:
    clings = gate("slow", "trap '' TERM; sleep 60 & wait; wait", timeout_s=0.4)
    decision, _heard = run(repo, clings, left_s=0.2)
    assert decision.visits[0].result.duration_s > 0.4  # with the grace of ending it
    assert statuses(decision) == [("slow", "timed-out", "limit 7 s for all gates of the hook")]


def test_results_that_stand_are_not_made_again(repo: Repo) -> None:
    stands = GateResult("a", "failed", 1, findings=Findings(excused="was so before"))
    decision, heard = run(repo, gate("a", "touch ran"), gate("b"), earlier={("a", 0): stands})
    assert (decision.verdict, heard) == (ALLOW, ["b started", "b passed"])
    assert not (repo.path / "ran").exists()
    assert dict(decision.results)["a", 0] is stands


def test_a_result_that_we_ended_does_not_stand(repo: Repo) -> None:
    ended = GateResult(gate="a", status="killed", signal=15, reason=ENDED)
    decision, heard = run(repo, gate("a"), earlier={("a", 0): ended})
    assert (decision.verdict, heard) == (ALLOW, ["a started", "a passed"])


def test_logs_go_where_they_are_wanted(repo: Repo) -> None:
    logs = repo.path / "logs"
    run(repo, gate("a", "echo hello"), logs_abs=str(logs))
    assert (logs / "a.log").read_bytes() == b"hello\n"


BASE = dict.fromkeys(HOST.ENVIRONMENT.secrets, "secret") | {"PATH": "/bin", "CLAUDECODE": "1"}


def env_for(host: str, pass_env: tuple[str, ...] = (), **fields: Any) -> dict[str, str]:
    payload = Payload(host=host) if host == "claude" else None
    event = Event(host=host, name="Stop", root_abs="/r", payload=payload)
    asked = make_gate(name="a", command="x", pass_env=pass_env, **fields)
    return dict(gate_env(BASE, event, asked))


PLAIN = {"PATH": "/bin", "CLAUDECODE": "1", "GITGATES_HOOK": "Stop"}


def test_gates_of_an_agents_hook_get_none_of_its_credentials() -> None:
    assert env_for("claude") == PLAIN
    assert env_for("git") == PLAIN | BASE  # what a person runs has what the person has
    assert env_for("manual") == PLAIN | BASE


def test_a_gate_may_ask_for_one_of_them() -> None:
    asked = ("ANTHROPIC_API_KEY", "NO_SUCH_NAME")
    assert env_for("claude", asked) == PLAIN | {"ANTHROPIC_API_KEY": "secret"}
    mine = (("ANTHROPIC_AUTH_TOKEN", "mine"),)
    assert env_for("claude", env=mine) == PLAIN | dict(mine)


def test_a_real_gate_sees_none_of_them(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("CLAUDE_CODE_MESSAGING_TOKEN", "secret")
    show = 'echo "${ANTHROPIC_API_KEY-none} ${CLAUDE_CODE_MESSAGING_TOKEN-none}"'
    asks = gate("asks", show, pass_env=("ANTHROPIC_API_KEY",))
    decision, _heard = run(repo, gate("plain", show), asks)
    assert [result.output for result in results(decision)] == [b"none none\n", b"secret none\n"]
