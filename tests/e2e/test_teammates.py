"""A teammate goes on working while a gate fails: interactive sessions only have them.

In print mode, Claude Code 2.1.329 starts a sub-agent in place of a teammate.
"""

from __future__ import annotations

import sys
from pathlib import Path

from claude import HERE, Options, bash, write
from others import Call
from scene import CHECK, Scene

_LIMIT_S = 30.0


def test_a_teammate_is_not_idle_while_a_gate_fails(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + '[hooks.TeammateIdle]\ngates = ["check"]\n')
    asked = {"description": "d", "prompt": "WORD", "subagent_type": "general-purpose"}
    command = (sys.executable, str(HERE / "terminal.py"), str(_LIMIT_S), str(tmp_path / "ran"), "2")
    run = scene.run(
        *(Call("Agent", {**asked, "name": "mate"}), "1", "2", "3", "4"),
        agents={"WORD": [write(scene.at("bad.txt"), "x"), "A", bash("mv bad.txt b.txt"), "B"]},
        options=Options(
            env={"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"},
            command=(*command, "go"),
            limit_s=_LIMIT_S + 20,
        ),
    )
    told = run.told(2, "agent WORD")
    assert told.startswith("TeammateIdle hook feedback:\n1 of 1 gates failed")
    assert "BAD-IS-THERE" in told
    assert "This was attempt 1 of 4." in told
    assert "BAD-IS-THERE" not in run.told(3, "agent WORD")
    assert scene.ran() == 2
