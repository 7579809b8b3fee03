"""Random changes to files in and outside of two worktrees, against a gate that always runs.

What the gate has seen is a text; where that is another one after a change, a difference has to be
found, and where nothing has changed, none.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from observed_support import Observer, needs_strace
from observed_world import GATE, World, see

pytestmark = [needs_strace, pytest.mark.thorough]

STEPS, EACH = 2000, 20  # in all, and between two runs


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.observed.state._SETTLED_NS", 200_000_000)  # some are kept
    for name in ("bin", "own"):
        (tmp_path / name).mkdir()
    gate = tmp_path / "bin" / "gate.py"
    gate.write_text(GATE)
    top = tmp_path / "world"
    roots = (top / "x" / "wt1", top / "x" / "wt2", top / "y" / "deep" / "wt3")
    for root in roots:
        root.mkdir(parents=True)
    world = World(roots, seed)
    observer = Observer(world.roots[0], tmp_path / "own")
    wrong, same, again = [], 0, 0
    for _ in range(STEPS // EACH // 4):
        steps = world.steps()
        words = [word for step in steps for word in step]
        found = observer.settled(sys.executable, "-SEs", str(gate), *words)
        before = see(world.roots[0], steps)
        assert observer.difference(found) == "", steps
        for _ in range(EACH):
            change = world.change()
            for root in world.roots:
                after, difference = see(root, steps), observer.difference(found, root)
                if after != before and not difference:
                    wrong.append((steps, change, root.name, before, after))
                if root is world.roots[0] and after == before:
                    same += 1
                    again += bool(difference)
    assert wrong[:3] == []
    assert again < same / 5  # as other things were changed that it has looked at
