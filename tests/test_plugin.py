"""The plugin for Claude Code: it says what the code says, and does nothing where we are not."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import gitgates
from gitgates.engine.limits import GATES_OWN_TIME
from gitgates.install import claude
from gitgates.lifecycle import HOOK_POINTS

ROOT = Path(__file__).resolve().parent.parent
MARKETPLACE = ROOT / ".claude-plugin/marketplace.json"
PLUGIN = ROOT / "gitgates/plugin/claude"
HOOKS = PLUGIN / "hooks/hooks.json"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def run(path: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", claude.PLUGIN],
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
        if event in GATES_OWN_TIME:
            return 600
        return 10 if event == "SessionEnd" else 5

    assert read(HOOKS)["hooks"] == {
        point.name: [claude.Entry(point.name, seconds(point.name)).group(claude.PLUGIN)]
        for point in HOOK_POINTS.values()
        if point.host == "claude"
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


@pytest.mark.slow
def test_the_wheel_holds_the_plugin(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    files = [p.relative_to(ROOT).as_posix() for p in PLUGIN.rglob("*") if p.is_file()]
    assert len(files) == 3
    assert set(files) <= set(zipfile.ZipFile(wheel).namelist())
