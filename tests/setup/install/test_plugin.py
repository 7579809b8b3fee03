"""The plugin for Claude Code: it says what the code says, and does nothing where we are not."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from config_support import table

import gitgates
from gitgates.core.lifecycle import GATES_OWN_TIME, HOOK_POINTS, kind_of
from gitgates.core.types import Config, Hook
from gitgates.engine.plan.hooks import matches_agent
from gitgates.features.review.config import Review
from gitgates.hosts.agents.claude import HOST
from gitgates.hosts.agents.claude.settings import PLUGIN as COMMAND
from gitgates.hosts.agents.claude.settings import Settings
from gitgates.hosts.settings.base import Entry
from gitgates.setup.install import agent_needs

ROOT = Path(__file__).resolve().parents[3]
MARKETPLACE = ROOT / ".claude-plugin/marketplace.json"
PLUGIN = ROOT / "gitgates/plugin/claude"
HOOKS = PLUGIN / "hooks/hooks.json"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def run(path: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", COMMAND],
        env={"PATH": path},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_marketplace_leads_to_the_plugin() -> None:
    (listed,) = read(MARKETPLACE)["plugins"]
    assert (ROOT / listed["source"]).samefile(PLUGIN)
    manifest = read(PLUGIN / ".claude-plugin/plugin.json")
    assert listed["name"] == manifest["name"] == "gitgates"
    assert manifest["version"] == gitgates.__version__
    # The client loads hooks/hooks.json by itself; naming it again is an error there.
    assert "hooks" not in manifest


def test_it_hears_every_event_of_the_agent() -> None:
    """A plugin cannot know what a project needs, nor how long its gates may take."""

    def seconds(event: str) -> int:
        if kind_of(event) in GATES_OWN_TIME:
            return 600
        if event in ("PreToolUse", "PostToolUseFailure"):
            return 60  # the first save point of a large repository
        if event in ("SubagentStart", "UserPromptExpansion"):
            return 30  # where a review or a command begins, what is there then is kept
        return 10 if event == "SessionEnd" else 5

    assert read(HOOKS)["hooks"] == {
        point.name: [Settings(HOST).group_of(Entry(point.name, seconds(point.name)), COMMAND)]
        for point in HOOK_POINTS.values()
        if point.host == "agent"
    }


def test_it_does_nothing_where_gitgates_is_not(tmp_path: Path) -> None:
    done = run(str(tmp_path), "{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_where_it_is_its_answer_and_its_failure_are_passed_on(tmp_path: Path) -> None:
    program = tmp_path / "gitgates"
    program.write_text('#!/bin/sh\nread -r line\necho "$* got $line"\nexit 7\n')
    program.chmod(0o755)
    done = run(str(tmp_path), "the event\n")
    assert (done.returncode, done.stdout) == (7, "agent-hook claude got the event\n")


def test_the_command_says_what_it_does_and_which_programs_it_may_run() -> None:
    _, front, text = (PLUGIN / "commands/status.md").read_text().split("---\n")
    assert "description: " in front
    assert "allowed-tools: Bash(gitgates doctor:*), Bash(gitgates explain:*)\n" in front
    assert "`gitgates doctor`" in text
    assert "`gitgates explain Stop`" in text


def test_it_waits_as_long_as_a_review_may_take() -> None:
    config = Config(hooks=(Hook(name="Stop", gates=("review",)),))
    waits = {
        event: group[0]["hooks"][0]["timeout"] for event, group in read(HOOKS)["hooks"].items()
    }
    wanted = {one.event: one.timeout_s for one in agent_needs.entries(config, "claude")}
    assert {event for event in wanted if waits[event] < wanted[event]} == set()


# The review


def front(path: Path) -> tuple[dict[str, str], str]:
    """Return the head of a file of the client's, and what it is told."""
    _, head, text = path.read_text().split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines()), text


def test_the_reviewer_only_reads_and_is_the_one_that_counts() -> None:
    head, text = front(PLUGIN / "agents/reviewer.md")
    assert list(head) == ["name", "description", "tools", "model"]
    assert (head["name"], head["model"]) == (table(Review).reviewer, table(Review).reviewer_model)
    assert head["tools"] == "Read, Grep, Glob, Bash"
    assert matches_agent((table(Review).reviewer,), f"gitgates:{head['name']}")
    assert matches_agent(table(Review).agents, f"gitgates:{head['name']}")
    for verb in ("diff", "diff --opinions", "status", "done --token TOKEN"):
        assert f"gitgates review {verb}" in text
    assert "--decision" in text
    assert "--message-to-agent" in text
    for command in table(Review).reviewer_commands:
        assert f"`{command}`" in text


def test_the_skill_is_a_review_and_starts_the_reviewer() -> None:
    head, text = front(PLUGIN / "skills/review/SKILL.md")
    assert list(head) == ["description", "argument-hint", "allowed-tools"]
    assert matches_agent(table(Review).skills, "gitgates:review")
    assert "`gitgates:reviewer`" in text
    assert "`gitgates review done --summary " in text
    assert text.endswith("$ARGUMENTS\n")


@pytest.mark.thorough
@pytest.mark.slow
def test_the_wheel_holds_the_plugin(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    files = [p.relative_to(ROOT).as_posix() for p in PLUGIN.parent.rglob("*") if p.is_file()]
    assert len(files) == 6  # that of opencode, too
    assert set(files) <= set(zipfile.ZipFile(wheel).namelist())
