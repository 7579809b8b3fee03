"""A gate whose turn comes too late for the client: one command waits, and its pass counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from claude import Options, bash, write
from scene import CHECK, STOP, Scene

# Holds the resource until a second process has asked for it: the command, after the hook.
HOLD = """
import os, sys, time
from gitgates.proc.pool import Use
from gitgates.proc.resources import Resources
other = Resources(os.environ, {})
assert isinstance(other.take(Use("t", "", "/other"), ("db",)), tuple)
queue_abs = other.pools["db"].queue_abs
print("holds", flush=True)
seen = set()
while len(seen) < 2:
    seen |= {*os.listdir(queue_abs)}
    time.sleep(0.01)
"""


def test_an_agent_waits_for_its_turn_by_one_command(tmp_path: Path) -> None:
    pool = {"GITGATES_POOL": str(tmp_path / "pool")}
    needs = 'resources = ["db"]\ntimeout = 18\n'
    scene = Scene(tmp_path, f"{CHECK}{needs}{STOP}timeout = 10\n")
    argv = [sys.executable, "-c", HOLD]
    other = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **pool})
    assert other.stdout
    with other.stdout:
        assert other.stdout.readline() == "holds\n"
        command = bash("gitgates run Stop --wait")
        options = Options(env=pool)
        turns = (write(scene.at("a.txt"), "x"), "first", command, "second")
        run = scene.run(*turns, options=options)
    other.wait()
    assert "it waits for `db` after `t` in /other, place 1" in run.told(2)
    assert "`gitgates run Stop --wait`" in run.told(2)
    assert "check  passed" in run.told(3)
    assert (run.turns, run.ends, scene.ran()) == (4, ["completed"], 1)
