"""What hooks and `gitgates run` take in large working trees, beside `git status` in the same run.

    python tests/bench/trees.py [FILES ...]      by default 100,000 and 200,000

The runs are interleaved; the table shows medians of wall time. Bars: an event that looks at the
tree, 1.3 times `git status` and 40 ms; the first look of a session, 3 times `git status`; an event
that has nothing to look at, what it takes in a tree of 50 files and 40 ms; a commit, what it takes
git without hooks, 1.3 times `git status` and 40 ms. An answer that says that something was not
checked is a failure, too. Exit status 1: a bar was missed.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from agent import Bench
from files import make

from gitgates.setup.install.githooks import render

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SMALL = 50
MANY = 2000
MORE_S = 0.040
MOST_OF_STATUS = 1.3
MOST_OF_FIRST = 3.0
WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
CONFIG = """\
[tool.gitgates.gates.check]
command = "true"
[tool.gitgates.hooks]
pre-commit.gates = ["check"]
pre-push.gates = ["check"]
manual.gates = ["check"]
Stop.gates = ["check"]
"""
STATUS, CHANGED = "git status", f"git status, {MANY:,} changed"
COMMIT, PUSH = "git commit, without hooks", "git push, without hooks"
SHELL = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
EVENTS: dict[str, dict[str, object]] = {
    "SessionStart": {"hook_event_name": "SessionStart", "source": "startup"},
    "UserPromptSubmit": {"hook_event_name": "UserPromptSubmit", "prompt": "go"},
    "PreToolUse, reads": {**SHELL, "tool_input": {"command": "git status"}},
    "PreToolUse, writes": {**SHELL, "tool_input": {"command": "touch new.py"}},
    "Stop": {"hook_event_name": "Stop", "stop_hook_active": False},
}


class Bar(NamedTuple):
    """The most that something may take."""

    of: str
    times: float
    more_s: float
    beside: str = ""  # added to it


LOOKS = Bar(STATUS, MOST_OF_STATUS, MORE_S)
BARS = {
    "first SessionStart": Bar(STATUS, MOST_OF_FIRST, 0.0),
    "SessionStart": LOOKS,
    "UserPromptSubmit": LOOKS,
    "PreToolUse, reads": Bar(f"PreToolUse, reads, {SMALL} files", 1.0, MORE_S),
    "PreToolUse, writes": LOOKS,
    "Stop": LOOKS,
    f"Stop, {MANY:,} changed": Bar(CHANGED, MOST_OF_STATUS, MORE_S),
    "git commit": Bar(STATUS, MOST_OF_STATUS, MORE_S, COMMIT),
    "git push": Bar(STATUS, MOST_OF_STATUS, MORE_S, PUSH),
    "gitgates run": LOOKS,
}


class Tree:
    """A repository with hooks, and how long each thing took in it."""

    def __init__(self, bench: Bench, files: int) -> None:
        self.bench = bench
        self.root = bench.folder / f"tree-{files}"
        self.times = defaultdict[str, list[float]](list)
        self._turn = 0
        make(self.root, files)
        (self.root / "pyproject.toml").write_text(CONFIG)
        self._git("add", "-A")
        self._git(*WHO, "commit", "-qm", "settings")
        for hook in ("pre-commit", "pre-push"):
            path = self.root / ".git/hooks" / hook
            path.write_bytes(render(hook))
            path.chmod(0o755)
        remote = bench.folder / f"remote-{files}"
        bench.run("git", "clone", "-q", "--bare", self.root, remote)
        self._git("remote", "add", "origin", str(remote))
        self._git("config", "gc.auto", "0")

    def _git(self, *args: str) -> None:
        self.bench.run("git", "-C", self.root, *args)

    def take(self, name: str, *argv: str, stdin: bytes = b"") -> None:
        """Note how long a program takes. An answer that it has not checked is none."""
        env = {**self.bench.env, "PATH": f"{self.bench.bin}{os.pathsep}{self.bench.env['PATH']}"}
        if argv[:1] == ("gitgates",):  # its libraries are in our own environment only
            env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path[1:]))
        argv = (shutil.which(argv[0], path=env["PATH"]) or argv[0], *argv[1:])
        began = time.perf_counter()
        done = subprocess.run(
            argv, cwd=self.root, env=env, input=stdin, capture_output=True, check=False
        )
        self.times[name].append(time.perf_counter() - began)
        said = done.stdout + done.stderr
        if done.returncode or b"not checked" in said or b"nothing was checked" in said:
            raise SystemExit(f"{name}: {done.returncode} {said[-2000:].decode()}")

    def event(self, event: str, name: str = "") -> None:
        """Note how long an agent's event takes; each is one of its own."""
        self._turn += 1
        ids = {"prompt_id": f"p{self._turn}", "tool_use_id": f"t{self._turn}", "session_id": "s"}
        payload = {**ids, "cwd": str(self.root), **EVENTS[event]}
        argv = (str(self.bench.bin / "gitgates"), "agent-hook", "claude")
        self.take(name or event, *argv, stdin=json.dumps(payload).encode())

    def status(self, name: str = STATUS) -> None:
        """Note how long git takes to compare the working tree with its index."""
        self.take(name, "git", "--no-optional-locks", "status", "--porcelain")

    def change(self, count: int) -> None:
        """Change files."""
        for path in sorted(self.root.glob("p*/m*/*.py"))[:count]:
            path.write_text(f"{time.time_ns()}\n" * 5)

    def commit(self, name: str, *options: str) -> None:
        """Note how long it takes to commit one file."""
        (self.root / "one.txt").write_text(f"{time.time_ns()}\n")
        self._git("add", "one.txt")
        self.take(name, "git", *WHO, "commit", "-qm", "one", *options)

    def forget(self) -> None:
        """Have the next look be the first one."""
        shutil.rmtree(self.root / ".git/gitgates", ignore_errors=True)
        shutil.rmtree(self.bench.folder / ".local", ignore_errors=True)


