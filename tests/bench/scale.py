"""What grows with history: time and peak memory where there is 1, 10 and 100 times as much of it.

Each row is something that a hook or a verb does, in three repositories that differ in one thing
only. The runs are interleaved; the table shows medians, and growth: the least processor time of a
run at 100 times, divided by that at once. Time and memory are those of gitgates and the programs
that it waits for. Rows with a star are the hot path, which may not grow by more than a tenth: exit
status 1. For these, growth is that of the instructions, which valgrind counts, if it is installed:
other processes make no difference to them. More files and more output are content, not history, and
have no star.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from agent import Bench

from gitgates.setup.install.githooks import render

TIMES = (1, 10, 100)
MOST_GROWTH = 1.1
STATE = Path(__file__).with_name("scale_state.py")
CONFIG = """\
[tool.gitgates]
keep_runs = {keep_runs}
[tool.gitgates.trace]
mode = "{trace}"
[tool.gitgates.gates.check]
command = '{command}'
reuse = {reuse}
[tool.gitgates.hooks.pre-commit]
gates = ["check"]
[tool.gitgates.hooks.manual]
gates = ["check"]
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
PLAIN = {"keep_runs": "1000000", "trace": "off", "command": "true", "reuse": "false"}
# What we start reports at least the memory of who starts it, so that is a small interpreter.
LAUNCHER = """
import os, sys, time
start = time.perf_counter()
pid = os.fork()
if not pid:
    os.execve(sys.argv[2], sys.argv[2:], os.environ)
status, usage = os.wait4(pid, 0)[1:]
wall = time.perf_counter() - start
with open(sys.argv[1], "w") as file:
    code = os.waitstatus_to_exitcode(status)
    print(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, code, file=file)
"""
COUNTER = ("--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes")
_PEAKS_A_MIB = 1024**2 if sys.platform == "darwin" else 1024
_BASH = {"tool_name": "Bash", "tool_input": {"command": "true"}}
HOOK, PRE, POST, STOP, START = "git hook", "PreToolUse", "PostToolUse", "Stop", "SessionStart"
PRE_WRITE, POST_WRITE = "PreToolUse, Write", "PostToolUse, Write"
EVENTS: dict[str, dict[str, object]] = {
    PRE: {"hook_event_name": "PreToolUse", **_BASH},
    POST: {"hook_event_name": "PostToolUse", **_BASH},
    PRE_WRITE: {"hook_event_name": "PreToolUse", "tool_name": "Write"},
    POST_WRITE: {"hook_event_name": "PostToolUse", "tool_name": "Write"},
    STOP: {"hook_event_name": "Stop", "stop_hook_active": False},
    START: {"hook_event_name": "SessionStart", "source": "startup"},
}


class Dimension(NamedTuple):
    """One thing that there may be much of."""

    what: str
    make: str  # the function of scale_state.py
    most: int  # how many there are at 100 times
    hot: tuple[str, ...]  # events, and the git hook
    verbs: tuple[str, ...] = ()
    config: dict[str, str] = {}
    is_content: bool = False  # made before the session begins, and may grow with it
    tops_up: bool = False  # made again before each run, which takes some away


DIMENSIONS = (
    Dimension("files in the index", "index", 100_000, (HOOK, PRE, STOP), ("run",), is_content=True),
    Dimension("staged files", "staged", 10_000, (HOOK, PRE, STOP), ("run",), is_content=True),
    Dimension(
        "bytes of output",
        "output",
        200_000_000,
        (HOOK, STOP),
        ("run",),
        config={"command": 'sh -c "yes it is so | head -c $(cat of.txt)"'},
        is_content=True,
    ),
    Dimension("lines of a session", "journal", 20_000, (PRE, POST, STOP), ("run",)),
    Dimension(
        "sessions", "sessions", 2_000, (HOOK, PRE, START, STOP), ("run", "cannot-fix check -m no")
    ),
    Dimension(
        "recorded runs",
        "runs",
        20_000,
        (HOOK, PRE, STOP),
        ("run", "runs list", "runs show latest", "runs stats"),
        config={"command": "false"},
    ),
    Dimension(
        "runs beyond keep_runs",
        "runs",
        20_000,
        (HOOK, STOP),
        ("run",),
        config={"command": "false", "keep_runs": "50"},
        tops_up=True,
    ),
    Dimension(
        "messages",
        "messages",
        100_000,
        (HOOK, PRE, START, STOP),
        ("journal post notes -m done", "journal read", "journal topics", "journal search done"),
    ),
    Dimension(
        "recorded passes",
        "passes",
        100_000,
        (HOOK, PRE, STOP),
        ("run", "verify HEAD"),
        config={"reuse": "true"},
    ),
    Dimension(
        "records of the trace",
        "traced",
        100_000,
        (HOOK, PRE_WRITE, POST_WRITE, STOP),
        ("trace blame new.py", "trace show --session session-1", "trace verify"),
        config={"trace": "on"},
    ),
)


