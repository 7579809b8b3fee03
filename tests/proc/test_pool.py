"""The job slots that all runs of a user share."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitgates.core.errors import ConfigError
from gitgates.proc.pool import Pool, open_pool, release
from gitgates.store.files import follow_sharing

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


def test_a_pool_that_is_huge_costs_what_is_taken_of_it(folder: str) -> None:
    pool = Pool(folder, 10**9, is_urgent=False)
    began = time.monotonic()
    assert len(pool.take(2, 3) or []) == 3
    assert time.monotonic() - began < 1.0


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


@pytest.mark.parametrize("name", ["pool", "./pool", "~/pool", " ", "1"])
def test_a_folder_whose_name_is_not_absolute_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="expected an absolute path"):
        open_pool({"GITGATES_POOL": name}, 1, is_urgent=False)
    assert not os.path.exists(name)


def test_the_folder_is_private_whatever_the_umask_or_a_repository_says(tmp_path: Path) -> None:
    pool = str(tmp_path / "gitgates-0")
    follow_sharing(0o660)
    umask = os.umask(0o002)
    try:
        for _ in range(2):
            assert open_pool({"GITGATES_POOL": pool}, 1, is_urgent=False) is not None
    finally:
        os.umask(umask)
        follow_sharing(0)
    assert os.stat(pool).st_mode & 0o077 == 0


def test_several_slots_are_taken_at_once_or_none(folder: str) -> None:
    first, heavy, light = (Pool(folder, 2, is_urgent=False) for _ in range(3))
    held = first.take(1)
    assert held is not None
    assert heavy.take(9) is None  # which is all of them
    assert light.take(1) is None  # or the first one would wait for ever
    release(held)
    taken = heavy.take(9)
    assert taken is not None
    assert len(taken) == 2


def test_more_slots_only_while_nobody_waits(folder: str) -> None:
    first, second, third = (Pool(folder, 4, is_urgent=False) for _ in range(3))
    taken = first.take(1, most=3)
    assert taken is not None
    assert len(taken) == 3
    assert second.take(2) is None
    assert third.take(1, most=4) is None
    release(taken)
    assert len(second.take(2, most=4) or []) == 2  # others wait
    assert len(third.take(1, most=4) or []) == 2


def test_what_is_kept_is_taken_again_or_unlocked(folder: str) -> None:
    first, second = (Pool(folder, 2, is_urgent=False) for _ in range(2))
    first.give_back(first.take(2) or [])
    assert len(first.take(1) or []) == 1
    assert second.take(1) is None
    first.settle()
    assert second.take(1) is not None


def waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever waits have waited for long enough."""
    monkeypatch.setattr("gitgates.proc.pool._GRACE_S", -1.0)


@pytest.mark.slow
def test_a_stopped_holder_is_not_waited_for(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = start(folder, 1)
    runs(holder)
    holder.send_signal(signal.SIGSTOP)
    try:
        first, second = (Pool(folder, 1, is_urgent=False) for _ in range(2))
        assert first.take(1) is None
        waited(monkeypatch)
        held = first.take(1)
        assert held is not None
        assert first.take_stopped() == [f"{folder}/0"]
        assert first.take_stopped() == []
        assert second.take(1) is None  # there is one slot more, not any number
        release(held)
        assert second.take(1) is not None
    finally:
        holder.kill()
        end(holder)
    assert Pool(folder, 1, is_urgent=False).take(1) is not None


def test_a_gate_that_may_take_long_is_waited_for(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, other = (Pool(folder, 1, is_urgent=False) for _ in range(2))
    assert holder.take(1, for_s=60.0)
    waited(monkeypatch)
    assert [other.take(1) for _ in range(3)] == [None] * 3


@pytest.mark.slow
def test_whoever_is_stopped_while_it_waits_is_passed_over(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, other = (Pool(folder, 1, is_urgent=False) for _ in range(2))
    held = holder.take(1)
    assert held
    stopped = start(folder, 1)
    waits(stopped)
    assert other.take(1) is None
    stopped.send_signal(signal.SIGSTOP)
    try:
        release(held)
        assert other.take(1) is None
        monkeypatch.setattr("gitgates.proc.pool._STOPPED_S", 0.0)
        taken = other.take(1)
        assert taken
    finally:
        stopped.send_signal(signal.SIGCONT)
        other.close()
    release(taken)
    runs(stopped)
    end(stopped)


def test_whoever_is_stopped_is_passed_over_though_it_is_written_to(folder: str) -> None:
    holder, stopped, first, second = (Pool(folder, 1, is_urgent=False) for _ in range(4))
    held = holder.take(1)
    assert held
    assert [pool.take(1) for pool in (stopped, first, second)] == [None] * 3
    long_ago = time.time() - 60
    os.utime(stopped.ticket_fd, (long_ago, long_ago))
    holder.give_back(held)
    holder.settle()
    assert is_awake(first)
    taken = first.take(1)
    assert taken
    first.give_back(taken)
    first.settle()
    assert second.take(1)


def test_a_free_slot_is_not_one_of_a_stopped_holder(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, heavy = (Pool(folder, 2, is_urgent=False) for _ in range(2))
    held = first.take(2, for_s=60.0)
    assert held
    os.utime(held[1], (0, 0))
    release(held[1:])
    held.pop()
    assert heavy.take(2) is None
    monkeypatch.setattr(Pool, "_has_waited_s", lambda _: 60.0)
    assert heavy.take(2) is None
    assert heavy.take_stopped() == []


def test_whoever_is_far_behind_looks_less_often(folder: str) -> None:
    holder, *others = (Pool(folder, 1, is_urgent=False) for _ in range(60))
    held = holder.take(1)
    assert held
    for other in others:
        assert other.take(1) is None
        assert other.take(1) is None
    polls_s = [other.poll_s for other in others]
    assert polls_s[:3] == pytest.approx([0.5, 1.0, 1.5])
    assert polls_s[-1] == 2.0
    release(held)
    assert others[0].take(1)
    assert others[1].take(1) is None
    assert others[1].poll_s == 0.5


def test_whoever_releases_a_slot_wakes_the_next_one(folder: str) -> None:
    holder, first, second = (Pool(folder, 2, is_urgent=False) for _ in range(3))
    held = holder.take(2)
    assert held
    assert (first.take(1), second.take(1)) == (None, None)
    assert not is_awake(first)
    holder.give_back(held)
    holder.settle()
    assert (is_awake(first), is_awake(second)) == (True, False)
    assert first.take(1)
    assert is_awake(second)  # there is one more
    assert second.take(1)


def test_whoever_gives_up_its_place_wakes_the_next_one(folder: str) -> None:
    holder, first, second = (Pool(folder, 1, is_urgent=False) for _ in range(3))
    assert holder.take(1)
    assert (first.take(1), second.take(1)) == (None, None)
    first.close()
    assert is_awake(second)


def is_awake(pool: Pool) -> bool:
    return bool(select.select([pool.ticket_fd], [], [], 0.0)[0])
