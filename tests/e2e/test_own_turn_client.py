"""A gate whose turn comes too late for the client: one command waits, and its pass counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from claude import Options, bash, write
from scene import CHECK, STOP, Scene

# Holds the resource until a second process has asked for it: the command, after the hook.
HOLD = """
import os, sys, time
from gitgates.proc.resources import Resources
other = Resources(sys.argv[1], {}, "/other", is_urgent=False)
assert isinstance(other.take("t", ("db",), 0.0), int)
names = {*os.listdir(sys.argv[1])}
print("holds", flush=True)
while len({*os.listdir(sys.argv[1])} - names) < 1: time.sleep(0.01)
names |= {*os.listdir(sys.argv[1])}
while len({*os.listdir(sys.argv[1])} - names) < 1: time.sleep(0.01)
"""


def test_an_agent_waits_for_its_turn_by_one_command(tmp_path: Path) -> None:
    folder = tmp_path / "pool/resources"
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    needs = 'resources = ["db"]\ntimeout = 18\n'
    scene = Scene(tmp_path, f"{CHECK}{needs}{STOP}timeout = 10\n")
    argv = [sys.executable, "-c", HOLD, str(folder)]
    other = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert other.stdout
    with other.stdout:
        assert other.stdout.readline() == "holds\n"
        command = bash("gitgates run Stop --wait")
        options = Options(env={"GITGATES_POOL": str(folder.parent)})
        turns = (write(scene.at("a.txt"), "x"), "first", command, "second")
        run = scene.run(*turns, options=options)
    other.wait()
    assert "it waits for `db` after `t` in /other, place 1" in run.told(2)
    assert "`gitgates run Stop --wait`" in run.told(2)
    assert "check  passed" in run.told(3)
    assert (run.turns, run.ends, scene.ran()) == (4, ["completed"], 1)