class Sample(NamedTuple):
    """What one run took."""

    wall_s: float
    processor_s: float
    peak_mib: float


class Row(NamedTuple):
    """One operation, measured at 1, 10 and 100 times."""

    dimension: Dimension
    name: str
    samples: tuple[list[Sample], ...]
    instructions: tuple[int, int] | None = None  # at once and at 100 times

    @property
    def is_hot(self) -> bool:
        """Whether this may not grow."""
        return self.name in self.dimension.hot and not self.dimension.is_content

    @property
    def growth(self) -> float:
        """What it takes at 100 times, divided by that at once."""
        if self.instructions:
            return self.instructions[1] / self.instructions[0]
        first, *_others, last = (min(s.processor_s for s in each) for each in self.samples)
        return last / first


class Scale:
    """The repositories of one dimension, and what is done in them."""

    def __init__(self, bench: Bench, dimension: Dimension, divide: int) -> None:
        self.bench = bench
        self.dimension = dimension
        self.counts = [dimension.most * times // TIMES[-1] // divide for times in TIMES]
        self.folders = [self._repository(count) for count in self.counts]
        self.turn = 0

    def _repository(self, count: int) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.bench.folder))
        self.bench.run("git", "init", "-q", folder)
        (folder / "pyproject.toml").write_text(CONFIG.format(**PLAIN | self.dimension.config))
        for name in ("a.py", "new.py", "of.txt"):
            (folder / name).write_text("0")
        shim = folder / ".git/hooks/pre-commit"
        shim.write_bytes(render("pre-commit"))
        shim.chmod(0o755)
        who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        self.bench.run("git", "-C", folder, "add", ".")
        self.bench.run("git", "-C", folder, *who, "commit", "-qnm", "base")
        (folder / "a.py").write_text("a = 1\n")
        self.bench.run("git", "-C", folder, "add", "a.py")
        if self.dimension.is_content:
            self._make(folder, count)
        self.turn = 0
        for name in (START, STOP):
            self.once(name, folder)
        if not self.dimension.is_content:
            self._make(folder, count)
        return folder

    def _make(self, folder: Path, count: int) -> None:
        self.bench.run(sys.executable, STATE, self.dimension.make, folder, str(count))

    def measure(self, name: str, runs: int) -> Row:
        """Measure one operation in each repository, in turns; the first run of each is left out."""
        samples: tuple[list[Sample], ...] = tuple([] for _folder in self.folders)
        for turn in range(runs + 1):
            for at in range(len(TIMES)) if turn % 2 else reversed(range(len(TIMES))):
                if self.dimension.tops_up:
                    self._make(self.folders[at], self.counts[at])
                sample = self.once(name, self.folders[at])
                samples[at].extend([sample] if turn else [])
        row = Row(self.dimension, name, samples)
        if not (row.is_hot and shutil.which("valgrind")):
            return row
        first, last = self._count(name, 0), self._count(name, -1)
        return row._replace(instructions=(first, last))

    def _count(self, name: str, at: int) -> int:
        """Return the instructions of one operation."""
        if self.dimension.tops_up:
            self._make(self.folders[at], self.counts[at])
        logs = Path(tempfile.mkdtemp(dir=self.bench.folder))
        self.once(name, self.folders[at], ("valgrind", *COUNTER, f"--log-file={logs}/%p"))
        counts = re.findall(r"Collected : (\d+)", "".join(p.read_text() for p in logs.iterdir()))
        return sum(map(int, counts))

    def once(self, name: str, folder: Path, by: tuple[str, ...] = ()) -> Sample:
        """Run one operation; each event is one of its own, and the agent has changed something."""
        self.turn += 1
        stdin = b""
        if name in EVENTS:
            ids = {"prompt_id": f"p{self.turn}", "tool_use_id": f"t{self.turn}"}
            place = {"session_id": f"s{self.turn}" if name == START else "s", "cwd": str(folder)}
            written = {"tool_input": {"file_path": f"{folder}/new.py", "content": ""}}
            stdin = json.dumps({**written, **ids, **place, **EVENTS[name]}).encode()
            argv = [str(self.bench.bin / "gitgates"), "agent-hook", "claude"]
        elif name == HOOK:
            argv = [str(folder / ".git/hooks/pre-commit")]
        else:
            argv = [str(self.bench.bin / "python"), "-m", "gitgates", *name.split(" ")]
        if name in (POST_WRITE, STOP):
            lines = [f"line {line} of {time.monotonic_ns()}\n" for line in range(20)]
            (folder / "new.py").write_text("".join(lines))
        return self._run([*by, *argv], folder, stdin, is_verb=name not in (*EVENTS, HOOK))

    def _run(self, argv: list[str], folder: Path, stdin: bytes, *, is_verb: bool) -> Sample:
        path = f"{self.bench.bin}{os.pathsep}{self.bench.env['PATH']}"
        env = {**self.bench.env, "PATH": path, "GITGATES_POOL": "0", "PYTHONHASHSEED": "0"}
        if is_verb:  # its libraries are in our own environment only
            env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path[1:]))
        told = self.bench.folder / "told"
        argv[:1] = [shutil.which(argv[0], path=path) or argv[0]]
        launcher = (sys.executable, "-I", "-S", "-c", LAUNCHER, told)
        done = subprocess.run(
            [*launcher, *argv], cwd=folder, env=env, input=stdin, capture_output=True, check=False
        )
        wall_s, processor_s, peak_kb, status = map(float, told.read_text().split())
        # 1: a gate that fails. Other statuses, and a traceback, are no measurement.
        if status not in (0, 1, 64) or b"Traceback" in done.stderr or b"bug" in done.stdout:
            raise SystemExit(f"{argv}: {status} {(done.stdout + done.stderr)[-2000:]!r}")
        return Sample(
            wall_s, processor_s, peak_kb / (1024**2 if sys.platform == "darwin" else 1024)
        )


