"""Records behave as the NamedTuples that type checkers take them for."""

from __future__ import annotations

import copy
import pickle

import pytest

from gitgates.core.record import Record
from gitgates.core.types import make_gate


class Point(Record):
    x: int
    y: int = 2


def test_fields_defaults_and_changes() -> None:
    point = Point(x=1)
    assert (point.x, point.y, point[1], len(point)) == (1, 2, 2, 2)
    assert point._replace(y=3) == Point(1, 3) == Point(x=1, y=3)
    assert point._asdict() == {"x": 1, "y": 2}
    assert repr(point) == "Point(x=1, y=2)"


def test_a_record_cannot_be_changed_or_misspelt() -> None:
    with pytest.raises(AttributeError):
        Point(x=1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="unknown"):
        Point(x=1, z=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Point(1, 2, 3)  # type: ignore[call-arg]


def test_copies_and_patterns() -> None:
    gate = make_gate(name="a", files=("*.py",))
    assert copy.deepcopy(gate) == pickle.loads(pickle.dumps(gate)) == gate
    match Point(x=1):
        case Point(x, y):
            assert (x, y) == (1, 2)
