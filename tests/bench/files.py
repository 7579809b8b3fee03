"""Looks at a large working tree, beside `git status` in the same run.

    python tests/bench/files.py [FILES]

The runs are interleaved; medians of wall time, and of processor time with that of children. Bars
of wall time: a look at 1.3 times `git status` and 40 ms, the first one at 3 times.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from gitgates.files.look import look
from gitgates.files.points import Author, record
from gitgates.git.repo import Repo, find_repo

ROUNDS = int(os.environ.get("ROUNDS", "7"))
PER_FOLDER = 50
Times = defaultdict[str, list[tuple[float, float]]]


def make(root: Path, files: int) -> None:
    """Make a repository with as many files, in folders of fifty."""
    for number in range(files):
        if number % PER_FOLDER == 0:
            folder = root / f"p{number // 2000}" / f"m{number // PER_FOLDER}"
            folder.mkdir(parents=True)
        (folder / f"{number}.py").write_text(f"# {number}\n" + "x = 1\n" * 20)
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "first")
    git(root, "-c", "gc.auto=0", "repack", "-adq")
    time.sleep(1.1)
    git(root, "status")


def git(root: Path, *args: str) -> None:
    """Run git."""
    subprocess.run(("git", *args), cwd=root, check=True, stdout=subprocess.DEVNULL)


def measure(times: Times, name: str, work: Callable[[], object]) -> None:
    """Note how long something takes."""
    before, began = os.times(), time.perf_counter()
    work()
    wall, after = time.perf_counter() - began, os.times()
    times[name].append((wall, sum(after[:4]) - sum(before[:4])))


def forget(repo: Repo) -> None:
    """Have the next look be the first one."""
    shutil.rmtree(repo.state_abs, ignore_errors=True)


def run(root: Path) -> Times:
    """Measure everything, several times."""
    repo, times = find_repo(str(root), dict(os.environ)), Times(list)

    def status() -> None:
        git(root, "--no-optional-locks", "status", "--porcelain")

    def change(count: int) -> None:
        for number, path in enumerate(sorted(root.glob("p*/m*/*.py"))):
            if number == count:
                return
            path.write_text(f"{time.time_ns()} {number}\n" * 5)

    for _ in range(ROUNDS):
        forget(repo)
        measure(times, "git status", status)
        measure(times, "first look", lambda: look(repo))
        time.sleep(2.1)
        for _ in range(3):
            measure(times, "git status", status)
            measure(times, "look, nothing changed", lambda: look(repo))
            measure(times, "with ignored files", lambda: look(repo, ignored=True))
            measure(times, "point, nothing changed", lambda: record(repo, Author()))
        change(1)
        measure(times, "point, one changed", lambda: record(repo, Author()))
    change(2000)
    measure(times, "git status, 2,000 changed", status)
    measure(times, "point, 2,000 changed", lambda: record(repo, Author()))
    return times


def main() -> None:
    """Print the table."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        os.environ["HOME"] = folder
        root = Path(folder) / "r"
        make(root, files)
        times = run(root)
    base = statistics.median(wall for wall, _cpu in times["git status"])
    for name, runs in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        sys.stdout.write(f"{name:30} {wall:7.3f} s  {wall / base:5.2f}x  {cpu:7.3f} s CPU\n")


if __name__ == "__main__":
    main()
