"""A gate that writes runs alone in its worktree, also beside the gates of another process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo

from gitgates.worktree.locks import FixerLock

CONFIG = """
[tool.gitgates.gates.fix]
command = "{command}"
writes = true
[tool.gitgates.gates.check]
command = "{command}"
[tool.gitgates.hooks.manual]
gates = ["fix"]
[tool.gitgates.hooks.pre-commit]
gates = ["check"]
"""
# The first one is there for a while; each fails where another one is there.
COMMAND = "mkdir $OUT/alone && touch $OUT/up && sleep 0.4 && rmdir $OUT/alone"


def start(repo: Repo, hook: str) -> subprocess.Popen[str]:
    """Start the gate of a hook in a process of its own."""
    argv = (sys.executable, "-m", "gitgates", "run", hook)
    return subprocess.Popen(
        argv, cwd=repo.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [("manual", "pre-commit"), ("pre-commit", "manual"), ("manual", "manual")],
)
def test_no_gate_of_another_process_runs_beside_a_fixer(
    repo: Repo, out: Path, first: str, second: str
) -> None:
    repo.write("pyproject.toml", CONFIG.format(command=COMMAND))
    process = start(repo, first)
    while not (out / "up").exists() and process.poll() is None:
        time.sleep(0.005)
    done = repo.gitgates("run", second)
    assert done.returncode == 0, done.stdout
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, "1 gate passed" in said) == (0, True), said


def test_gates_that_do_not_write_share_the_files(tmp_path: Path) -> None:
    first, second, fixer = (FixerLock(str(tmp_path)) for _ in range(3))
    assert first.take(alone=False, most_s=9.0)
    assert second.take(alone=False, most_s=9.0)
    first.release()
    assert not fixer.take(alone=True, most_s=9.0)
    second.release()
    assert fixer.take(alone=True, most_s=9.0)
    assert not first.take(alone=False, most_s=9.0)


def test_a_stopped_holder_is_not_waited_for(tmp_path: Path) -> None:
    fixer, other = (FixerLock(str(tmp_path)) for _ in range(2))
    assert fixer.take(alone=True, most_s=9.0)
    assert not other.take(alone=False, most_s=9.0)
    assert other.take(alone=False, most_s=0.0)


def test_where_no_lock_can_be(tmp_path: Path) -> None:
    assert FixerLock(f"{tmp_path}/none").take(alone=True, most_s=9.0)
