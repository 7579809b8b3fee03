"""`gitgates mcp` in the real client: its tools do what the verbs do, for the agent that calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from claude import agent, write
from others import Call
from scene import Scene
from test_intents_client import FILE, INTENTS, REQUIRED

if TYPE_CHECKING:
    from pathlib import Path

GATES = '[gates.check]\ncommand = "test ! -e bad"\n[hooks.manual]\ngates = ["check"]\n'


def tool(name: str, **arguments: object) -> Call:
    return Call(f"mcp__gitgates__{name}", arguments)


def scene_in(folder: Path) -> Scene:
    scene = Scene(folder, REQUIRED + GATES)
    done = scene.repo.gitgates("install-hooks", "--agent", "claude", "--mcp")
    assert done.returncode == 0, done.stderr
    scene.repo.write(FILE, INTENTS)
    scene.commit()
    return scene


def test_an_intent_is_selected_by_the_tool(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        write(scene.at("api/a.py"), "1"),
        tool("select_active_intent", intent_id="INT-001"),
        write(scene.at("api/a.py"), "2"),
        tool("scope_expansion_request", intent_id="INT-001", pattern="/setup.cfg", reason="why"),
        tool("run_gates"),
        "end",
    )
    assert "gitgates intent select INT-001" in run.told(1)
    assert "<intent_context>\nINT-001: Limit the rate\n" in run.told(2)  # as text, not as JSON
    assert "ANSWERS-429" in run.told(2)
    assert scene.at("api/a.py").read_text() == "2"
    assert "gitgates intent approve-scope INT-001 /setup.cfg" in run.told(4)
    assert "check  passed" in run.told(5)
    assert b"INT-001 requests /setup.cfg: why" in scene.repo.gitgates("intent", "status").stdout


@pytest.mark.nightly
def test_a_sub_agent_selects_for_itself(tmp_path: Path) -> None:
    scene = scene_in(tmp_path)
    run = scene.run(
        tool("select_active_intent", intent_id="INT-001"),
        agent("coder"),
        write(scene.at("api/a.py"), "main"),
        "end",
        agents={
            "coder": [
                write(scene.at("web/a.py"), "too early"),
                tool("select_active_intent", intent_id="INT-001"),
                tool("select_active_intent", intent_id="INT-002"),
                write(scene.at("web/a.py"), "sub"),
                "done",
            ]
        },
    )
    assert scene.at("web/a.py").read_text() == "sub"
    assert scene.at("api/a.py").read_text() == "main"
    assert "INT-001 is held by" in run.told_ever("agent coder")
