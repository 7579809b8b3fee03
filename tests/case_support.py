"""Which cases of a large table come first, so that `samples(N)` leaves those that differ most."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def mixed(*columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations; the first have each value at least once."""
    longest = max(map(len, columns))
    first = [tuple(column[row % len(column)] for column in columns) for row in range(longest)]
    return [*first, *(row for row in product(*columns) if row not in first)]
