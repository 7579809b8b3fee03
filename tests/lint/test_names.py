"""Names say what they hold; `python tests/vague_names.py` lists those that do not."""

from __future__ import annotations

from pathlib import Path

from vague_names import VAGUE, count, share

ROOT = Path(__file__).resolve().parents[2]


def test_few_names_say_nothing() -> None:
    names, _by_file = count(ROOT)
    assert names.total() > 10_000
    assert share(names) < 0.01, {name: names[name] for name in VAGUE if names[name]}
