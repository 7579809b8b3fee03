"""Random changes: a pass is reused only for what has really passed, and is reused for that.

The gate looks at files in two worktrees and outside of them, at links, listings and what is not
there, keeps a cache, starts programs, and heeds a variable. An oracle knows what it would see.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Repo
from observed_support import needs_strace
from observed_world import GATE, World, see
from reuse_support import Checker

from gitgates.core.types import make_gate

pytestmark = needs_strace

# It fails where it has seen this, by a content or a variable.
BAD = "abd"
END = """
    sys.exit("BAD" in see(list(zip(words[::2], words[1::2]))) + os.environ.get("WHICH", ""))
"""
MAIN = GATE.replace(GATE[GATE.index("    print(see(") :], END).replace("BAD", BAD)
SETTLED_NS = 200_000_000  # so that some digests are kept


class Oracle:
    """Runs one gate after the other, and knows which of them have to run."""

    def __init__(self, repo: Repo, out: Path, seed: int) -> None:
        repo.write("first")
        repo.commit_all("first")
        repo.git("worktree", "add", "-q", "-b", "other", "../wt2")
        self.world = World((repo.path, repo.path.parent / "wt2"), seed)
        logs = out.parent / "logs"  # in none of the folders that a gate may list
        logs.mkdir()
        self.at = Checker(repo, logs)
        self.script = out.parent / "gate.py"
        self.versions = [f"{MAIN}# {number}\n" for number in range(2)]
        self.script.write_text(self.versions[0])
        self.which, self.version, self.fails = "", 0, False
        self.steps = self.world.steps()
        self.passed: set[object] = set()
        self.before: object = None  # what was seen where, and how often in a row
        self.times = self.same = self.missed = self.reused = 0

    def change(self) -> str:
        number = self.world.random.random()
        if number < (0.3 if self.fails else 0.03):
            self.steps = self.world.steps()
        elif number < 0.06 or self.which == BAD:
            self.which = self.world.random.choice(("", "1", BAD))
        elif number < 0.09:
            self.version = 1 - self.version
            self.script.write_text(self.versions[self.version])
        else:
            return self.world.change()
        return f"{self.steps} {self.which} {self.version}"

    def run(self) -> None:
        """Change something, mostly, and run the gate in one of the worktrees."""
        changed = self.change() if self.world.random.random() < 0.7 else "nothing"
        root = self.world.roots[self.world.random.random() < 0.3]
        words = " ".join(word for step in self.steps for word in step)
        command = f"echo >> {self.at.out}/log; {sys.executable} -SEs {self.script} {words}"
        gate = make_gate(name="gate", command=command, reuse=True)
        seen = see(root, self.steps)
        state = (words, self.which, self.version, seen)
        (result,) = self.at.run(gate, root=root, WHICH=self.which, OUT=str(self.at.out))
        was_reused = not self.at.log()
        expected = "failed" if BAD in f"{seen}{self.which}" else "passed"
        assert result.status == expected, (changed, state)
        assert not was_reused or state in self.passed, (changed, state)
        self.reused += was_reused
        self.fails = expected == "failed"
        if not self.fails:
            self.passed.add(state)
        here = (root, changed == "nothing", state)
        self.times = self.times + 1 if here == self.before else 0
        self.before = (root, True, state)
        if self.times > 1 and expected == "passed":  # twice, as a cache may have to settle
            self.same += 1
            self.missed += not was_reused


def walk(oracle: Oracle, steps: int) -> None:
    for _ in range(steps):
        oracle.run()
    assert oracle.reused > steps / 10  # one that never reuses shows nothing
    assert oracle.missed <= oracle.same / 20


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.observed.state._SETTLED_NS", SETTLED_NS)


@pytest.mark.slow
@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize("seed", range(3))
def test_no_wrong_reuse(repo: Repo, out: Path, seed: int) -> None:
    walk(Oracle(repo, out, seed), 60)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 140))
def test_no_wrong_reuse_in_many_steps(repo: Repo, out: Path, seed: int) -> None:
    walk(Oracle(repo, out, seed), 250)
