"""What hiding unstaged work costs: ours beside other managers', in a repository of 1,000 files.

Each hook runs the same three gates, `true`, once with 20 partially staged paths and once with
nothing unstaged. The runs are interleaved, so a busy moment hits all alike; the table shows
medians. `--check` exits 1 where hiding costs us more than prek: the whole hook, or what comes on
top of a commit with nothing unstaged.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hooks import Bench, Runner, measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILES = 1000
LONG_AGO = 1_700_000_000
CHANGED = 20
LINES = "".join(f"line {number}\n" for number in range(40))
PARTIAL = "partial"
CLEAN = "clean"


class PartialBench(Bench):
    """For each manager, a repository with partially staged files and one with all staged."""

    def fill(self, folder: Path) -> None:
        """Write and commit 1,000 files, and stage a change of twenty."""
        for number in range(FILES):
            self._name(folder, number).parent.mkdir(exist_ok=True)
            path = self._name(folder, number)
            path.write_text(f"file {number}\n{LINES}")
            # Of files as young as the index, git reads the content again and again.
            os.utime(path, (LONG_AGO, LONG_AGO))
        author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        self._run("git", "add", ".", folder=folder)
        self._run("git", *author, "commit", "-qm", "base", folder=folder)
        for number in range(CHANGED):
            self._change(folder, number * 50, "line 3\n", "line 3, staged\n")
        self._run("git", "add", ".", folder=folder)
        if self.folder.name == PARTIAL:
            for number in range(CHANGED):
                self._change(folder, number * 50, "line 30\n", "line 30, not staged\n")

    def both(self) -> list[Runner]:
        """Return what to measure: each manager, in both of its repositories."""
        return [
            runner._replace(name=f"{runner.name} {state}")
            for state in (CLEAN, PARTIAL)
            for runner in PartialBench(self.folder / state).runners()
            if runner.name not in {"bare interpreter", "gitgates, no gates"}
        ]

    @staticmethod
    def _name(folder: Path, number: int) -> Path:
        return folder / f"d{number // 50}" / f"f{number}.txt"

    def _change(self, folder: Path, number: int, old: str, new: str) -> None:
        path = self._name(folder, number)
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, (LONG_AGO + 60, LONG_AGO + 60 * len(new)))


class Cost:
    """The medians of one manager."""

    def __init__(self, times: Mapping[str, Sequence[float]], name: str) -> None:
        self.clean = statistics.median(times[f"{name} {CLEAN}"])
        self.partial = statistics.median(times[f"{name} {PARTIAL}"])
        # Run by run: each pair was measured within the same moment.
        pairs = zip(times[f"{name} {PARTIAL}"], times[f"{name} {CLEAN}"], strict=True)
        self.hiding = statistics.median(partial - clean for partial, clean in pairs)


def costs(times: Mapping[str, Sequence[float]]) -> dict[str, Cost]:
    """Return name → what it costs."""
    names = [name.removesuffix(f" {PARTIAL}") for name in times if name.endswith(PARTIAL)]
    return {name: Cost(times, name) for name in names}


def table(found: Mapping[str, Cost], runs: int) -> str:
    """Return a line for each manager."""
    ours = found["gitgates"]
    what = f"a hook with three gates `true`, {CHANGED} of {FILES:,} files partially staged"
    head = f"{'':12}{'all staged':>12}{'partially':>12}{'hiding':>12}"
    head += f"{'partially, gitgates = 1':>26}{'hiding, gitgates = 1':>23}"
    lines = [f"{what}; median of {runs} runs", head]
    lines += [
        f"{name:12}{_ms(cost.clean):>12}{_ms(cost.partial):>12}{_ms(cost.hiding):>12}"
        f"{cost.partial / ours.partial:>26.2f}{cost.hiding / ours.hiding:>23.2f}"
        for name, cost in found.items()
    ]
    return "\n".join(lines)


def judge(found: Mapping[str, Cost]) -> int:
    """Return 1, and say why, where hiding costs us more than prek."""
    if "prek" not in found:
        return 0
    ours, prek = found["gitgates"], found["prek"]
    status = 0
    for what, mine, other in (
        ("a partially staged commit", ours.partial, prek.partial),
        ("hiding", ours.hiding, prek.hiding),
    ):
        if mine > other:
            print(f"too slow: {what} takes {_ms(mine)}; prek {_ms(other)}", file=sys.stderr)
            status = 1
    return status


def main() -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=30, help="runs of each (default 30)")
    parser.add_argument("--check", action="store_true", help="exit 1 where ours costs more")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = PartialBench(Path(folder))
        found = costs(measure(bench.both(), options.runs, bench.env))
    print(table(found, options.runs))
    return judge(found) if options.check else 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
