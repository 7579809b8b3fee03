"""An agent uses a tool, or is given a prompt: what gates before and after that can do."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Options, after, agent, bash, edit, read, write
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


@pytest.mark.nightly
def test_a_gate_after_a_tool_sees_the_file_that_it_wrote(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = ["echo", "CHECKED"]\npass_files = true\non_pass = "BLOCK"\n'
    scene = Scene(tmp_path, gate + AFTER)
    run = scene.run(write(scene.at("sub/a.txt"), "x"), "end")
    assert "CHECKED sub/a.txt" in run.told(1)


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_stop_before_a_tool_refuses_it_and_ends_the_turn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOPS + BEFORE)
    scene.repo.write("bad.txt", "was here before")
    run = scene.run(write(scene.at("a.txt"), "x"), "never")
    assert not scene.at("a.txt").exists()
    assert (run.turns, run.ends) == (1, ["hook_stopped"])
    assert "check" in run.answers("PreToolUse")[0]["stopReason"]


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_stop_of_a_prompt_ends_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOPS + '[hooks.UserPromptSubmit]\ngates = ["check"]\n')
    scene.repo.write("bad.txt", "was here before")
    run = scene.run("never")
    assert run.turns == 0
    assert "check" in run.results[0]["result"]


@pytest.mark.nightly
def test_a_gate_that_passes_grants_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + BEFORE)
    run = scene.run(write(scene.at("a.txt"), "x"), "end", options=Options(mode="default"))
    assert scene.ran() == 1
    assert run.answers("PreToolUse") == []
    assert not scene.at("a.txt").exists()  # in this mode, the client itself asks a person


@pytest.mark.nightly
def test_a_gate_after_a_command_that_failed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.PostToolUseFailure]\ngates = ["check"]\n')
    run = scene.run(bash("touch bad.txt; exit 3"), "end")
    assert "BAD-IS-THERE" in run.told(1)


@pytest.mark.nightly
def test_files_are_what_links_lead_to(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "echo $@ >> ../ran"\npass_files = true\n'
    scene = Scene(tmp_path, gate + AFTER)
    scene.at("sub").mkdir()
    scene.at("link").symlink_to("sub")
    (tmp_path / "alias").symlink_to(scene.path)
    outside = str(tmp_path / "c.txt")
    scene.run(
        *(write(scene.at("link/a.txt"), "x"), write("../alias/b.txt", "x"), write(outside, "x")),
        "end",
    )
    assert (scene.ran("sub/a.txt"), scene.ran("b.txt")) == (1, 1)
    assert "c.txt" not in (tmp_path / "ran").read_text()


@pytest.mark.nightly
def test_a_gate_whose_pass_blocks_is_not_said_to_have_changed_files(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "echo NOTE-THIS"\non_pass = "BLOCK"\n'
    scene = Scene(tmp_path, gate + AFTER)
    run = scene.run(write(scene.at("a.txt"), "x"), "end")
    assert "NOTE-THIS" in run.told(1)
    assert "changed files" not in run.told(1)


@pytest.mark.nightly
def test_a_gate_of_a_prompt_does_not_hold_back_the_report_of_an_agent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.UserPromptSubmit]\ngates = ["check"]\n')
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), agent("WORD", background=True), "waiting", "end"),
        agents={"WORD": [after(0.4, "THE-REPORT", main_turns=3)]},
    )
    assert "THE-REPORT" in run.told_ever()
