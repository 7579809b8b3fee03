"""Leases of intents: one holder each, until it lets go or its time is over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from each_case import each_case

from gitgates.core.errors import StateError
from gitgates.features.intents import lease
from gitgates.features.intents.lease import (
    Holder,
    Lease,
    acquire,
    end,
    held_by,
    lost_by,
    read_leases,
    release,
    renew,
)

A, B = Holder("a"), Holder("b")
A1, A2 = Holder("a", "agent-1"), Holder("a", "agent-2")
TTL_S = 600.0
ROUNDS = 40


class Clock:
    """The wall clock, which a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(lease, "time", own)
    return own


def take(folder: Path, intent: str, holder: Holder) -> Lease:
    return acquire(str(folder), intent, holder, ttl_s=TTL_S, git_dir_abs="/w/.git")


def kept(folder: Path, holder: Holder) -> Lease | None:
    return held_by(renew(str(folder), holder, "/w/.git"), holder)


def test_the_first_one_gets_it_and_the_other_is_told_who_has_it(tmp_path: Path) -> None:
    mine = take(tmp_path, "I-1", A)
    assert (mine.holder, mine.former) == (A, None)
    for other in (B, A1):
        assert take(tmp_path, "I-1", other) == mine
        assert held_by(read_leases(str(tmp_path)), other) is None
    assert take(tmp_path, "I-2", B).holder == B
    assert sorted(read_leases(str(tmp_path))) == ["I-1", "I-2"]


def test_sub_agents_of_a_session_are_holders_of_their_own(tmp_path: Path) -> None:
    for intent, holder in (("I-0", A), ("I-1", A1), ("I-2", A2)):
        assert take(tmp_path, intent, holder).holder == holder
    assert take(tmp_path, "I-1", A2).holder == A1
    assert str(A1) == "sub-agent agent-1 of session a"


def test_another_one_replaces_the_own(tmp_path: Path) -> None:
    take(tmp_path, "I-1", A)
    take(tmp_path, "I-2", A)
    assert take(tmp_path, "I-1", B).holder == B


def test_the_same_again_is_a_renewal(tmp_path: Path, clock: Clock) -> None:
    began = take(tmp_path, "I-1", A).acquired_s
    clock.now += 5
    again = take(tmp_path, "I-1", A)
    assert (again.acquired_s, again.until_s) == (began, clock.now + TTL_S)


def test_it_expires_and_is_taken_over_which_both_can_see(tmp_path: Path, clock: Clock) -> None:
    take(tmp_path, "I-1", A)
    clock.now += TTL_S - 1
    assert take(tmp_path, "I-1", B).holder == A
    clock.now += 1
    new = take(tmp_path, "I-1", B)
    assert (new.holder, new.former) == (B, A)
    assert kept(tmp_path, A) is None
    assert lost_by(read_leases(str(tmp_path)), A) == new
    assert release(str(tmp_path), A) == new
    assert lost_by(read_leases(str(tmp_path)), A) is None
    assert held_by(read_leases(str(tmp_path)), B) == new._replace(former=None)


def test_it_is_renewed_and_expired_too_if_nobody_has_taken_it(tmp_path: Path, clock: Clock) -> None:
    take(tmp_path, "I-1", A)
    for step_s in (TTL_S / 2, TTL_S / 2, TTL_S * 3):
        clock.now += step_s
        renewed = kept(tmp_path, A)
        assert renewed is not None
        assert renewed.renewed_s == clock.now
        assert renewed.is_live


def test_a_renewal_that_comes_too_late_does_not_take_it_back(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(tmp_path, "I-1", A)
    clock.now += TTL_S
    read = lease.read_leases

    def read_and_lose(folder: str) -> dict[str, Lease]:
        before = read(folder)
        monkeypatch.setattr(lease, "read_leases", read)
        take(tmp_path, "I-1", B)
        return before

    monkeypatch.setattr(lease, "read_leases", read_and_lose)
    assert kept(tmp_path, A) is None
    assert read_leases(str(tmp_path))["I-1"].holder == B


def test_release(tmp_path: Path) -> None:
    mine = take(tmp_path, "I-1", A)
    assert release(str(tmp_path), B) is None
    assert release(str(tmp_path), A) == mine
    assert read_leases(str(tmp_path)) == {}
    assert take(tmp_path, "I-1", B).former is None


@pytest.mark.parametrize(
    ("ended", "free"), [(A1, ["I-1"]), (A, ["I-0", "I-1", "I-2"]), (B, [])], ids=str
)
def test_an_end_frees_at_once_and_is_not_waited_for(
    tmp_path: Path, ended: Holder, free: list[str]
) -> None:
    for intent, holder in (("I-0", A), ("I-1", A1), ("I-2", A2)):
        take(tmp_path, intent, holder)
    end(str(tmp_path), ended)
    assert sorted(n for n, one in read_leases(str(tmp_path)).items() if not one.is_live) == free
    if free:
        taken = take(tmp_path, free[0], B)
        assert (taken.holder, taken.former) == (B, None)


def test_whoever_has_ended_and_goes_on_has_it_again(tmp_path: Path) -> None:
    take(tmp_path, "I-1", A1)
    end(str(tmp_path), A1)
    again = kept(tmp_path, A1)
    assert again
    assert again.is_live


@each_case("content", [b"", b"[", b"7", b"{}", b"[7]", b'[{"intent": "I-1"}]', b"\xff"])
def test_a_damaged_file_holds_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / lease.FILE).write_bytes(content)
    assert read_leases(str(tmp_path)) == {}
    assert take(tmp_path, "I-1", A).holder == A
    assert read_leases(str(tmp_path))["I-1"].holder == A


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / lease.FILE).symlink_to("/dev/zero")
    with pytest.raises(StateError, match=f"{lease.FILE}: cannot be read: "):
        read_leases(str(tmp_path))


RACER = """
import sys
from gitgates.features.intents.lease import Holder, acquire
folder, name = sys.argv[1:]
for line in sys.stdin:
    won = acquire(folder, line.strip(), Holder(name), ttl_s=600, git_dir_abs="").holder.session
    print(won, flush=True)
"""


@pytest.mark.slow
def test_of_two_processes_exactly_one_gets_it(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    said: list[tuple[str, ...]] = []
    for number in range(ROUNDS):
        for racer in racers if number % 2 else reversed(racers):
            assert racer.stdin
            racer.stdin.write(f"I-{number}\n")
            racer.stdin.flush()
        said.append(tuple(racer.stdout.readline().strip() for racer in racers if racer.stdout))
    for racer in racers:
        racer.communicate(timeout=30)
    assert [sorted(set(pair)) in (["a"], ["b"]) for pair in said] == [True] * ROUNDS
    left = {one.intent: one.holder.session for one in read_leases(str(tmp_path)).values()}
    assert len(set(left.values())) == len(left)  # each has the last one that it won
    assert set(left.items()) <= {(f"I-{n}", pair[0]) for n, pair in enumerate(said)}


def test_it_is_private(tmp_path: Path) -> None:
    take(tmp_path / "gitgates", "I-1", A)
    file = tmp_path / "gitgates" / lease.FILE
    assert oct(os.stat(file).st_mode)[-3:] == "600"
    assert json.loads(file.read_text())[0]["renewed_s"] <= time.time()
