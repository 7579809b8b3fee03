"""How a change is summed up: the order, the words, the numbers."""

from __future__ import annotations

from config_support import table

from gitgates.core.agent_types import FileDifference
from gitgates.features.review.config import Weighting
from gitgates.features.review.significance import weigh


def test_the_heaviest_come_first_and_what_is_left_out_last() -> None:
    changes = (
        FileDifference("a.md", "M", added=300),
        FileDifference("b.py", "M", added=3, removed=4),
        FileDifference("c.py", "M", same_content=True),
        FileDifference("d.py", "M", added=2),
        FileDifference("e.py", "M", added=1),
    )
    found = weigh(changes, table(Weighting, critical=("e.py",)))
    shown = [(one.path, one.kind, one.lines, one.files, one.counts) for one in found.files]
    assert shown == [
        ("e.py", "code", 1.0, 1.0, True),
        ("a.md", "documentation", 30.0, 0.1, True),
        ("b.py", "code", 4.0, 1.0, True),
        ("d.py", "code", 2.0, 1.0, True),
        ("c.py", "", 0.0, 0.0, False),
    ]
    assert (found.lines, found.file_count) == (37.0, 3.1)


def test_many_critical_files_are_not_all_named() -> None:
    changes = tuple(FileDifference(f"{n}.py", "M", added=1) for n in range(5))
    found = weigh(changes, table(Weighting, critical=("*.py",)))
    sums = "5 weighted lines (threshold 40), 5 weighted files (threshold 5)"
    assert found.why == f"`0.py`, `1.py`, `2.py` and 2 more are critical; {sums}"


def test_tenths_add_up() -> None:
    changes = tuple(FileDifference(f"{n}.md", "M", added=1) for n in range(50))
    found = weigh(changes, table(Weighting))
    assert found.significant
    assert found.why == "5 weighted lines (threshold 40), 5 weighted files (threshold 5)"


def test_what_is_just_below_a_threshold_is_not_rounded_up() -> None:
    found = weigh((FileDifference("a.py", "M", added=1),), table(Weighting, min_lines=1.001))
    assert found.why == "1 weighted line (threshold 1.001), 1 weighted file (threshold 5)"
