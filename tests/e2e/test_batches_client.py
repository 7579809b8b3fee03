"""Gates run once for all tools of a step; a task, and a background agent, are held to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Options, Run, agent, bash, edit, read, write
from others import Call
from scene import CHECK, STOP, Scene

BATCH = '[hooks.PostToolBatch]\ngates = ["check"]\n'
TASKS = Options(env={"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"})  # which it has switched off otherwise


def test_gates_run_once_for_all_edits_of_a_step(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + BATCH)
    run = scene.run(
        (write(scene.at("a.txt"), "x"), write(scene.at("bad.txt"), "x"), bash("true")),
        *(bash("mv bad.txt good.txt"), "end"),
    )
    assert scene.ran() == 2  # three tools, and one
    told = run.told(1)
    assert "PostToolBatch hook additional context: 1 of 1 gates failed" in told
    assert told.count("BAD-IS-THERE") == 1
    assert "BAD-IS-THERE" not in run.told(2)
    assert run.ends == ["completed"]


@pytest.mark.nightly
def test_a_gate_gets_the_files_of_the_step(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "echo >> ../ran"\nfiles = ["*.txt"]\npass_files = true\n'
    scene = Scene(tmp_path, gate + BATCH + 'enabled_tools = ["Edit", "Write"]\n')
    scene.run(
        (write(scene.at("a.txt"), "x"), write(scene.at("b.txt"), "y"), write(scene.at("c"), "z")),
        *(bash("true"), "end"),
    )
    lines = (scene.folder / "ran").read_text().splitlines()
    assert [sorted(line.split()) for line in lines] == [["a.txt", "b.txt"]]


@pytest.mark.nightly
def test_a_step_that_only_reads_runs_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + BATCH)
    run = scene.run((read(scene.at("seed.txt")), read(scene.at("seed.txt"))), "end")
    assert len(run.hooks("PostToolBatch")) == 1
    assert scene.ran() == 0


@pytest.mark.nightly
def test_a_stop_ends_the_turn_after_a_step(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + 'on_fail = "STOP"\n' + BATCH)
    run = scene.run((write(scene.at("bad.txt"), "x"), bash("true")), "never")
    assert (run.turns, run.ends) == (1, ["hook_stopped"])
    assert "check" in run.answers("PostToolBatch")[0]["stopReason"]


def _task(scene: Scene, *turns: Call | str, prompts: tuple[str, ...] = ("go",)) -> Run:
    created = Call("TaskCreate", {"subject": "T1", "description": "d"})
    return scene.run(created, *turns, prompts=prompts, options=TASKS)


DONE = Call("TaskUpdate", {"taskId": "1", "status": "completed"})


def test_a_task_is_not_completed_while_a_gate_fails(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.TaskCompleted]\ngates = ["check"]\n')
    run = _task(
        scene,
        *(write(scene.at("bad.txt"), "x"), DONE, bash("mv bad.txt good.txt"), DONE, "end"),
    )
    told = run.told(3)
    assert told.startswith("TaskCompleted hook feedback:\n1 of 1 gates failed")
    assert "BAD-IS-THERE" in told
    assert "This was attempt 1 of 4." in told
    assert "Updated task #1 status" in run.told(5)
    assert scene.ran() == 2


@pytest.mark.nightly
def test_a_task_may_be_completed_after_the_last_retry(tmp_path: Path) -> None:
    hook = '[hooks.TaskCompleted]\ngates = ["check"]\nmax_retries = 1\n'
    scene = Scene(tmp_path, CHECK + hook)
    run = _task(scene, write(scene.at("bad.txt"), "x"), DONE, DONE, "end")
    assert "BAD-IS-THERE" in run.told(3)
    assert "Updated task #1 status" in run.told(4)


@pytest.mark.nightly
def test_a_task_without_changes_needs_no_gates(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.TaskCompleted]\ngates = ["check"]\n')
    run = _task(scene, DONE, "end")
    assert "Updated task #1 status" in run.told(2)
    assert scene.ran() == 0


@pytest.mark.nightly
def test_a_stop_at_a_task_ends_the_turn_at_its_end(tmp_path: Path) -> None:
    hook = '[hooks.TaskCompleted]\ngates = ["check"]\n'
    scene = Scene(tmp_path, CHECK + 'on_fail = "STOP"\n' + hook)
    run = _task(scene, write(scene.at("bad.txt"), "x"), DONE, "end", "never")
    assert "Stop working" in run.told(3)
    assert run.turns == 4
    assert run.answers("Stop")[0]["continue"] is False


def test_a_background_agent_is_gated_as_well(tmp_path: Path) -> None:
    its_stop = '[hooks.SubagentStop]\nenabled_agents = ["reviewer"]\ngates = ["check"]\n'
    scene = Scene(tmp_path, CHECK + its_stop + STOP)
    scene.type_of_agent("reviewer")
    run = scene.run(
        *(agent("WORD", "reviewer", background=True), bash("sleep 3"), "first", "end"),
        agents={
            "WORD": [write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "REPORT"]
        },
    )
    assert "BAD-IS-THERE" in run.told(2, "agent WORD")
    assert "REPORT" in run.told_ever()
    assert "BAD-IS-THERE" not in run.told_ever()


@pytest.mark.nightly
def test_a_step_of_a_sub_agent_is_told_to_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + BATCH)
    run = scene.run(
        *(agent("WORD"), "end"),
        agents={
            "WORD": [
                (write(scene.at("bad.txt"), "x"), write(scene.at("b.txt"), "x")),
                *(edit(scene.at("b.txt"), "x", "y"), "REPORT"),
            ]
        },
    )
    assert "BAD-IS-THERE" in run.told(1, "agent WORD")
    assert scene.ran() == 3  # two steps of the sub-agent, and that with it