def table(rows: list[Row], divide: int) -> str:
    """Return a line for each operation of one dimension, below a head."""
    dimension = rows[0].dimension
    head = f"{dimension.most // divide:,} {dimension.what}"
    lines = [f"{head:38}{'ms':>8}{'':18}{'MiB':>7}{'':14}{'growth':>8}"]
    for row in rows:
        walls = [statistics.median(s.wall_s for s in each) * 1000 for each in row.samples]
        peaks = [statistics.median(s.peak_mib for s in each) for each in row.samples]
        times = "".join(f"{wall:>9.1f}" if wall < 10_000 else f"{wall:>9.0f}" for wall in walls)
        memory = "".join(f"{peak:>7.0f}" for peak in peaks)
        star = "*" if row.is_hot else " "
        lines.append(f"{star} {row.name:35}{times} {memory}{row.growth:>8.2f}")
    return "\n".join(lines)


def judge(rows: list[Row]) -> int:
    """Return 1, and say why, where the hot path grows."""
    growing = [row for row in rows if row.is_hot and row.growth > MOST_GROWTH]
    for row in growing:
        print(f"grows: {row.dimension.what}: {row.name}: {row.growth:.2f}", file=sys.stderr)
    return 1 if growing else 0


def main() -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--only", default="", metavar="WORD", help="only what has this in its name")
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="with less of all")
    options = parser.parse_args()
    all_rows: list[Row] = []
    print(f"1, 10 and 100 times as much; median of {options.runs} runs; *: hot path")
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = Bench(Path(folder))
        for dimension in DIMENSIONS:
            if options.only in dimension.what:
                scale = Scale(bench, dimension, options.divide)
                rows = [
                    scale.measure(name, options.runs) for name in (*dimension.hot, *dimension.verbs)
                ]
                print(f"\n{table(rows, options.divide)}", flush=True)
                all_rows += rows
                subprocess.run(("rm", "-rf", *scale.folders), check=True)
    return judge(all_rows)


if __name__ == "__main__":
    sys.exit(main())
