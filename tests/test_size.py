"""What `make size` counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import size

A = """\
from gitgates.one.b import Twice
class Twice(Record):
    x: int
def short():
    return 1
"""
B = """\
class Twice: ...
def long():
    a = 1
    return a
"""


def test_the_source_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "gitgates" / "one"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", "a": A, "b": B}.items():
        (folder / f"{name}.py").write_text(text)
    assert dict(size.source_rows(size.read_modules(tmp_path))) == {
        "modules": 3,
        "lines": 9,
        "records": 1,
        "names of more than one class": "1  Twice",
        "modules with one importer, in their package": 1,
        "functions": 2,
        "median function": "2.5 lines",
        "longest function": "3 lines  gitgates/one/b.py:2 long",
    }


@pytest.mark.slow
def test_a_trip_is_profiled(tmp_path: Path) -> None:
    trip = size.Profiled(size.ROOT, tmp_path).git_hook()
    assert {"gitgates.__main__", "gitgates.entry.githook"} <= set(trip.modules)
    assert {"Plan", "Decision"} <= set(trip.records)
    assert trip.calls > trip.switches > 0
