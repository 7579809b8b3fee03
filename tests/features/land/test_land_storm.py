"""Many land at once and are killed at random points, while a person commits and resets main."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Repo
from land_support import begin, opened

from gitgates.features.land.queue import Queue

LANDERS = int(os.environ.get("LANDERS", "20"))
KILLS = int(os.environ.get("KILLS", "200"))
_SAW = "git rev-parse HEAD^{tree} >> $OUT/passed"
_CONFIG = f"""jobs = 2
[gates.check]
command = "sleep 0.$(( $$ % 3 )); ! grep -h bad *.txt && {_SAW}"
[hooks.pre-push]
gates = ["check"]
[land]
batch = 3
"""


def _start(folder: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    argv = ("gitgates", "land")
    return subprocess.Popen(argv, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)


class Storm:
    """Landers in worktrees of their own, and a person in the main one."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self._random, self._step = repo, random.Random(LANDERS), 0
        self.trees = {f"b{number}": Repo(folder / f"b{number}") for number in range(LANDERS)}
        for name, tree in self.trees.items():
            repo.git("worktree", "add", "-q", "-b", name, str(tree.path), "main")
            tree.write(f"{name}.txt", "bad" if _is_bad(name) else "good")
            if _is_alike(name):
                tree.write("shared.txt", name)  # the first one lands
            tree.git("add", ".")
            tree.git("commit", "-qm", name)
            tree.write("private.txt", name)
        self._running = {name: _start(tree.path) for name, tree in self.trees.items()}

    def run(self) -> int:
        """Go on until all have ended; whoever was killed begins again. Return how many were."""
        kills = 0
        while self._running:
            time.sleep(self._random.random() / 2)
            self._commit()
            for name in [name for name, child in self._running.items() if child.poll() is not None]:
                status = self._running.pop(name).returncode
                assert status in (0, 1, -signal.SIGKILL), (name, status)
                if status < 0:
                    self._running[name] = _start(self.trees[name].path)
            if kills < KILLS and self._running:
                os.kill(self._random.choice(self._some()).pid, signal.SIGKILL)
                kills += 1
        return kills

    def _some(self) -> list[subprocess.Popen[bytes]]:
        """Return all that run, or every second time whoever does the work: it has children."""
        running = [*self._running.values()]
        workers = [child for child in running if _has_children(child.pid)]
        return workers if workers and self._random.random() < 1 / 2 else running

    def _commit(self) -> None:
        self._step += 1
        if self._step % 40 == 0:
            self.repo.write(f"person-{self._step}.txt", "good")
            self.repo.ask("git", "add", ".")
            self.repo.ask("git", "commit", "-qm", f"person {self._step}")
        if self._step % 101 == 0:
            self.repo.ask("git", "reset", "-q", "--keep", "HEAD~1")


def _has_children(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())
    except OSError:
        return False


def _is_bad(name: str) -> bool:
    return int(name[1:]) % 7 == 3


def _is_alike(name: str) -> bool:
    return int(name[1:]) % 7 == 5


def _may_end(name: str) -> set[str]:
    if _is_bad(name):
        return {"ejected"}
    # One that a person has taken back may be there again with another.
    return {"landed", "nothing to land"} | ({"ejected"} if _is_alike(name) else set())


@pytest.mark.nightly
@pytest.mark.slow
def test_the_target_is_always_a_tested_tree(repo: Repo, out: Path, tmp_path: Path) -> None:
    begin(repo, _CONFIG)
    repo.git("checkout", "-q", "main")
    storm = Storm(repo, tmp_path)
    refs = repo.git("for-each-ref", "refs/heads/b*")
    assert storm.run() == KILLS
    tested = {*(out / "passed").read_text().split()}
    log = repo.git("reflog", "show", "--format=%T %gs", "main").splitlines()
    landed = {line.split()[0] for line in log if line.endswith(": Fast-forward")}
    assert landed
    assert landed <= tested
    ends = {each.branch: each.state for each in Queue(opened(repo)).entries()}
    assert [name for name in storm.trees if ends[name] not in _may_end(name)] == []
    merges = repo.git("log", "--merges", "--format=%P", "main").splitlines()
    assert len({line.split()[1] for line in merges}) == len(merges)  # nothing twice
    assert repo.git("for-each-ref", "refs/heads/b*") == refs
    for name, tree in storm.trees.items():
        assert tree.git("status", "--porcelain") == "?? private.txt", name
        assert (tree.path / "private.txt").read_text() == name
