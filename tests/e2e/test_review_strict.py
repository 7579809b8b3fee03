"""The strict form in the real client: `#review`, the reviewer, its token, its decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Options, Run, Turn, agent, bash, edit, write
from others import Call
from scene import Scene
from test_review import LINES, REVIEW, blocks

# The token stands in what the reviewer is told when it starts.
POST = "gitgates review done --token {{--token (\\w{32})}} --summary 'looked at all of it'"
ISSUES = f"{POST} --decision ISSUES --message-to-agent 'line 7 is wrong'"
COMPLETE = f"{POST} --decision COMPLETE"


def scene_in(folder: Path, config: str = REVIEW) -> Scene:
    """Return a repository with what install-hooks brings: hooks, the reviewer, and a command."""
    scene = Scene(folder, config)
    assert (scene.at(".claude/agents/reviewer.md")).exists()
    return scene


def denied(run: Run) -> int:
    """Return how many calls of tools were refused."""
    own = [answer.get("hookSpecificOutput", {}) for answer in run.answers("PreToolUse")]
    return [one.get("permissionDecision") for one in own].count("deny")


def test_issues_then_a_fix_then_complete(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    fix = edit(scene.at("a.py"), "line = 7\n", "line = 70\n")
    run = scene.run(
        *(write(scene.at("a.py"), LINES), "1", agent("LOOK-ONE", "reviewer"), "2"),
        *(fix, "3", agent("LOOK-TWO", "reviewer"), "4"),
        prompts=("#review do it",),
        agents={
            "LOOK-ONE": [bash("gitgates review diff"), bash("git diff"), bash(ISSUES), "no"],
            "LOOK-TWO": [bash("gitgates review diff"), bash(COMPLETE), "yes"],
        },
    )
    assert "has not decided on this change yet" in run.told(2)
    assert "#review do it" in run.told_ever("agent LOOK-ONE")
    assert "line 7 is wrong" in run.told(4)
    assert "older content" in run.told(6)
    assert "+line = 70" in run.told_ever("agent LOOK-TWO")
    assert (blocks(run), run.results[-1]["result"]) == (3, "4")
    assert denied(run) == 0


@pytest.mark.nightly
def test_a_reviewer_that_writes(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    scene.type_of_agent("reviewer")  # one with all tools; ours has none that writes
    run = scene.run(
        *(write(scene.at("a.py"), LINES), agent("WORD", "reviewer"), "end"),
        prompts=("#review do it",),
        agents={
            "WORD": [
                write(scene.at("b.py"), "x"),
                bash("echo x > c.py"),
                bash("git diff --output=d.py"),
                bash(COMPLETE),
                "done",
            ]
        },
    )
    assert denied(run) == 3
    assert not any(scene.at(name).exists() for name in ("b.py", "c.py", "d.py"))
    assert (blocks(run), run.results[-1]["result"]) == (0, "end")


@pytest.mark.nightly
def test_a_reviewer_that_leaves_without_a_decision(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        *(write(scene.at("a.py"), LINES), agent("WORD", "reviewer"), "1", "2", "3", "4"),
        prompts=("#review do it",),
        agents={"WORD": ["fine", "really", "no"]},
    )
    decisions = [one.get("decision") for one in run.answers("SubagentStop")]
    assert decisions == ["block", "block", None]
    assert "You have not posted a decision yet" in run.told(1, "agent WORD")
    assert "ended without a decision" in run.answers("SubagentStop")[-1]["systemMessage"]
    assert blocks(run) == 3
    assert "no reviewer has posted a decision" in run.person


@pytest.mark.nightly
def test_a_reviewer_that_is_sent_back_uses_its_new_token(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        *(write(scene.at("a.py"), LINES), agent("WORD", "reviewer"), "end"),
        prompts=("#review do it",),
        agents={"WORD": ["fine", bash(COMPLETE), "posted"]},
    )
    assert (blocks(run), run.results[-1]["result"]) == (0, "end")


def test_a_worker_that_posts_complete_itself(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    own = "gitgates review done --decision COMPLETE --summary 'all is well'"
    run = scene.run(
        *(write(scene.at("a.py"), LINES), bash(own), "1", "2", "3", "4"),
        prompts=("#review do it",),
    )
    assert "does not count" in run.told(2)
    assert "has not decided" in run.told(3)
    assert blocks(run) == 3


@pytest.mark.nightly
def test_it_lasts_over_prompts_and_compaction_and_a_prompt_ends_it(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    turns: list[Turn] = [write(scene.at("a.py"), "x = 1\n"), "1", "2", "3", "4", "5", "6"]
    prompts = ("#review do it", "/compact", "and?", "#review:stop")
    run = scene.run(*turns, prompts=prompts)
    assert blocks(run) == 3
    assert run.results[-1]["result"] == "6"
    assert "was cancelled" in run.person


@pytest.mark.nightly
def test_a_finished_background_agent_asks_for_nothing(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        *(agent("#review", background=True), write(scene.at("a.py"), "x = 1\n"), "1", "2"),
        agents={"#review": ["#review all"]},
    )
    assert blocks(run) == 0


@pytest.mark.nightly
def test_the_reviewer_of_a_repository_that_requires_one(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, '[review]\nmode = "require"\n' + REVIEW)
    calls: list[Call] = [write(scene.at("a.py"), "x = 1\n"), agent("WORD", "reviewer")]
    run = scene.run(
        *(calls[0], "1", calls[1], "2", bash("git add -A; git commit -qm x"), "3"),
        prompts=("go", "commit it"),
        agents={"WORD": [bash(f"{COMPLETE} --second-opinion codex='fine'"), "yes"]},
    )
    assert blocks(run) == 1
    assert [one["result"] for one in run.results] == ["2", "3"]


@pytest.mark.nightly
def test_a_prompt_that_the_agent_has_scheduled_ends_nothing(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    wake = {"delaySeconds": 60, "prompt": "#review:stop", "reason": "later", "noop": False}
    run = scene.run(
        *(write(scene.at("a.py"), LINES), Call("ScheduleWakeup", wake), "1", "2", "3", "4", "5"),
        prompts=("#review do it",),
        options=Options(limit_s=180),  # the client wakes after one to two minutes
    )
    assert "only counts in your own prompts" in run.person
    assert (blocks(run), run.turns) == (3, 7)  # the wake-up brings no attempts
    assert "ended" not in run.person


@pytest.mark.nightly
def test_a_command_that_says_whose_it_is_needs_the_permission_that_it_needed(
    tmp_path: Path,
) -> None:
    scene = scene_in(tmp_path)
    rules = ("--allowedTools", "Bash(gitgates review:*)")
    run = scene.run(
        *(bash("gitgates review status"), bash("gitgates cannot-fix check --reason x"), "end"),
        options=Options(mode="default", arguments=rules),
    )
    rewritten = [
        answer["hookSpecificOutput"]["updatedInput"] for answer in run.answers("PreToolUse")
    ]
    assert ["--caller=" in one["command"] for one in rewritten] == [True, True]
    assert [one["description"] for one in rewritten] == ["d", "d"]
    assert "session:" in run.told(1)
    assert "requires approval" in run.told(2)
