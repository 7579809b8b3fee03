"""An agent uses a tool, or is given a prompt: what gates before and after that can do."""

from __future__ import annotations

from pathlib import Path

from claude import bash, edit, read, write
from scene import CHECK, Scene

AFTER = '[hooks.PostToolUse]\nenabled_tools = ["Write"]\ngates = ["check"]\n'
BEFORE = '[hooks.PreToolUse]\nenabled_tools = ["Write"]\ngates = ["check"]\n'
STOPS = 'on_fail = "STOP"\n'


def test_a_gate_runs_after_enabled_tools_only(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + AFTER)
    run = scene.run(
        *(bash("touch bad.txt"), read(scene.at("bad.txt")), bash("rm bad.txt")),
        *(write(scene.at("bad.txt"), "x"), "end"),
    )
    assert scene.ran() == 1
    assert "BAD-IS-THERE" not in run.told(3)
    told = run.told(4)
    assert "check" in told
    assert "failed" in told
    assert "BAD-IS-THERE" in told
    assert scene.at("bad.txt").exists()


def test_a_gate_after_a_tool_sees_the_file_that_it_wrote(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = ["echo", "CHECKED"]\npass_files = true\non_pass = "BLOCK"\n'
    scene = Scene(tmp_path, gate + AFTER)
    run = scene.run(write(scene.at("sub/a.txt"), "x"), "end")
    assert "CHECKED sub/a.txt" in run.told(1)


def test_a_fixer_tells_the_agent_to_read_the_file_again(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "sed -i.tmp s/one/two/ a.txt; rm a.txt.tmp"\nwrites = true\n'
    scene = Scene(tmp_path, gate + AFTER)
    file = scene.at("a.txt")
    run = scene.run(write(file, "one\n"), read(file), edit(file, "two", "three"), "end")
    assert "a.txt" in run.told(1)
    assert "again" in run.told(1)
    assert file.read_text() == "three\n"


def test_a_block_before_a_tool_refuses_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + BEFORE)
    scene.repo.write("bad.txt", "was here before")
    run = scene.run(write(scene.at("a.txt"), "x"), "end")
    assert not scene.at("a.txt").exists()
    assert "BAD-IS-THERE" in run.told(1)
    assert run.turns == 2


def test_a_stop_before_a_tool_refuses_it_and_ends_the_turn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOPS + BEFORE)
    scene.repo.write("bad.txt", "was here before")
    run = scene.run(write(scene.at("a.txt"), "x"), "never")
    assert not scene.at("a.txt").exists()
    assert (run.turns, run.ends) == (1, ["hook_stopped"])
    assert "check" in run.answers("PreToolUse")[0]["stopReason"]


def test_a_stop_after_a_tool_ends_the_turn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOPS + AFTER)
    run = scene.run(write(scene.at("bad.txt"), "x"), "never")
    assert scene.at("bad.txt").exists()
    assert (run.turns, run.ends) == (1, ["hook_stopped"])
    assert "check" in run.answers("PostToolUse")[0]["stopReason"]


def test_a_warning_after_a_tool_reaches_the_agent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + 'on_fail = "CONTINUE"\n' + AFTER)
    run = scene.run(write(scene.at("bad.txt"), "x"), "end")
    assert "check" in run.told(1)
    assert "BAD-IS-THERE" in run.told(1)
    assert "decision" not in run.answers("PostToolUse")[0]


def test_a_gate_of_a_prompt_blocks_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.UserPromptSubmit]\ngates = ["check"]\n')
    scene.repo.write("bad.txt", "was here before")
    run = scene.run("never")
    assert run.turns == 0
    assert "check" in run.results[0]["result"]
    assert "BAD-IS-THERE" in run.results[0]["result"]


def test_a_stop_of_a_prompt_ends_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOPS + '[hooks.UserPromptSubmit]\ngates = ["check"]\n')
    scene.repo.write("bad.txt", "was here before")
    run = scene.run("never")
    assert run.turns == 0
    assert "check" in run.results[0]["result"]
