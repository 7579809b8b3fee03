"""An agent wants to stop, and a gate of its hook runs on a real server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from casd_support import Casd, needs_casd, serving_casd
from claude import Options, bash, write
from scene import STOP, Scene

pytestmark = needs_casd

CONFIG = """
jobs = 1
[gates.busy]
command = "sleep 1"
[gates.check]
command = "echo ran; test ! -e bad.txt || {{ echo BAD-IS-THERE; {then}; }}"
remote = true
env = {{ PATH = "/usr/bin:/bin" }}
timeout = "20s"
{stop}strategy = "collect"
max_retries = 1
[remote]
execution = "{url}"
"""


@pytest.fixture(name="casd")
def _casd(tmp_path: Path) -> Iterator[Casd]:
    with serving_casd(tmp_path / "casd") as casd:
        yield casd


def scene_of(folder: Path, casd: Casd, then: str = "exit 1") -> tuple[Scene, Options]:
    stop = STOP.replace('["check"]', '["busy", "check"]')
    scene = Scene(folder, CONFIG.format(url=casd.url, then=then, stop=stop))
    options = Options(env={"GITGATES_POOL": str(folder / "pool")}, proxies=True)
    return scene, options  # which has the network of this process, where the server is


def places(scene: Scene) -> list[tuple[str, str]]:
    """Return how the gate has ended in each run, and where."""
    found = []
    for path in sorted((scene.path / ".git/gitgates/runs").glob("*/result.json")):
        for attempt in json.loads(path.read_text())["quality_gates"]["attempts"]:
            found += [each for each in attempt["results"] if each["name"] == "check"]
    return [(each["status"], each.get("where", "")) for each in found]


@pytest.mark.in_ci
def test_a_failure_there_blocks_and_a_fix_lets_go(tmp_path: Path, casd: Casd) -> None:
    scene, options = scene_of(tmp_path, casd)
    turns = (write(scene.at("bad.txt"), "x"), "first", bash("mv bad.txt good.txt"), "second")
    run = scene.run(*turns, options=options)
    assert "BAD-IS-THERE" in run.told(2)
    assert f"ran on {casd.url}; `gitgates explain --remote check` lists what it got" in run.told(2)
    assert (run.turns, run.ends) == (4, ["completed"])
    assert places(scene) == [("failed", casd.url), ("passed", casd.url)]


def test_used_up_retries_let_go(tmp_path: Path, casd: Casd) -> None:
    scene, options = scene_of(tmp_path, casd)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", "3", options=options)
    assert "attempt 1 of 2" in run.told(2)
    assert run.results[0]["result"] == "2"
    assert "check" in run.person
    assert places(scene) == [("failed", casd.url)] * 2


def test_it_is_cancelled_there_where_the_hook_is_killed(tmp_path: Path, casd: Casd) -> None:
    scene, options = scene_of(tmp_path, casd, "sleep 600")

    def kill() -> None:
        until = time.monotonic() + 30.0
        while len(casd.children()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        for pid in hooks_in(scene.path):
            with contextlib.suppress(ProcessLookupError):  # it ends with its parent
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", options=options)
    killer.join()
    assert run.results[0]["result"] == "1"
    until = time.monotonic() + 10.0
    while casd.children() and time.monotonic() < until:
        time.sleep(0.05)
    assert casd.children() == []


def hooks_in(folder: Path) -> list[int]:
    """Return the processes of our hooks in a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = b"agent-hook" in (place / "cmdline").read_bytes()
            if is_ours and (place / "cwd").readlink() == folder:
                found.append(int(place.name))
        except OSError:
            continue
    return found
