"""Named resources: taken together or not at all, in turn, and free when their holder is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitgates.core.errors import ConfigError
from gitgates.proc.pool import when_free
from gitgates.proc.resources import Resources, Wait, open_resources, poll_s

HOLD = """
import os, sys
from gitgates.proc.resources import Resources
fd = Resources(sys.argv[1], {}, "/r", is_urgent=False).take("t", ("db",), 0.0)
os.set_inheritable(fd, True)
os.system("sleep 60 & echo $! >&2; exec >&-; sleep 60")
"""


def one(folder: Path, limits: dict[str, int] | None = None, **fields: Any) -> Resources:
    return Resources(str(folder), limits or {}, "/r", **{"is_urgent": False, **fields})


def wait(found: int | Wait) -> Wait:
    assert isinstance(found, Wait)
    return found


def test_who_waits_is_told_for_what_its_place_and_how_long(tmp_path: Path) -> None:
    first, second, third, other = (one(tmp_path) for _ in range(4))
    assert isinstance(first.take("a", ("db",), 100.0), int)
    assert isinstance(other.take("b", ("port:1",), 0.0), int)
    found = wait(second.take("c", ("db",), 50.0))
    assert (found.what, found.place, found.holder) == ("`db`", 1, "`a` in /r")
    assert found.left_s == pytest.approx(100.0, abs=5.0)
    found = wait(third.take("d", ("db", "port:1"), 1.0))
    assert (found.what, found.place, found.left_s) == ("`db` and `port:1`", 2, None)
    assert found.text == "`db` and `port:1` after `a` in /r, place 2"


def test_whoever_came_first_is_first_and_people_are_before_agents(tmp_path: Path) -> None:
    holder, agent, later = (one(tmp_path) for _ in range(3))
    person = one(tmp_path, is_urgent=True)
    assert isinstance(holder.take("t", ("db",), 0.0), int)
    places = [wait(each.take("t", ("db",), 0.0)).place for each in (agent, later, person, agent)]
    assert places == [1, 2, 1, 2]
    holder.give_back("t")
    for each, behind in ((person, agent), (agent, later)):
        assert isinstance(behind.take("t", ("db",), 0.0), Wait)
        assert isinstance(each.take("t", ("db",), 0.0), int)
        each.close()
    assert isinstance(later.take("t", ("db",), 0.0), int)
    later.close()
    assert os.listdir(tmp_path) == ["lock"]


def test_all_are_taken_together_or_none(tmp_path: Path) -> None:
    first, second, third = (one(tmp_path) for _ in range(3))
    assert isinstance(first.take("t", ("a",), 0.0), int)
    assert isinstance(second.take("t", ("b", "a"), 0.0), Wait)
    assert isinstance(third.take("t", ("b",), 0.0), Wait)  # or the second might starve
    first.give_back("t")
    assert isinstance(second.take("t", ("b", "a"), 0.0), int)
    second.put_back("t")  # it waits for a slot
    assert isinstance(third.take("t", ("b",), 0.0), Wait)
    assert isinstance(second.take("t", ("a", "b"), 0.0), int)
    second.give_back("t")
    assert isinstance(third.take("t", ("b",), 0.0), int)


def test_the_smaller_number_of_two_configurations_counts(tmp_path: Path) -> None:
    two, also_two, alone = one(tmp_path, {"db": 2}), one(tmp_path, {"db": 2}), one(tmp_path)
    assert isinstance(two.take("t", ("db",), 0.0), int)
    assert isinstance(alone.take("t", ("db",), 0.0), Wait)
    assert isinstance(also_two.take("t", ("db",), 0.0), Wait)
    alone.close()
    assert isinstance(also_two.take("t", ("db",), 0.0), int)
    assert isinstance(two.take("u", ("db",), 0.0), Wait)


def test_whoever_is_stopped_while_it_waits_is_passed_over(tmp_path: Path) -> None:
    holder, stopped, other = (one(tmp_path) for _ in range(3))
    assert isinstance(holder.take("t", ("db",), 0.0), int)
    assert isinstance(stopped.take("t", ("db",), 0.0), Wait)
    assert wait(other.take("t", ("db",), 0.0)).place == 2
    os.utime(next(tmp_path / name for name in sorted(os.listdir(tmp_path))[1:2]), (0, 0))
    assert wait(other.take("t", ("db",), 0.0)).place == 1
    holder.close()
    assert isinstance(other.take("t", ("db",), 0.0), int)


@pytest.mark.slow
def test_after_a_kill_it_is_free_when_the_gates_processes_are_gone(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr
    left = int(process.stderr.readline())
    other = one(tmp_path)
    process.kill()
    process.wait()
    assert isinstance(other.take("t", ("db",), 0.0), Wait)  # the gate still has it
    os.kill(left, 0)
    os.killpg(process.pid, signal.SIGKILL)
    with process.stderr:
        process.stderr.read()  # until the last of them is gone
    assert isinstance(other.take("t", ("db",), 0.0), int)


def test_it_is_given_back_though_a_process_has_inherited_it(tmp_path: Path) -> None:
    holder, other = one(tmp_path), one(tmp_path)
    fd = holder.take("t", ("db",), 0.0)
    assert isinstance(fd, int)
    copy = os.dup(fd)
    holder.give_back("t")
    assert isinstance(other.take("t", ("db",), 0.0), int)
    os.close(copy)


def test_what_is_no_claim_is_left_alone_or_removed(tmp_path: Path) -> None:
    for name in ("0-1-2-0", "notes"):
        (tmp_path / name).write_text("?")
    assert isinstance(one(tmp_path).take("t", ("db",), 0.0), int)


def test_where_there_can_be_none(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(PermissionError, match="is not a folder of yours alone"):
        open_resources({"GITGATES_POOL": f"{tmp_path}/shared"}, {}, "/r", is_urgent=False)
    with pytest.raises(ConfigError, match="expected an absolute path"):
        open_resources({"GITGATES_POOL": "x"}, {}, "/r", is_urgent=False)
    assert open_resources({"GITGATES_POOL": "0"}, {}, "/r", is_urgent=False) is None


@pytest.mark.parametrize(
    ("left", "before", "expected"),
    [
        ([5.0], [], 5.0),
        ([5.0, 1.0], [10.0], 5.0),
        ([5.0, 1.0], [10.0, 2.0], 7.0),
        ([None], [], None),
        ([1.0], [None], None),
    ],
)
def test_when_it_is_ones_turn(left: Any, before: Any, expected: float | None) -> None:
    assert when_free(left, before) == expected


def test_whoever_is_far_behind_looks_less_often() -> None:
    assert [round(poll_s(Wait("x", place)), 1) for place in (0, 1, 2, 9)] == [0.1, 0.1, 0.4, 2.0]
