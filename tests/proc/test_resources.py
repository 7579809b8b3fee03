"""Named resources: taken in turn, without circles, and free when their holder is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitgates.core.errors import ConfigError
from gitgates.proc.pool import Use, when_free
from gitgates.proc.resources import Resources, Wait
from gitgates.store.proofs import note_durations

HOLD = """
import os, sys
from gitgates.proc.pool import Use
from gitgates.proc.resources import Resources
(fd,) = Resources(os.environ, {}).take(Use("t"), ("db",))
os.set_inheritable(fd, True)
os.system("sleep 60 & echo $! >&2; exec >&-; sleep 60")
"""


def one(folder: Path, limits: dict[str, int] | None = None, **fields: Any) -> Resources:
    return Resources({"GITGATES_POOL": str(folder)}, limits or {}, **fields)


def take(resources: Resources, *names: str, gate: str = "t") -> tuple[int, ...] | Wait:
    return resources.take(Use(gate, "", "/r"), names)


def has(resources: Resources, *names: str, gate: str = "t") -> bool:
    return not isinstance(take(resources, *names, gate=gate), Wait)


def wait(found: tuple[int, ...] | Wait) -> Wait:
    assert isinstance(found, Wait)
    return found


def test_who_waits_is_told_for_what_its_place_and_how_long(tmp_path: Path) -> None:
    first, second, third, other = (one(tmp_path / "pool") for _ in range(4))
    state = str(tmp_path / "state")
    note_durations(state, {"a": 100.0, "c": 50.0})
    assert isinstance(first.take(Use("a", state, "/r"), ("db",)), tuple)
    assert has(other, "port:1", gate="b")
    found = wait(second.take(Use("c", state, "/r"), ("db",)))
    assert (found.what, found.place, found.holder) == ("`db`", 1, "`a` in /r")
    assert found.left_s == pytest.approx(100.0, abs=5.0)
    found = wait(third.take(Use("d", state, "/r"), ("port:1", "db")))
    assert (found.what, found.place) == ("`db`", 2)
    assert found.left_s == pytest.approx(150.0, abs=5.0)
    assert found.text.startswith("`db` after `a` in /r, place 2, about 1")
    assert wait(take(second, "port:1", gate="e")).text == "`port:1` after `b` in /r, place 1"


def test_whoever_came_first_is_first_and_people_are_before_agents(tmp_path: Path) -> None:
    holder, agent, later = (one(tmp_path) for _ in range(3))
    person = one(tmp_path, is_urgent=True)
    assert has(holder, "db")
    places = [wait(take(each, "db")).place for each in (agent, later, person, agent)]
    assert places == [1, 2, 1, 2]
    holder.give_back("t")
    for each, behind in ((person, agent), (agent, later)):
        assert not has(behind, "db")
        assert has(each, "db")
        each.close()
    assert has(later, "db")


def test_whoever_was_told_to_wait_keeps_its_place(tmp_path: Path) -> None:
    holder, later, before = one(tmp_path), one(tmp_path), one(tmp_path, since_ns=1)
    assert has(holder, "db")
    assert [wait(take(each, "db")).place for each in (later, before, later)] == [1, 1, 2]


def test_none_waits_in_a_circle(tmp_path: Path) -> None:
    first, second, third = (one(tmp_path) for _ in range(3))
    assert has(first, "b")
    assert wait(take(second, "b", "a")).what == "`b`"  # and has `a`
    assert wait(take(third, "a", "b")).what == "`a`"
    first.give_back("t")
    assert not has(third, "a", "b")
    assert has(second, "b", "a")
    second.give_back("t")
    assert has(third, "a", "b")


def test_a_number_lets_more_in(tmp_path: Path) -> None:
    first, second, third = (one(tmp_path, {"db": 2}) for _ in range(3))
    assert has(first, "db")
    assert has(first, "db", gate="u")
    assert not has(second, "db")
    first.give_back("u")
    assert has(second, "db")
    assert not has(third, "db")


def test_any_text_is_a_name(tmp_path: Path) -> None:
    names = ["/dev/ttyUSB0", "..", "ä" * 100, "a b"]
    first, second = one(tmp_path), one(tmp_path)
    assert has(first, *names)
    assert [has(second, name) for name in [*names, "other"]] == [False] * 4 + [True]


@pytest.mark.slow
def test_after_a_kill_it_is_free_when_the_gates_processes_are_gone(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "GITGATES_POOL": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr
    left = int(process.stderr.readline())
    other = one(tmp_path)
    process.kill()
    process.wait()
    assert not has(other, "db")  # the gate still has it
    os.kill(left, 0)
    os.killpg(process.pid, signal.SIGKILL)
    with process.stderr:
        process.stderr.read()  # until the last of them is gone
    assert has(other, "db")


def test_it_is_given_back_though_a_process_has_inherited_it(tmp_path: Path) -> None:
    holder, other = one(tmp_path), one(tmp_path)
    found = take(holder, "db")
    assert isinstance(found, tuple)
    copy = os.dup(int(found[0]))
    holder.give_back("t")
    assert has(other, "db")
    os.close(copy)


def test_a_stopped_holder_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, other = one(tmp_path), one(tmp_path)
    assert has(holder, "db")
    assert not has(other, "db")
    monkeypatch.setattr("gitgates.proc.pool._GRACE_S", 0.0)
    assert not has(other, "db")


def test_where_there_can_be_none(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(PermissionError, match="is not a folder of yours alone"):
        take(one(tmp_path / "shared"), "db")
    with pytest.raises(ConfigError, match="expected an absolute path"):
        take(Resources({"GITGATES_POOL": "x"}, {}), "db")
    assert take(Resources({"GITGATES_POOL": "0"}, {}), "db") == ()


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
