"""Tests of the processor that strace shares with what it observes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

import pytest
from observed_support import command_of

from gitgates.observed.command import observed
from gitgates.proc.shared_cpu import cpu_mask, spawn_observed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not (shutil.which("strace") and cpu_mask()), reason="needs strace and two processors"
)

_SAYS = """
import os, sys, time

def cpus():
    lines = open("/proc/self/status").read().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("Cpus_allowed:"))
    return int(mask.replace(",", ""), 16).bit_count()

def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass

first = cpus()
other = os.fork() if sys.argv[1] == "two" else -1
if other == 0:
    work(60)
for _ in range(100):
    work(0.2)
    if other < 0 or cpus() != first:
        break
print(first, cpus(), len(os.sched_getaffinity(0)), sep=",", flush=True)
if other > 0:
    os.kill(other, 9)
"""


def _said(folder: Path, threads: str) -> tuple[list[int], set[int]]:
    """Return what the program says, and how many processors it has had."""
    program = folder / "says.py"
    program.write_text(_SAYS)
    command = command_of(sys.executable, str(program), threads, cwd=folder)
    with (folder / "said").open("wb") as file:
        pid, shared = spawn_observed(observed(command, str(folder / "seen")), file.fileno())
    assert shared
    seen = set[int]()
    while not os.waitpid(pid, os.WNOHANG)[0]:
        time.sleep(0.02)
        shared.adjust(pid)
        seen.add(len(shared.now))
    return [int(number) for number in (folder / "said").read_text().split(",")], seen


def test_one_thread_has_one_processor_and_is_told_all(tmp_path: Path) -> None:
    said, _cpus = _said(tmp_path, "one")
    assert (said[0], said[2]) == (1, len(os.sched_getaffinity(0)))


def test_those_that_wait_for_each_other_get_all_processors(tmp_path: Path) -> None:
    every = len(os.sched_getaffinity(0))
    assert _said(tmp_path, "two") == ([1, every, every], {1, every})
