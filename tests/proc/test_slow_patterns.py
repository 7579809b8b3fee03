"""Regular expressions of the configuration that take for ever: bounded, said, and interruptible."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from agent_support import begin
from conftest import Repo

from gitgates.engine.plan.hooks import matches_agent, matches_tool
from gitgates.proc.bounded import LIMIT_S, compute

SLOW = r"(?:a+)+c(\d+)"
LINE = "a" * 3000
METRIC = f"""
[gates.test]
command = "cat report.txt"
metrics.coverage = {{ pattern = '{SLOW}', better = "higher" }}
[hooks.manual]
gates = ["test"]
[hooks.Stop]
gates = ["test"]
"""
SAID = b"the patterns of its metrics took longer than 5 s on its output"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_slow_pattern_of_a_number_is_given_up_and_said(repo: Repo) -> None:
    repo.config(METRIC)
    repo.write("report.txt", LINE)
    done = repo.gitgates("run", "manual")
    assert (done.returncode, SAID in done.stdout) == (0, True), done.stdout
    repo.config(METRIC.replace("metrics", "ratchet = true\nmetrics"))
    done = repo.gitgates("run", "manual")
    assert (done.returncode, SAID in done.stdout) == (1, True), done.stdout


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["run manual", "agent-hook claude"])
def test_a_run_is_interrupted_while_a_pattern_is_looked_for(repo: Repo, verb: str) -> None:
    repo.config(METRIC)
    repo.commit_all("base")
    agent = begin(repo, METRIC)
    agent.write("report.txt", LINE)
    process = subprocess.Popen(
        [sys.executable, "-m", "gitgates", *verb.split()],
        cwd=repo.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdin
    process.stdin.write(agent.payload("Stop"))
    process.stdin.close()
    process.stdin = None
    until = time.monotonic() + 30
    # It has forked: what is to become git, or a gate, looks so for a moment only.
    while not (_children(process.pid) & _children(process.pid, after_s=0.2)):
        assert process.poll() is None
        assert time.monotonic() < until
    process.send_signal(signal.SIGTERM)
    told = time.monotonic()
    said, _error = process.communicate(timeout=30)
    assert time.monotonic() - told < LIMIT_S - 1
    assert b"interrupted by signal 15" in said
    assert _children(process.pid) == set()


def _children(parent: int, *, after_s: float = 0.0) -> set[str]:
    """Return the ids of the processes that a process has forked and that run its program."""
    time.sleep(after_s)
    asked = ["ps", "-Ao", "pid=,ppid=,args="]
    listed = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return {pid for pid, by, args in rows if by == str(parent) and args.startswith(sys.executable)}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_slow_pattern_of_failures_makes_the_output_one_failure_and_is_said(repo: Repo) -> None:
    gate = f"[gates.g]\ncommand = 'cat report.txt; exit 1'\nfailures = '{SLOW}'\n"
    agent = begin(repo, f"{gate}[hooks.Stop]\ngates = ['g']\n")
    agent.write("report.txt", LINE)
    said = agent.stop()
    assert said["decision"] == "block"
    assert "`g`: its pattern `failures` took longer than 5 s, so the whole" in said["reason"]
    assert agent.outcomes() == ["blocked"]


def test_a_failure_in_the_child_is_no_answer() -> None:
    with pytest.raises(RuntimeError):
        compute(lambda: [] + None, 30)  # type: ignore[operator]
    assert compute(lambda: {"a": [1.5, "é\udc80"]}, 30) == {"a": [1.5, "é\udc80"]}


@pytest.mark.slow
@pytest.mark.parametrize("matches", [matches_tool, matches_agent])
def test_globs_of_tools_and_agents_are_matched_at_once(
    matches: Callable[[tuple[str, ...], str], bool],
) -> None:
    began = time.monotonic()
    assert matches((f"{'*a' * 30}b",), "a" * (1 << 20))  # rather than none: no tool is called so
    assert not matches((f"{'*a' * 30}b",), "a" * 1000)
    assert time.monotonic() - began < 1
