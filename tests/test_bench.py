"""The bench still measures what it says. How fast it is, is not a test's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gitgates.hosts import AGENTS

BENCH = Path(__file__).resolve().parent / "bench" / "hooks.py"
ROWS = ["bare interpreter", "gitgates", "gitgates, no gates", "prek", "pre-commit", "lefthook"]


@pytest.mark.nightly
def test_the_bench_measures_every_manager() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "-n", "2"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, _head, *rows = done.stdout.splitlines()
    assert first == "an installed pre-commit hook with three gates `true`; median of 2 runs"
    assert [row[:20].strip() for row in rows] == ROWS


@pytest.mark.nightly
def test_the_bench_of_hiding_measures_every_manager() -> None:
    done = subprocess.run(
        [sys.executable, BENCH.with_name("partial.py"), "-n", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, _head, *rows = done.stdout.splitlines()
    assert first.endswith("20 of 1,000 files partially staged; median of 1 runs")
    assert [row.split()[0] for row in rows] == ["gitgates", "prek", "pre-commit", "lefthook"]


@pytest.mark.nightly
def test_the_bench_of_an_agents_hook_measures_every_event() -> None:
    done = subprocess.run(
        [sys.executable, BENCH.with_name("agent.py"), "-n", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, _head, *rows, plain, intents = done.stdout.splitlines()
    assert first == "an agent's hook with nothing to run; median of 1 runs"
    assert len(rows) == 14 + len(AGENTS)
    assert plain.startswith("at most 20.0 ms above a bare interpreter, git aside: ")
    assert intents.startswith("at most 35.0 ms above a bare interpreter, git aside, with intents: ")


@pytest.mark.nightly
def test_the_bench_of_the_review_gate_measures_plain_git_too() -> None:
    done = subprocess.run(
        [sys.executable, BENCH.with_name("review.py"), "-n", "1", "--files", "2000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, plain, ours, last = done.stdout.splitlines()
    assert first == "an agent stops, 2,000 files, 80 changed; median of 1 runs"
    assert plain.startswith("plain git: a snapshot, and a comparison")
    assert ours.startswith("the review gate")
    assert last.startswith("at most 1.5 x + 40 ms: ")


@pytest.mark.nightly
def test_the_bench_of_worktrees_measures_all_of_them() -> None:
    options = ("-n", "3", "--gates", "2", "--seconds", "0.05")
    done = subprocess.run(
        [sys.executable, BENCH.with_name("worktrees.py"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first.startswith("3 agents stop at once, each with 2 gates of 0.05 s CPU; ")
    assert [line.partition(":")[0] for line in rest[:2]] == ["all of it", "a person's commit"]
    assert len(rest) == 4


@pytest.mark.nightly
def test_the_bench_of_history_measures_each_dimension() -> None:
    done = subprocess.run(
        [sys.executable, BENCH.with_name("scale.py"), "-n", "1", "--divide", "1000"],
        capture_output=True,
        text=True,
        check=False,
    )
    first, *parts = done.stdout.split("\n\n")
    assert first == "1, 10 and 100 times as much; median of 1 runs; *: hot path"
    assert len(parts) == 10
    assert all(len(part.splitlines()) > 3 for part in parts)
    assert done.returncode == ("grows: " in done.stderr)