def measure(tree: Tree, small: Tree) -> None:
    """Measure everything once."""
    tree.forget()
    tree.status()
    tree.event("SessionStart", "first SessionStart")
    time.sleep(2.1)  # what was just written, git reads again
    for event in EVENTS:
        tree.status()
        tree.event(event)
    small.event("PreToolUse, reads", f"PreToolUse, reads, {SMALL} files")
    tree.commit(COMMIT, "--no-verify")
    tree.take(PUSH, "git", "push", "-q", "--no-verify", "origin", "HEAD:refs/heads/bench")
    tree.status()
    tree.commit("git commit")
    tree.take("git push", "git", "push", "-q", "origin", "HEAD:refs/heads/bench")
    tree.take("gitgates run", "gitgates", "run")
    tree.change(MANY)
    tree.status(CHANGED)
    tree.event("Stop", f"Stop, {MANY:,} changed")
    tree.bench.run("git", "-C", tree.root, "add", "-A")
    tree.bench.run("git", "-C", tree.root, *WHO, "commit", "-qnm", "many")


def table(tree: Tree, small: Tree, files: int) -> tuple[str, bool]:
    """Return a line for each row, and whether all bars hold."""
    times = {**small.times, **tree.times}
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    base, holds = medians[STATUS], True
    lines = [f"{files:,} files; median of {ROUNDS} runs{'':16}   × git status    bar"]
    for name, median in medians.items():
        line = f"{name:38} {median * 1e3:9.0f} ms {median / base:10.2f}"
        if bar := BARS.get(name):
            most = medians[bar.of] * bar.times + bar.more_s + medians.get(bar.beside, 0.0)
            line += f" {most * 1e3:9.0f} ms{'' if median <= most else '  MISSED'}"
            holds = holds and median <= most
        lines.append(line)
    return "\n".join(lines), holds


def main() -> int:
    """Measure, print the tables, and return the exit status."""
    sizes = [int(word) for word in sys.argv[1:]] or [100_000, 200_000]
    is_good = True
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = Bench(Path(folder))
        os.environ["HOME"] = folder
        small = Tree(bench, SMALL)
        small.event("SessionStart")
        small.event("PreToolUse, reads")
        small.times.clear()
        for files in sizes:
            tree = Tree(bench, files)
            for _ in range(ROUNDS):
                measure(tree, small)
            text, holds = table(tree, small, files)
            print(text, flush=True)
            is_good = is_good and holds
            shutil.rmtree(tree.root)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
