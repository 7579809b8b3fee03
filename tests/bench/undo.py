"""What a save point costs, beside git's own answer to the same question.

Before a shell command, with nothing changed, a point is a look; the figure is that of the whole
agent hook above a bare interpreter. With many changes, it is beside `git add -A` and
`git write-tree` into a temporary index. With 1,000 points, time and disk are beside those of the
first ones. The runs are interleaved, so a busy moment hits all alike; the table shows medians.
`--check` exits 1 where a promise does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent import BARE, CONFIG, LONG_AGO, Bench

from gitgates.files.points import SESSION, Author, Facts, record
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ABOVE_BARE_S = 0.020
MOST_OF_GIT, MOST_MORE_S = 1.3, 0.040
MOST_GROWTH = 1.2  # of the last points, in comparison with the first
UNCHANGED, LARGE, CHANGED, POINTS = 5_000, 50_000, 2_000, 1_000


class UndoBench(Bench):
    """Repositories in which points are taken."""

    def repository(self, name: str, files: int) -> Path:
        """Make one with committed files, which are older than its index."""
        root = self.folder / name
        self.run("git", "init", "-q", root)
        (root / "pyproject.toml").write_text(CONFIG)
        for number in range(files):
            _write(root, number, "first")
        author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        self.run("git", "-C", root, "add", ".")
        self.run("git", "-C", root, *author, "commit", "-qm", "base")
        return root

    def hook(self, root: Path, event: str, command: str) -> float:
        """Return how long the hook of a shell command took."""
        payload = {"session_id": "s", "cwd": str(root), "hook_event_name": event}
        tool = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t"}
        argv = (str(self.bin / "gitgates"), "agent-hook", "claude")
        return self.timed(argv, root, json.dumps({**payload, **tool}).encode())

    def timed(self, argv: tuple[str, ...], root: Path, stdin: bytes = b"", **env: str) -> float:
        """Return how long a program took, which must not fail."""
        begin = time.perf_counter()
        done = subprocess.run(
            argv, cwd=root, env={**self.env, **env}, input=stdin, capture_output=True, check=False
        )
        took = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(f"{argv}: {done.stdout!r} {done.stderr!r}")
        return took

    def take(self, root: Path) -> float:
        """Return how long a point took, in this process."""
        begin = time.perf_counter()
        record(find_repo(str(root), self.env), Author(SESSION, "s"), Facts(tool="Bash"))
        return time.perf_counter() - begin


def _write(root: Path, number: int, text: str) -> None:
    path = root / f"d{number // 50}" / f"f{number}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"number = {number}\ntext = {text!r}\n" + "# a line\n" * 40)
    at = LONG_AGO + len(text)
    os.utime(path, (at, at))


def _unchanged(bench: UndoBench, runs: int) -> bool:
    """Measure points where nothing has changed."""
    root = bench.repository("unchanged", UNCHANGED)
    bench._begin_session(root)  # noqa: SLF001 - of its own base
    bench.hook(root, "PreToolUse", "make")
    if not (root / ".git/gitgates/undo/git").is_dir():
        raise SystemExit("the hook takes no save points")
    asks: dict[str, Callable[[], float]] = {
        BARE: lambda: bench.timed((str(bench.bin / "python"), "-c", "pass"), root),
        "git status": lambda: bench.timed(("git", "status", "--porcelain"), root),
        "a point, in process": lambda: bench.take(root),
        "hook before a command that reads": lambda: bench.hook(root, "PreToolUse", "cat d0/f0.py"),
        "hook before a command": lambda: bench.hook(root, "PreToolUse", "make"),
        "hook after it": lambda: bench.hook(root, "PostToolUse", "make"),
    }
    medians = _medians(asks, runs)
    _table(f"{UNCHANGED:,} files, nothing changed; median of {runs} runs", medians)
    above = medians["hook before a command"] - medians[BARE]
    return _judge(f"at most {_ms(MOST_ABOVE_BARE_S)} above bare", above <= MOST_ABOVE_BARE_S)


def _changed(bench: UndoBench, runs: int) -> bool:
    """Measure points of many changes."""
    root = bench.repository("changed", LARGE)
    bench.take(root)
    index = str(bench.folder / "index")
    shutil.copy(root / ".git/index", index)
    plain = "git add -A && git write-tree"

    def change(turn: int) -> None:
        for number in range(CHANGED):
            _write(root, number * (LARGE // CHANGED), f"turn {turn}")

    ours, gits = [], []
    for turn in range(runs):
        change(turn)
        first: list[Callable[[], None]] = [
            lambda: ours.append(bench.take(root)),
            lambda: gits.append(bench.timed(("sh", "-c", plain), root, GIT_INDEX_FILE=index)),
        ]
        for each in first if turn % 2 else reversed(first):
            each()
    medians = {plain: statistics.median(gits), "a point, in process": statistics.median(ours)}
    _table(f"{LARGE:,} files, {CHANGED:,} changed; median of {runs} runs", medians)
    most = MOST_OF_GIT * medians[plain] + MOST_MORE_S
    text = f"at most {MOST_OF_GIT} × git + {_ms(MOST_MORE_S)} = {_ms(most)}"
    return _judge(text, medians["a point, in process"] <= most)


def _many(bench: UndoBench) -> bool:
    """Measure the last of many points, beside the first."""
    root = bench.repository("many", UNCHANGED)
    bench.take(root)
    times, sizes = [], [_disk(root)]
    for turn in range(POINTS):
        _write(root, turn, "changed")
        times.append(bench.take(root))
        if turn in (POINTS // 10, POINTS - POINTS // 10, POINTS - 1):
            sizes.append(_disk(root))
    tenth = POINTS // 10
    first, last = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
    list_s = bench.timed((sys.executable, "-m", "gitgates", "undo"), root)
    _table(
        f"{POINTS:,} points of one file each, of {UNCHANGED:,}",
        {f"the first {tenth}, each": first, f"the last {tenth}, each": last, "undo, list": list_s},
    )
    early, late = (sizes[1] - sizes[0]) / tenth, (sizes[3] - sizes[2]) / tenth
    print(f"disk for each: {early / 1024:.1f} KiB at first, {late / 1024:.1f} KiB at last")
    holds = last <= first * MOST_GROWTH and late <= early * MOST_GROWTH
    return _judge(f"at most {MOST_GROWTH} times as much at last", holds)


def _disk(root: Path) -> int:
    folder = root / ".git/gitgates"
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _medians(asks: dict[str, Callable[[], float]], runs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in asks}
    for turn in range(runs + 1):
        for name in asks if turn % 2 else reversed(asks):
            took = asks[name]()
            if turn:  # the first one warms up
                times[name].append(took)
    return {name: statistics.median(each) for name, each in times.items()}


def _table(head: str, medians: dict[str, float]) -> None:
    print(head)
    for name, median in medians.items():
        print(f"  {name:40}{_ms(median):>12}")


def _judge(text: str, holds: bool) -> bool:  # noqa: FBT001 - the verdict is all there is
    print(f"{text}: {'holds' if holds else 'does not hold'}\n")
    return holds


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def main() -> int:
    """Measure, print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=20, help="runs of each (default 20)")
    parser.add_argument("--check", action="store_true", help="exit 1 where ours costs too much")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = UndoBench(Path(folder))
        held = [_unchanged(bench, options.runs), _changed(bench, max(options.runs // 4, 3))]
        held.append(_many(bench))
    return 0 if all(held) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
