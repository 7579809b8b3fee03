"""The job slots that all runs of a user share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitgates.proc.pool import Pool, open_pool, release

HOLD = """
import sys, time
from gitgates.proc.pool import Pool
pool = Pool(sys.argv[1], int(sys.argv[2]), is_urgent=sys.argv[3] == "urgent")
if pool.take(1) is None:
    print("waits", flush=True)
    while pool.take(1) is None:
        time.sleep(0.01)
print("runs", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "pool/queue").mkdir(parents=True)
    return str(tmp_path / "pool")


def start(folder: str, size: int, kind: str = "agent") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, folder, str(size), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def runs(process: subprocess.Popen[str]) -> None:
    """Wait until a process has a slot."""
    assert process.stdout
    for line in process.stdout:
        if line == "runs\n":
            return
    pytest.fail("it ended without a slot")


def waits(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "waits\n"


def end(process: subprocess.Popen[str]) -> None:
    process.communicate()


def test_no_more_slots_than_its_size(folder: str) -> None:
    first, second = (Pool(folder, 2, is_urgent=False) for _ in range(2))
    assert len(first.take(1) or []) == 1
    taken = second.take(1)
    assert taken is not None
    third = Pool(folder, 2, is_urgent=False)
    assert third.take(1) is None
    release(taken)
    assert third.take(1) is not None


def test_whoever_came_first_is_served_first(folder: str) -> None:
    holder, first, second = (Pool(folder, 1, is_urgent=False) for _ in range(3))
    held = holder.take(1)
    assert held is not None
    assert (first.take(1), second.take(1)) == (None, None)
    release(held)
    assert second.take(1) is None  # though there is a free one
    assert first.take(1) is not None


def test_a_person_goes_before_agents(folder: str) -> None:
    holder, agent = (Pool(folder, 1, is_urgent=False) for _ in range(2))
    person = Pool(folder, 1, is_urgent=True)
    held = holder.take(1)
    assert held is not None
    assert (agent.take(1), person.take(1)) == (None, None)
    release(held)
    assert agent.take(1) is None
    taken = person.take(1)
    assert taken is not None
    release(taken)
    assert agent.take(1) is not None


def test_a_slot_that_is_kept_is_released_for_others(folder: str) -> None:
    first, second = (Pool(folder, 1, is_urgent=False) for _ in range(2))
    first.give_back(first.take(1) or [])
    assert second.take(1) is None  # kept for the next gate of the first
    assert first.take(1) is None  # but now somebody else waits
    assert second.take(1) is not None


def test_death_releases_slot_and_ticket(folder: str) -> None:
    holder = start(folder, 1)
    runs(holder)
    waiting = start(folder, 1)
    waits(waiting)
    for process in (waiting, holder):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert os.listdir(f"{folder}/queue")  # left by the one that waited
    assert Pool(folder, 1, is_urgent=False).take(1) is not None


@pytest.mark.slow
def test_processes_share_the_slots(folder: str) -> None:
    holder = start(folder, 1)
    runs(holder)
    agents = []
    for _ in range(3):
        agents.append(start(folder, 1))
        waits(agents[-1])
    person = start(folder, 1, "urgent")
    waits(person)
    end(holder)
    runs(person)
    end(person)
    for agent in agents:  # in the order in which they came
        runs(agent)
        end(agent)


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert open_pool({"GITGATES_POOL": str(shared)}, 1, is_urgent=False) is None
    assert open_pool({"GITGATES_POOL": "0"}, 1, is_urgent=False) is None
    own = str(tmp_path / "own")
    assert open_pool({"GITGATES_POOL": own}, 1, is_urgent=False) is not None
