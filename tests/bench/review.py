"""What the review gate costs where an agent stops: ours, and plain git doing the least for it.

A repository of 50,000 files, every 25th of them changed since the session began. Plain git takes a
snapshot with an index that is kept, and compares two trees, counting lines; a shell starts it. The
runs are interleaved; the table shows medians. `--check` exits 1 where ours takes more than 1.5
times that and 40 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent import LONG_AGO, Bench

FILES, ONE_IN = 50_000, 25
MOST_RATIO, MOST_MORE_S = 1.5, 0.040
CONFIG = '[tool.gitgates.hooks.Stop]\ngates = ["review"]\n'
LINES = "".join(f"value_{number} = {number}\n" for number in range(10))


class Scene:
    """The repository, with a session in it that has begun before anything was changed."""

    def __init__(self, bench: Bench, files: int) -> None:
        self.bench = bench
        self.files = files
        self.folder = bench.folder / "repository"
        self._make()
        self.stop("SessionStart")
        self.base = self._first_snapshot()
        self.stop("PreToolUse")
        for number in range(0, self.files, ONE_IN):
            with self._file(number).open("a") as file:
                file.write("more = 1\n" * 3)
        self.stop("PostToolUse")
        self._plain_env = self._prepare_plain()
        self.stop("Stop")
        self.plain()

    def _file(self, number: int) -> Path:
        return self.folder / f"d{number // 50}" / f"f{number}.py"

    def _make(self) -> None:
        git = ("git", "-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        self.bench.run("git", "init", "-q", self.folder)
        (self.folder / "pyproject.toml").write_text(CONFIG)
        for number in range(self.files):
            path = self._file(number)
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"number = {number}\n{LINES}")
            os.utime(path, (LONG_AGO, LONG_AGO))
        self.bench.run("git", "-C", self.folder, "add", ".")
        self.bench.run(*git, "-C", self.folder, "commit", "-qm", "base")

    def _first_snapshot(self) -> str:
        journal = self.folder / ".git/gitgates/sessions/s.jsonl"
        facts = map(json.loads, journal.read_text().splitlines())
        return next(str(fact["tree"]) for fact in facts if fact["what"] == "snapshot")

    def _prepare_plain(self) -> dict[str, str]:
        index, objects = self.bench.folder / "index", self.bench.folder / "objects"
        shutil.copy2(self.folder / ".git/index", index)
        objects.mkdir()
        others = (self.folder / ".git/objects", self.folder / ".git/gitgates/objects")
        return {
            **self.bench.env,
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(str, others)),
        }

    def stop(self, event: str, turn: int = 0) -> float:
        """Send an event; return how long its answer took. Each stop is one of its own."""
        payload = {"session_id": "s", "cwd": str(self.folder), "hook_event_name": event}
        own = {"prompt_id": "p", "stop_hook_active": True, "last_assistant_message": str(turn)}
        if "ToolUse" in event:  # what changes between the two is the session's own
            own |= {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "sh edit"}}
        argv = (str(self.bench.bin / "gitgates"), "agent-hook", "claude")
        raw = json.dumps({**payload, **own}).encode()
        start = time.perf_counter()
        done = subprocess.run(
            argv, cwd=self.folder, env=self.bench.env, input=raw, capture_output=True, check=False
        )
        took = time.perf_counter() - start
        if (
            done.returncode
            or done.stderr
            or (event == "Stop") != (f"{self.files // ONE_IN} weighted".encode() in done.stdout)
        ):
            raise SystemExit(f"{event}: {done}")
        return took

    def plain(self) -> float:
        """Return how long git takes for a snapshot and one comparison of trees."""
        script = 'git add -A && git diff-tree -r --numstat "$1" "$(git write-tree)"'
        argv = ("sh", "-c", script, "sh", self.base)
        start = time.perf_counter()
        done = subprocess.run(
            argv, cwd=self.folder, env=self._plain_env, capture_output=True, check=False
        )
        took = time.perf_counter() - start
        if done.returncode or done.stdout.count(b"\n") != self.files // ONE_IN:
            raise SystemExit(f"plain git: {done.stderr.decode()}")
        return took


def main() -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=15, help="runs of each (default 15)")
    parser.add_argument("--files", type=int, default=FILES, help=f"how many (default {FILES:,})")
    parser.add_argument("--check", action="store_true", help="exit 1 where ours costs too much")
    options = parser.parse_args()
    ours: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        scene = Scene(Bench(Path(folder)), options.files)
        for turn in range(1, options.runs + 1):
            if turn % 2:
                plain.append(scene.plain())
            ours.append(scene.stop("Stop", turn))
            if not turn % 2:
                plain.append(scene.plain())
    at_stop, least = statistics.median(ours), statistics.median(plain)
    most = least * MOST_RATIO + MOST_MORE_S
    holds = at_stop <= most
    of = f"{options.files:,} files, {options.files // ONE_IN:,} changed"
    print(f"an agent stops, {of}; median of {options.runs} runs")
    print(f"{'plain git: a snapshot, and a comparison':46}{least * 1000:>7.0f} ms")
    ratio = (at_stop - MOST_MORE_S) / least
    print(f"{'the review gate':46}{at_stop * 1000:>7.0f} ms = {ratio:.2f} x + 40 ms")
    word = "holds" if holds else "does not hold"
    print(f"at most {MOST_RATIO} x + {MOST_MORE_S * 1000:.0f} ms: {word}")
    return 0 if holds or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
