"""Hooks that do nothing, in a small repository and in large ones, and an agent's events."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from subprocess import run
from typing import NamedTuple

import project
from clock import ROOT, Case, Clock, Scenario, Wrong, nothing
from peers import GITGATES, HUSKY, Gate, Peer
from shop import Shop, tell_agent

BEFORE = "gitgates before"
BEFORE_COMMIT = "4218a7b"  # the last one without reuse of passes
COUNTS = (1, 3, 10)
SIZES = (1_000, 10_000, 100_000)
LONG_AGO = 1_700_000_000  # what has just been written, git reads again and again
INTERPRETER = "python -c pass"


def gates(count: int) -> list[Gate]:
    """Return gates that do nothing."""
    return [Gate(f"gate-{number}", "true") for number in range(count)]


def noop_key(count: int) -> str:
    """Return the key of the scenario with so many gates."""
    return f"noop-{count}"


def size_key(files: int) -> str:
    """Return the key of the scenario with so many files."""
    return f"files-{files}"


def noop(clock: Clock, peers: list[Peer], rounds: int) -> Iterator[Scenario]:
    """Return a scenario for each number of gates: the hook, started as git starts it."""
    for count in COUNTS:
        cases = []
        for peer in peers:
            folder = clock.folder / f"noop-{count}" / peer.slug
            _repository(clock, peer, folder, gates(count))
            check = _Look(peer, gates(count))
            cases.append(Case(peer.name, folder, peer.hook(), nothing, check.of_output))
        if count == 3 and (case := _before(clock)):
            cases.append(case)
        title = f"a hook with {count} gate{'s' * (count > 1)} `true`"
        yield Scenario(noop_key(count), title, cases, rounds, warm_up=True)


class _Look(NamedTuple):
    """Sees that gates have run."""

    peer: Peer
    gates: list[Gate]

    def of_output(self, _turn: int, said: str) -> None:
        """Raise Wrong if a gate did not run."""
        self.peer.must_pass(self.gates, said)


def _repository(clock: Clock, peer: Peer, folder: Path, its_gates: list[Gate]) -> None:
    folder.mkdir(parents=True)
    clock.run("git", "init", "-q", cwd=folder)
    (folder / ".gitignore").write_text("node_modules\n")
    peer.set_up(clock, folder, _staged(peer, its_gates), parallel=False)
    (folder / "a.py").write_text("a = 1\n")
    clock.run("git", "add", ".", cwd=folder)


def _staged(peer: Peer, its_gates: list[Gate]) -> list[Gate]:
    """Return gates as the peer has them: lint-staged runs nothing but on files."""
    return [gate._replace(gets_files=peer.name == HUSKY) for gate in its_gates]


def _before(clock: Clock) -> Case | None:
    """Return gitgates as it was, from the history of this checkout, if there is one."""
    archived = run(
        ("git", "-C", ROOT, "archive", BEFORE_COMMIT, "gitgates"), capture_output=True, check=False
    )
    if archived.returncode:
        print(f"!!! {BEFORE} is left out: commit {BEFORE_COMMIT} is not here", flush=True)
        return None
    package = clock.folder / "before"
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as tar:
        tar.extractall(package, filter="data")
    clock.run(sys.executable, "-m", "compileall", "-q", package, cwd=package)
    folder = clock.folder / "noop-3/before"
    three = Peer(GITGATES, "")
    _repository(clock, three, folder, gates(3))
    hook = folder / ".git/hooks/pre-commit"
    hook.unlink()
    clock.run(
        *("env", f"PYTHONPATH={package}", sys.executable, "-m", GITGATES),
        *("install-hooks", "-t", "pre-commit"),
        cwd=folder,
    )
    if str(package) not in hook.read_text():
        raise Wrong(f"the hook does not start {package}:\n{hook.read_text()}")
    return Case(BEFORE, folder, three.hook(), nothing, _Look(three, gates(3)).of_output)


def sizes(clock: Clock, peers: list[Peer], rounds: int, most: int) -> Iterator[Scenario]:
    """Return a scenario for each size: commits of one file, in one repository for all peers."""
    for files in SIZES:
        if files <= most:
            folder = clock.folder / size_key(files)
            _write(folder, files)
            clock.run("git", "init", "-q", cwd=folder)
            hooks = {peer.name: _hooks(clock, peer, folder) for peer in peers}
            clock.run("git", "add", ".", cwd=folder)
            clock.run("git", "commit", "-qnm", "base", cwd=folder)
            cases = [_Sized(clock, peer, folder, hooks[peer.name]).case() for peer in peers]
            title = f"a commit in a repository of {files:,} files, three gates `true`"
            yield Scenario(size_key(files), title, cases, rounds, warm_up=True)
            shutil.rmtree(folder)


def _write(folder: Path, files: int) -> None:
    for number in range(files):
        path = folder / f"d{number // 100}" / f"f{number}.py"
        if not number % 100:
            path.parent.mkdir(parents=True)
        path.write_text(f"number = {number % 1000}\n")
        os.utime(path, (LONG_AGO, LONG_AGO))
    (folder / ".gitignore").write_text("node_modules\n")


def _hooks(clock: Clock, peer: Peer, folder: Path) -> str:
    """Install a peer; return the folder of hooks that is its own."""
    own = f".git/hooks-{peer.slug}"
    if peer.name == HUSKY:
        own = ".husky/_"
        peer.set_up(clock, folder, _staged(peer, gates(3)), parallel=False)
        clock.run("git", "config", "--unset", "core.hooksPath", cwd=folder)
    else:
        shutil.rmtree(folder / ".git/hooks", ignore_errors=True)
        (folder / ".git/hooks").mkdir()
        peer.set_up(clock, folder, gates(3), parallel=False)
        (folder / ".git/hooks").rename(folder / own)
    return own


class _Sized:
    """Commits of one changed file."""

    def __init__(self, clock: Clock, peer: Peer, folder: Path, hooks: str) -> None:
        self.clock, self.peer, self.folder, self.hooks = clock, peer, folder, hooks
        self.head = ""

    def case(self) -> Case:
        """Return what is measured."""
        command = f"git -c core.hooksPath={self.hooks} commit -m {self.peer.slug}"
        return Case(self.peer.name, self.folder, command, self.prepare, self.check)

    def prepare(self, turn: int) -> None:
        """Stage a change."""
        (self.folder / "d0/f0.py").write_text(f"{self.peer.slug!r}\n{turn}\n")
        self._git("add", "d0/f0.py")
        self.head = self._git("rev-parse", "HEAD")

    def check(self, _turn: int, said: str) -> None:
        """See that it is committed, and that the gates have run."""
        new = self._git("log", "-1", "--format=%P %s")
        if new != f"{self.head} {self.peer.slug}":
            raise Wrong(f"{self.peer.name}: not committed: {new}\n{said}")
        self.peer.must_pass(gates(3), said)

    def _git(self, *argv: str) -> str:
        return self.clock.run("git", *argv, cwd=self.folder).strip()


def agent(clock: Clock, peers: list[Peer], rounds: int) -> Iterator[Scenario]:
    """Return the scenario of events of an agent that nothing has to run at; only ours has hooks."""
    if GITGATES not in [peer.name for peer in peers]:
        return
    folder = clock.folder / "agent"
    shop = Shop(clock, next(peer for peer in peers if peer.name == GITGATES), folder, project.SET)
    tell_agent(clock, folder, "SessionStart", "s")
    cases = [Case(INTERPRETER, folder, INTERPRETER, nothing, _silent)]
    for name, fields in (
        ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "true"}}),
        ("Stop, nothing changed", {"hook_event_name": "Stop", "stop_hook_active": False}),
    ):
        event = _Event(shop, {"hook_event_name": "PreToolUse", **fields})
        command = f"gitgates agent-hook claude <{event.file}"
        cases.append(Case(name, folder, command, event.prepare, _silent))
    title = "an agent's event at which nothing has to run"
    yield Scenario("agent", title, cases, rounds, warm_up=True)


class _Event:
    """An event of an agent, a new one each time."""

    def __init__(self, shop: Shop, fields: dict[str, object]) -> None:
        self.fields = {"session_id": "s", "cwd": str(shop.folder), **fields}
        self.file = shop.clock.folder / f"{fields['hook_event_name']}.json"

    def prepare(self, turn: int) -> None:
        """Write its payload."""
        own = {"prompt_id": f"p{turn}", "tool_use_id": f"t{turn}"}
        self.file.write_text(json.dumps({**self.fields, **own}))


def _silent(_turn: int, said: str) -> None:
    if said:
        raise Wrong(f"an event with nothing to run was answered: {said}")
