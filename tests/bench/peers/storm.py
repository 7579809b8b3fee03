"""Twenty worktrees at once: each agent commits, and a person does meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from clock import Case, Clock, Scenario, Wrong
from peers import HUSKY, NO_HOOK, Gate, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "storm"
GATES = 4
PERSON = "the person's commit"
_BURN = """\
import pathlib, time
end = float(pathlib.Path("seconds").read_text())
while time.process_time() < end:
    sum(range(1000))
"""


class Storm(NamedTuple):
    """How much there is to do."""

    worktrees: int = 20
    gate_s: float = 1.0

    def ideal_s(self) -> float:
        """Return how long it takes at the least: the gates, on all processors."""
        return self.worktrees * GATES * self.gate_s / (os.cpu_count() or 1)


def scenarios(
    clock: Clock, peers: list[Peer], storm: Storm, waits: dict[str, list[float]]
) -> Iterator[Scenario]:
    """Return the scenario; what the person waited for goes into `waits`, by peer."""
    waits.clear()  # those of an earlier run
    cases = [
        _Trees(clock, peer, storm, waits.setdefault(peer.name, [])).case()
        for peer in peers
        if peer.name != NO_HOOK
    ]
    title = f"{storm.worktrees} worktrees commit at once, {GATES} gates of {storm.gate_s:g} s each"
    yield Scenario(KEY, title, cases, 1)


class _Trees:
    """A repository with the worktrees of agents, and one of a person, whose gates are short."""

    def __init__(self, clock: Clock, peer: Peer, storm: Storm, waits: list[float]) -> None:
        self.clock, self.peer, self.storm, self.waits = clock, peer, storm, waits
        self.gates = [
            Gate(f"burn-{number}", f"python burn.py {number}", gets_files=False)
            for number in range(GATES)
        ]
        self.folder = clock.folder / KEY / peer.slug
        self.person = self.folder / "person"
        self.agents = [self.folder / f"agent-{number}" for number in range(storm.worktrees)]
        self.thread = threading.Thread()
        self._set_up()

    def _set_up(self) -> None:
        main = self.folder / "main"
        main.mkdir(parents=True)
        self._git(main, "init", "-q")
        (main / ".gitignore").write_text("node_modules\n")
        (main / "burn.py").write_text(_BURN)
        (main / "seconds").write_text(f"{self.storm.gate_s}\n")
        self.peer.set_up(self.clock, main, self.gates, parallel=True)
        self._git(main, "add", ".")
        self._git(main, "commit", "-qnm", "base")
        for tree in (self.person, *self.agents):
            self._git(main, "worktree", "add", "-q", "-b", tree.name, str(tree))
            if self.peer.name == HUSKY:
                self.peer.install(self.clock, tree)
        (self.person / "seconds").write_text("0\n")

    def case(self) -> Case:
        """Return what is measured."""
        lines = [
            f"(cd {shlex.quote(str(tree))} && git commit -m storm >../{tree.name}.txt 2>&1) &"
            for tree in self.agents
        ]
        script = self.folder / "storm.sh"
        # A failure is found by what it leaves: no commit.
        script.write_text("\n".join([*lines, "wait", ""]))
        return Case(
            self.peer.name,
            self.folder,
            f"sh {shlex.quote(str(script))}",
            self.prepare,
            self.check,
            env=(("CLAUDECODE", "1"),),
        )

    def prepare(self, _turn: int) -> None:
        """Stage a change in each worktree; the person commits when all are busy."""
        for tree in (self.person, *self.agents):
            (tree / "change.py").write_text(f"{tree.name!r}\n")
            self._git(tree, "add", ".")
        self.thread = threading.Thread(target=self._commit_of_person)
        self.thread.start()

    def _commit_of_person(self) -> None:
        time.sleep(min(5.0, self.storm.ideal_s() / 4))
        start = time.perf_counter()
        done = subprocess.run(
            ("git", "commit", "-m", "person"),
            cwd=self.person,
            env=self.clock.env,
            capture_output=True,
            check=False,
        )
        took = time.perf_counter() - start
        (self.folder / "person.txt").write_bytes(done.stdout + done.stderr)
        self.waits.append(took)

    def check(self, _turn: int, _said: str) -> None:
        """See that each is committed, and that its gates have run."""
        self.thread.join()
        for tree in (self.person, *self.agents):
            said = (self.folder / f"{tree.name}.txt").read_text(errors="replace")
            subject = self._git(tree, "log", "-1", "--format=%s").strip()
            if subject != ("person" if tree == self.person else KEY):
                raise Wrong(f"{self.peer.name}: {tree.name} has not committed:\n{said}")
            # What is silent tells nothing under husky, which ends at the first failure.
            if self.peer.name != HUSKY:
                self.peer.must_pass(self.gates, said)

    def _git(self, folder: Path, *argv: str) -> str:
        return self.clock.run("git", *argv, cwd=folder)
