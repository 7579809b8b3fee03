"""A push from a dirty tree, which is checked in a private checkout, beside `git worktree add`.

    python tests/bench/checkouts.py [FILES ...]      by default 1,000 and 100,000

Each round changes ten files, commits, leaves a file unstaged and pushes: without hooks, and with a
gate. `setup` makes a folder, as an installation would; how often it has run is shown. Medians.
"""

from __future__ import annotations

import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from files import git, make

ROUNDS = int(os.environ.get("ROUNDS", "5"))
CONFIG = """\
[tool.gitgates.worktree]
setup = "mkdir deps; echo >> {log}"
[tool.gitgates.gates.check]
command = "test -d deps"
[tool.gitgates.hooks.pre-push]
gates = ["check"]
"""
WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")


class Scene:
    """A repository of so many files, with a remote, and a cache of its own."""

    def __init__(self, folder: Path, files: int) -> None:
        self.root, self.log = folder / "repo", folder / "log"
        self.cache = folder / "cache"
        os.environ["XDG_CACHE_HOME"] = str(self.cache)
        self.root.mkdir()
        make(self.root, files)
        (self.root / ".git/info/exclude").write_text("deps/\n")
        (self.root / "pyproject.toml").write_text(CONFIG.format(log=self.log))
        git(folder, "init", "-q", "--bare", "origin.git")
        git(self.root, "remote", "add", "origin", "../origin.git")
        git(self.root, "add", "-A")
        self.commit(0)
        gitgates = str(Path(sys.executable).with_name("gitgates"))
        subprocess.run((gitgates, "install-hooks"), cwd=self.root, check=True, capture_output=True)

    def commit(self, number: int) -> None:
        """Commit a change of ten files, and leave one changed."""
        for name in range(10):
            (self.root / f"p0/m0/{name}.py").write_text(f"# {number}\n")
        git(self.root, *WHO, "commit", "-qam", f"commit {number}")
        (self.root / "p0/m0/11.py").write_text(f"# not committed {number}\n")

    def push(self, *options: str) -> None:
        """Push what is committed. It fails where the gate does."""
        git(self.root, "push", "-q", *options, "origin", "HEAD:main")

    def discard(self) -> None:
        """Make the tree as it was committed."""
        git(self.root, "checkout", "-q", "--", ".")


def measure(folder: Path, files: int) -> None:
    """Print what one size costs."""
    scene = Scene(folder, files)
    seconds: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        seconds.setdefault(name, []).append(time.perf_counter() - began)

    timed("first push, dirty", scene.push)
    there = folder / "worktree"
    for number in range(1, ROUNDS + 1):
        for name, options in (("push, no hooks", ("--no-verify",)), ("next push, dirty", ())):
            scene.discard()
            scene.commit(2 * number + bool(options))
            timed(name, functools.partial(scene.push, *options))
        scene.discard()
        timed("git worktree add", lambda: git(scene.root, "worktree", "add", "-q", str(there)))
        size = used(there)
        git(scene.root, "worktree", "remove", str(there))
        git(scene.root, "branch", "-qD", "worktree")
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    print(f"{files:,} files, {ROUNDS} rounds; `setup` ran {len(scene.log.read_text())} time(s)")
    base = medians["git worktree add"]
    for name, median in medians.items():
        print(f"  {name:<18} {median * 1000:8.0f} ms  {median / base:6.2f} of git worktree add")
    (checkout,) = scene.cache.glob("gitgates/*/checkouts/1")
    print(f"  disk: {used(checkout) / size:.2f} of a worktree ({size >> 20} MiB)")


def used(folder: Path) -> int:
    """Return how many bytes a folder takes on the disk."""
    done = subprocess.run(("du", "-sk", folder), check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0]) << 10


def main() -> None:
    """Measure, and print."""
    for files in [int(word) for word in sys.argv[1:]] or [1_000, 100_000]:
        folder = Path(tempfile.mkdtemp(prefix="gitgates-bench-"))
        try:
            measure(folder, files)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
