"""How many branches land in an hour: in batches with several slots, and one after the other.

Real git and real processes; a gate is a sleep, so that more slots than CPUs can be simulated. Of
the branches, some have a bad file, which fails the gate of whatever it is merged into, and some
change the same line. A gate stands for one of 60 s. Time is counted in gates, so that a machine
under load measures the same: each takes 60 s from the end of the last one that its start has waited
for, and all else takes none. `--check` exits 1 if a target is broken, or 8 slots at 5 % land less
than 3 times what serial landing does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

GITGATES = str(Path(sys.executable).with_name("gitgates"))
REAL_S = 60.0
AT_LEAST = 3.0
SERIAL = "serial"
IDENTITY = {"user.name": "Bench", "user.email": "bench@example.invalid"}
HEAD = "failures conflicts  slots   landed  ejected  an hour  × serial  gate-s each  untested"


class Case(NamedTuple):
    """One history."""

    failures: float
    conflicts: float
    slots: int  # 0: serial


class Run(NamedTuple):
    """One run of the gate, in ticks since the machine was started."""

    began: float  # the process that tests the candidate
    ended: float  # the gate; infinite: it was stopped


class Measured(NamedTuple):
    """How it went, with gates of 60 s."""

    landed: int
    ejected: int
    per_hour: float
    gate_s: float  # for each landed branch
    untested_broken: int  # branches that would have broken the target without gates
    broken: bool


_COMMAND = """began=$(cut -d " " -f 22 /proc/$PPID/stat); echo $$ $began >> $OUT/runs
sleep {seconds}; ! grep -hx bad *.txt; status=$?
echo $$ $began $(tr -d . < /proc/uptime) >> $OUT/runs; exit $status"""


def read_runs(path: Path) -> list[Run]:
    """Return the runs of the gate, by when they began."""
    ended: dict[tuple[str, str], float] = {}
    for shell, began, *rest in map(str.split, path.read_text().splitlines()):
        ended[shell, began] = float(rest[0]) if rest else float("inf")
    return sorted(Run(float(began), end) for (_shell, began), end in ended.items())


def gates_in_turn(runs: list[Run]) -> int:
    """Return how many gates long the longest chain is, in which each waits for the one before."""
    depths: list[int] = []
    for run in runs:
        before = zip(runs, depths, strict=False)
        depths.append(1 + max((at for each, at in before if each.ended <= run.began), default=0))
    return max(
        (depth for run, depth in zip(runs, depths, strict=True) if run.ended < float("inf")),
        default=0,
    )


def measure(case: Case, branches: int, seconds: float, folder: Path) -> Measured:
    """Land all branches of a history, in one call."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT", "CLAUDE", "PYTHON"))}
    env |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "OUT": str(folder)}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GITGATES_POOL": str(folder / "pool")}
    root = folder / "repository"

    def git(*args: str) -> str:
        done = subprocess.run(("git", "-C", root, *args), env=env, capture_output=True, check=True)
        return done.stdout.decode().strip()

    subprocess.run(("git", "init", "-q", "-b", "main", root), env=env, check=True)
    for key, value in IDENTITY.items():
        git("config", key, value)
    command = _COMMAND.format(seconds=seconds)
    batch = "batch = 4" if case.slots else "batch = 1"
    (root / "gitgates.toml").write_text(
        f"jobs = {case.slots or 1}\n[gates.test]\ncommand = {json.dumps(command)}\nretry = 0\n"
        f'[hooks.pre-push]\ngates = ["test"]\n[land]\n{batch}\n'
    )
    (root / "shared.txt").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "base")
    rand = random.Random(7)
    names = [f"b{number}" for number in range(branches)]
    bad = {*rand.sample(names, round(case.failures * branches))}
    alike = {*rand.sample(names, round(case.conflicts * branches))}
    for name in names:
        git("checkout", "-q", "-b", name, "main")
        (root / f"{name}.txt").write_text("bad\n" if name in bad else "good\n")
        if name in alike:
            (root / "shared.txt").write_text(f"{name}\n")
        git("add", ".")
        git("commit", "-qm", name)
    git("checkout", "-q", "--detach", "main")
    done = subprocess.run(
        (GITGATES, "land", "--format=json", *names),
        cwd=root,
        env=env,
        capture_output=True,
        check=False,
    )
    runs = read_runs(folder / "runs")
    took_s = gates_in_turn(runs) * REAL_S
    states = [row["state"] for row in json.loads(done.stdout)["entries"]]
    landed = states.count("landed")
    git("checkout", "-q", "main")
    is_broken = any((root / f"{name}.txt").exists() for name in bad)
    return Measured(
        landed,
        states.count("ejected"),
        landed * 3600 / took_s,
        len(runs) * REAL_S / max(landed, 1),
        len(bad),
        is_broken,
    )


def main() -> int:
    """Measure each case, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--branches", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a gate")
    parser.add_argument("--only", default="", help="FAILURES,CONFLICTS, such as 0.05,0")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    cases = [*itertools.product((0.0, 0.05, 0.2), (0.0, 0.25), (0, 2, 8))]
    serial: dict[tuple[float, float], float] = {}
    wrong = False
    print(HEAD)
    for case in map(Case._make, cases):
        if options.only and options.only != f"{case.failures:g},{case.conflicts:g}":
            continue
        with tempfile.TemporaryDirectory() as folder:
            one = measure(case, options.branches, options.seconds, Path(folder))
        key = case.failures, case.conflicts
        serial.setdefault(key, one.per_hour)
        times = one.per_hour / serial[key]
        wrong |= one.broken or (case.slots == 8 and case.failures == 0.05 and times < AT_LEAST)
        columns = (
            f"{case.failures:8.0%} {case.conflicts:9.0%} {case.slots or SERIAL:>6} {one.landed:8}",
            f"{one.ejected:8} {one.per_hour:8.0f} {times:9.1f} {one.gate_s:12.0f}",
            f"{one.untested_broken} broken{'  BROKEN' if one.broken else ''}",
        )
        print(*columns, flush=True)
    return int(wrong and options.check)


if __name__ == "__main__":
    sys.exit(main())
