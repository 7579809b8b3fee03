"""A sub-agent is gated by its type, and told what it needs to know."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Options, agent, bash, write
from scene import CHECK, STOP, Scene

ITS_STOP = '[hooks.SubagentStop]\nenabled_agents = ["reviewer"]\ngates = ["check"]\n'


def test_a_sub_agent_of_the_type_is_gated(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + ITS_STOP)
    scene.type_of_agent("reviewer")
    run = scene.run(
        *(agent("WORD", "reviewer"), "end"),
        agents={
            "WORD": [write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "REPORT"]
        },
    )
    told = run.told(2, "agent WORD")
    assert "check" in told
    assert "attempt 1 of 4" in told
    assert "BAD-IS-THERE" in told
    assert "BAD-IS-THERE" not in run.told_ever()
    assert "REPORT" in run.told(1)
    assert scene.ran() == 2


@pytest.mark.nightly
def test_a_sub_agent_of_another_type_is_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + ITS_STOP)
    run = scene.run(
        *(agent("WORD"), "end"), agents={"WORD": [write(scene.at("bad.txt"), "x"), "REPORT"]}
    )
    assert "REPORT" in run.told(1)
    assert scene.ran() == 0


def test_a_stop_blocks_the_sub_agent_and_ends_the_main_thread(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + 'on_fail = "STOP"\n' + ITS_STOP)
    scene.type_of_agent("reviewer")
    run = scene.run(
        *(agent("WORD", "reviewer"), "never"),
        agents={"WORD": [write(scene.at("bad.txt"), "x"), "1", "2", "3", "4", "5"]},
    )
    decisions = [answer.get("decision") for answer in run.answers("SubagentStop")]
    assert decisions[:1] == ["block"]
    assert decisions.count("block") == 1
    assert (run.turns, run.ends) == (1, ["hook_stopped"])
    assert "check" in run.answers("PostToolUse")[0]["stopReason"]


@pytest.mark.nightly
def test_used_up_retries_of_a_sub_agent_stop_the_main_thread_where_that_is_wanted(
    tmp_path: Path,
) -> None:
    stops = ITS_STOP + 'max_retries = 1\non_exhausted = "stop"\n'
    scene = Scene(tmp_path, CHECK + stops)
    scene.type_of_agent("reviewer")
    again = bash("echo x >> bad.txt")
    run = scene.run(
        *(agent("WORD", "reviewer"), "never"),
        agents={"WORD": [again, "1", again, "2", again, "3", again, "4", again, "5"]},
    )
    decisions = [answer.get("decision") for answer in run.answers("SubagentStop")]
    assert decisions.count("block") == 2  # once to be fixed, and once to end
    assert (run.turns, run.ends) == (1, ["hook_stopped"])


@pytest.mark.nightly
def test_compacting_is_no_sub_agent(tmp_path: Path) -> None:
    every = ITS_STOP.replace('enabled_agents = ["reviewer"]\n', "")
    scene = Scene(tmp_path, CHECK + every)
    run = scene.run(write(scene.at("bad.txt"), "x"), "one", "two", prompts=("a", "/compact", "b"))
    assert len(run.asked("compact")) == 1
    assert len(run.hooks("SubagentStop")) == 1
    assert (scene.ran(), run.answers("SubagentStop")) == (0, [])


@pytest.mark.nightly
def test_what_a_sub_agent_changed_is_checked_when_the_main_thread_stops(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(
        *(agent("WORD"), "1", bash("mv bad.txt good.txt"), "2"),
        agents={"WORD": [write(scene.at("bad.txt"), "x"), "REPORT"]},
    )
    assert "BAD-IS-THERE" in run.told(2)
    assert run.results[0]["result"] == "2"


def test_the_rules_are_told_in_the_beginning(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + ITS_STOP)
    scene.type_of_agent("reviewer")
    run = scene.run(agent("WORD", "reviewer"), "end", agents={"WORD": ["REPORT"]})
    for event, told in (
        ("SessionStart", run.told(0)),
        ("SubagentStart", run.told(0, "agent WORD")),
    ):
        rules = run.answers(event)[0]["hookSpecificOutput"]["additionalContext"]
        assert "check" in rules
        assert "gitgates cannot-fix" in rules
        assert len(rules) <= 1500
        assert rules in told


@pytest.mark.nightly
def test_the_rules_are_told_beside_what_a_gate_says(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + '[hooks.SessionStart]\ngates = ["check"]\n')
    scene.repo.write("bad.txt", "was here before")
    run = scene.run("end")
    assert "BAD-IS-THERE" in run.told(0)
    assert "gitgates cannot-fix" in run.told(0)


@pytest.mark.nightly
def test_tools_of_a_sub_agent_are_gated_by_its_type(tmp_path: Path) -> None:
    hook = '[hooks.PostToolUse]\nenabled_agents = ["reviewer"]\nenabled_tools = ["Write"]\n'
    scene = Scene(tmp_path, f'{CHECK}{hook}gates = ["check"]\n')
    scene.type_of_agent("reviewer")
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), agent("ONE", "reviewer"), agent("OTHER"), "end"),
        agents={
            "ONE": [write(scene.at("b.txt"), "x"), "REPORT"],
            "OTHER": [write(scene.at("c.txt"), "x"), "REPORT"],
        },
    )
    assert scene.ran() == 1
    assert "BAD-IS-THERE" in run.told(1, "agent ONE")
    assert "BAD-IS-THERE" not in run.told_ever("agent OTHER") + run.told_ever()


@pytest.mark.nightly
def test_a_main_thread_that_is_a_type_of_agent_is_gated_as_such(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + 'enabled_agents = ["reviewer"]\n')
    scene.type_of_agent("reviewer")
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "2"),
        options=Options(arguments=("--agent", "reviewer")),
    )
    assert "BAD-IS-THERE" in run.told(2)
