"""What gates on a server cost: buildbox-casd on this machine, behind nginx with TLS.

No gate runs here, because the only slot is taken. First what one run pays: for its first gate, and
for each of many, whose results the server has; then what is sent. `cpu` is that of gitgates and
all that it starts, without the server.

Then gates that sleep, of as many worktrees as agents have, all started at the same moment. The
ideal is their time, divided by the number of jobs; client and server share the CPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from casd_support import FOLDER, HAS_FUSE, Casd, Link, serving_casd
from nginx_support import NGINX, TLS, Nginx

from gitgates.proc.pool import open_pool

GITGATES = str(Path(sys.executable).with_name("gitgates"))
HOOK = ("git", "hook", "run", "pre-commit")
ROUNDS = 5
MANY = 20  # gates of a run
FILES, MANY_FILES, PER_FOLDER = 1_000, 50_000, 50
WORKTREES, GATES, JOBS = 20, 40, 4
SECONDS = (1, 2, 5)


class Cost(NamedTuple):
    """What one run took, in seconds, and the bytes that it has sent."""

    took: float
    cpu: float
    sent: int


class Bench:
    """A repository whose gates all run on a server."""

    def __init__(self, folder: Path, url: str, table: str, link: Link | None = None) -> None:
        self.root, self.link = folder / "repository", link
        self.url, self.table = url, table
        self.env = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("GIT", "CLAUDE", "PYTHON"))
            },
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITGATES_POOL": str(folder / "pool"),
            "PATH": f"{Path(GITGATES).parent}:{os.environ['PATH']}",
        }
        folder.mkdir(exist_ok=True)
        pool = open_pool(self.env, 1, is_urgent=False)
        assert pool
        self.slots = pool.take(1, 1, 3600.0)
        self.run("git", "init", "-q", self.root, cwd=folder)
        self.run("git", "config", "user.name", "Bench")
        self.run("git", "config", "user.email", "bench@example.com")

    def add_files(self, count: int) -> None:
        """Commit files of 100 bytes or so."""
        for number in range(count):
            path = self.root / f"top-{number // PER_FOLDER**2}/{number // PER_FOLDER}/{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n" * 16)
        self.commit()

    def set_gates(self, commands: list[str], *, jobs: int = JOBS) -> None:
        """Configure these, and commit that."""
        self.count = len(commands)
        names = ", ".join(f'"g{number}"' for number in range(len(commands)))
        gates = "".join(
            f'[gates.g{number}]\ncommand = "{command}"\nremote = true\nreuse = true\n'
            f'timeout = "300s"\ninputs = ["*.txt"]\nenv = {{ PATH = "/usr/bin:/bin" }}\n'
            for number, command in enumerate(commands)
        )
        (self.root / "gitgates.toml").write_text(
            f'jobs = 1\n[hooks.pre-commit]\nstrategy = "collect"\ngates = [{names}]\n{gates}'
            f'[remote]\nexecution = "{self.url}"\njobs = {jobs}\nfallback = "fail"\n{self.table}\n'
        )
        self.run(GITGATES, "install-hooks")
        self.commit()

    def commit(self) -> None:
        """Commit all."""
        self.run("git", "add", ".")
        self.run("git", "commit", "-q", "--no-verify", "--allow-empty", "-m", "next")

    def run(self, *argv: str | Path, cwd: Path | None = None) -> str:
        """Run a program, which must not fail; return its output."""
        done = subprocess.run(
            argv, cwd=cwd or self.root, env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{argv}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def gates(self, cwd: Path | None = None) -> Cost:
        """Run the gates, which all have to pass on the server."""
        proofs = self.root / ".git/gitgates/proofs"  # here; the server has its own
        shutil.rmtree(proofs, ignore_errors=True)
        before, sent = resource.getrusage(resource.RUSAGE_CHILDREN), self.sent
        began = time.monotonic()
        self.check(self.run(*HOOK, cwd=cwd))
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(took, cpu, self.sent - sent)

    def check(self, said: str) -> None:
        """See that all gates of a run have passed on the server."""
        if said.count(f"on {self.url}") != self.count:
            raise SystemExit(f"not all ran on the server: {said}")

    @property
    def sent(self) -> int:
        """How many bytes the server was sent until now; behind nginx that is not counted."""
        return self.link.sent if self.link else 0


def serving(folder: Path, jobs: int) -> contextlib.AbstractContextManager[Casd]:
    """Run a server."""
    return serving_casd(folder / "casd", jobs=jobs, fuse=HAS_FUSE)


def median(do: Callable[[], Cost]) -> Cost:
    """Return the medians of all rounds."""
    costs = [do() for _ in range(ROUNDS)]
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def show(name: str, cost: Cost, per: int = 1) -> None:
    """Print a row."""
    took, cpu = cost.took / per * 1000, cost.cpu / per * 1000
    print(f"  {name:<44}{took:>8.0f} ms  cpu {cpu:>6.0f} ms  sent {cost.sent:>10,} bytes")


@contextlib.contextmanager
def proxy(folder: Path, casd: Casd) -> Iterator[tuple[str, str]]:
    """Run nginx before a server; yield the address, and the keys that name the certificates."""
    if not Path(NGINX).exists():
        print("  (without nginx: make .venv/nginx/ready)")
        yield casd.url, ""
        return
    nginx = Nginx(folder, casd.port)
    try:
        yield nginx.url, TLS.format(folder)
    finally:
        nginx.kill()


def measure_runs(folder: Path) -> None:
    """Print what runs pay whose results the server has."""
    with serving(folder, JOBS) as casd, proxy(folder / "nginx", casd) as server:
        bench = Bench(folder / "client", *server)
        bench.add_files(FILES)
        print(f"\nunchanged, {FILES:,} files: the server has all results")
        bench.set_gates(["true"])
        bench.gates()
        one = median(bench.gates)
        show("the only gate of a run", one)
        bench.set_gates([f"true {number}" for number in range(MANY)])
        bench.gates()
        many = median(bench.gates)
        show(f"each of {MANY}", many, MANY)
        further = Cost(many.took - one.took, many.cpu - one.cpu, 0)
        show("each but the first", further, MANY - 1)


def measure_sent(folder: Path) -> None:
    """Print what is sent."""
    with serving(folder, JOBS) as casd:
        for files in (FILES, MANY_FILES):
            link = Link(casd.port)
            bench = Bench(folder / str(files), link.url, "", link)
            bench.add_files(files)
            bench.set_gates(["true"])
            print(f"\na gate that does nothing, {files:,} files")
            show("for the first time", bench.gates())
            show("unchanged", median(bench.gates))
            (bench.root / "top-0/0/0.txt").write_text("changed\n")
            show("one file changed", bench.gates())
            other = folder / f"other-{files}"
            bench.run("git", "worktree", "add", "-q", other)
            (other / "top-0/0/0.txt").write_text("changed\n")
            show("another worktree", bench.gates(other))
            show("the same again", bench.gates(other))
            link.close()


def measure_worktrees(folder: Path, seconds: int, jobs: int) -> None:
    """Print how long gates of many worktrees take, beside the ideal."""
    with serving(folder, jobs) as casd, proxy(folder / "nginx", casd) as server:
        bench = Bench(folder / "client", *server)
        bench.add_files(FILES)
        bench.set_gates(["true"])
        bench.gates()  # so that the server has all but the changes
        each = GATES // WORKTREES
        bench.set_gates([f"sleep {seconds} # {number}" for number in range(each)], jobs=jobs)
        roots = [folder / f"worktree-{number}" for number in range(WORKTREES)]
        for number, root in enumerate(roots):
            bench.run("git", "worktree", "add", "-q", root)
            (root / "own.txt").write_text(f"{number}\n")  # or the server has the result
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        pipe = subprocess.PIPE
        runs = [
            subprocess.Popen(HOOK, cwd=root, env=bench.env, stderr=pipe, text=True)
            for root in roots
        ]
        outputs = [run.communicate()[1] for run in runs]
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        for output in outputs:
            bench.check(output)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        ideal = math.ceil(GATES / jobs) * seconds
        print(
            f"  gates of {seconds} s: {took:>6.2f} s, ideal {ideal} s: {ideal / took:.2f};"
            f" cpu {cpu / GATES * 1000:.0f} ms a gate"
        )


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("runs", "sent", "worktrees"), help="only these")
    parser.add_argument("--jobs", type=int, default=JOBS, help="of the server")
    parser.add_argument("--seconds", type=int, action="append", help="of a gate in a worktree")
    options = parser.parse_args()
    if not (FOLDER / "buildbox-casd").exists():
        print("There is no server: make .venv/buildbox/ready")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("runs", "sent", "worktrees"):
            (folder / part).mkdir()
        if options.only in (None, "runs"):
            measure_runs(folder / "runs")
        if options.only in (None, "sent"):
            measure_sent(folder / "sent")
        if options.only in (None, "worktrees"):
            print(f"\n{GATES} gates of {WORKTREES} worktrees, {options.jobs} jobs")
            for seconds in options.seconds or SECONDS:
                here = folder / "worktrees" / str(seconds)
                here.mkdir()
                measure_worktrees(here, seconds, options.jobs)


if __name__ == "__main__":
    main()
