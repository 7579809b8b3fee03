"""Which candidates are tested now, and which may land."""

from __future__ import annotations

import pytest

from gitgates.features.land.lander import GREEN, RED, TESTING, UNTESTED, due, landable

_STATES = {"-": UNTESTED, "t": TESTING, "g": GREEN, "r": RED}


def states(text: str) -> list[str]:
    return [_STATES[char] for char in text]


@pytest.mark.parametrize(
    ("text", "batch", "free", "expected"),
    [
        ("", 4, 2, []),
        ("---", 4, 2, [2]),  # fewer than a batch
        ("------", 4, 1, [3]),
        ("---------", 4, 8, [3, 7, 8]),  # the next ones on those that are under way
        ("---t--", 4, 8, [5]),
        ("---t", 4, 8, []),
        ("---", 1, 2, [0, 1]),
        ("---r", 4, 1, [1]),  # the half
        ("---r----", 4, 8, [0, 1, 2]),  # at once, where there is room
        ("-r-r", 4, 1, [0]),
        ("tr", 4, 1, []),
        ("-------r", 8, 3, [1, 3, 5]),
        ("---", 4, 0, []),
    ],
)
def test_what_is_tested_now(text: str, batch: int, free: int, expected: list[int]) -> None:
    assert due(states(text), batch=batch, free=free) == expected


@pytest.mark.parametrize(
    ("text", "batch", "expected"),
    [("", 4, -1), ("--t", 4, -1), ("--g-", 4, 2), ("r-g", 4, 2), ("tg", 1, -1), ("ggt", 1, 1)],
)
def test_what_may_land(text: str, batch: int, expected: int) -> None:
    assert landable(states(text), batch=batch) == expected
