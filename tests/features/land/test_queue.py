"""The queue, and the right to work on it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from land_support import BY, begin, entry, opened

from gitgates.core.errors import StateError
from gitgates.features.land.landed import as_fields
from gitgates.features.land.queue import CANCELLED, LANDED, LANDING, Queue
from gitgates.store.turn import WorkTurn

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo


def test_the_same_commit_is_queued_once_and_another_takes_its_place(repo: Repo) -> None:
    queue = Queue(opened(repo))
    first = queue.add("a", "1" * 40, target="main", by=BY)
    assert queue.add("a", "1" * 40, target="main", by=BY) == first
    second = queue.add("a", "2" * 40, target="main", by=BY)
    assert [(each.number, each.state) for each in queue.entries()] == [
        (1, CANCELLED),
        (2, "waiting"),
    ]
    assert queue.replace([second._replace(state=LANDING)])
    assert queue.cancel(["a"]) == []  # it is landing
    queue.update([2], state=LANDED)
    assert not queue.replace([second._replace(state=LANDING)])
    assert queue.entries()[1].ended_s > 0


def test_a_damaged_queue_is_no_empty_one(repo: Repo) -> None:
    queue = Queue(opened(repo))
    queue.add("a", "1" * 40, target="main", by=BY)
    path = repo.path / ".git/gitgates/land/queue.json"
    path.write_text(path.read_text()[:-9])
    with pytest.raises(StateError, match="cannot be read"):
        queue.entries()


def test_a_turn_is_one_s_until_its_holder_shows_no_life(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = WorkTurn(str(path)), WorkTurn(str(path))
    assert (first.take(), second.take(), first.is_ours) == (True, False, True)
    os.utime(path, (1.0, 1.0))
    assert (second.take(), first.is_ours, second.is_ours) == (True, False, True)
    first.release()
    assert second.is_ours
    second.release()
    assert first.take()
    first.release()


def test_who_waits_is_told_its_place_and_the_expected_time(repo: Repo) -> None:
    begin(repo)
    queue = Queue(opened(repo), at_once=2)
    tip = repo.head()
    entries = [entry(name, tip, number=number) for number, name in enumerate("abc", 1)]
    queue.change(lambda _before: entries)
    rows = [as_fields(each, queue) for each in queue.entries()]
    assert [(row["place"], row["expected_seconds"]) for row in rows] == [
        (1, None),
        (2, None),
        (3, None),
    ]
    gates = (("lint", "passed", 2.0), ("test", "passed", 60.0))
    queue.update([1], state=LANDED, gates=gates)
    queue.add("d", tip, target="main", by=BY)
    done, *waiting = [as_fields(each, queue) for each in queue.entries()]
    assert (done["place"], done["expected_seconds"]) == (0, None)
    assert [(row["place"], row["expected_seconds"]) for row in waiting] == [
        (1, 62.0),
        (2, 62.0),
        (3, 124.0),
    ]
    listed = json.loads(repo.gitgates("land", "--list", "--format=json").stdout)["entries"]
    assert [row["place"] for row in listed] == [0, 1, 2, 3]
