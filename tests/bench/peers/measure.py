"""Measure gitgates beside other hook managers, and write docs/reference/benchmarks.md.

Prints whether the targets are met; a target that is missed does not fail the command. What did not
do what it says fails it: there is no figure without a look.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import benchmarks_page
import commits
import figures
import small
import storm
from clock import ROOT, Clock, Scenario
from peers import NAMES, available

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = ("noop", "agent", "sizes", "storm", "commits")
_DOCS = ROOT / "docs"


def main() -> int:
    """Measure, write the page and its pictures, and print the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions, and no 100,000 files"
    )
    parser.add_argument(
        "--only",
        default=",".join(GROUPS),
        help="groups of scenarios, by comma; others keep their saved figures",
    )
    parser.add_argument("--peers", default=",".join(NAMES), help="their names, by comma")
    parser.add_argument("--into", type=Path, help="the folder docs; with --quick: none")
    parser.add_argument(
        "--page", action="store_true", help="write the page anew, without measuring"
    )
    options = parser.parse_args()
    into = options.into or (None if options.quick else _DOCS)
    if options.page:
        found = figures.read(_saved_in(into or _DOCS))
    else:
        groups, names = options.only.split(","), options.peers.split(",")
        found = _measure(groups, names, into, is_quick=options.quick)
    if into:
        _write(found, into)
    else:
        print(benchmarks_page.page(found))
    print("\n".join(benchmarks_page.lines_of_targets(found)))
    return 0


def _measure(
    groups: list[str], names: list[str], into: Path | None, *, is_quick: bool
) -> figures.Figures:
    """Measure; save after each scenario, so that a later one that fails loses nothing."""
    machine = figures.machine()
    with tempfile.TemporaryDirectory(prefix="gitgates-peers-") as folder:
        clock = Clock(Path(folder))
        machine["timed by"] = "hyperfine" if clock.hyperfine else "the clock of Python"
        if not clock.hyperfine:
            print("!!! hyperfine is not installed: the clock of Python is used", flush=True)
        if os.getloadavg()[0] > 0.5:
            print(f"!!! this machine is busy: load {machine['load before']}", flush=True)
        peers = [peer for peer in available(clock) if peer.name in names]
        work = storm.Storm(6, 0.2) if is_quick else storm.Storm()
        waits: dict[str, list[float]] = {}
        few = {"noop": 3, "agent": 3, "sizes": 2, "commits": 1}
        many = {"noop": 16, "agent": 30, "sizes": 5, "commits": 2}
        rounds = few if is_quick else many
        most = 1_000 if is_quick else max(small.SIZES)
        of_group: dict[str, Iterator[Scenario]] = {
            "noop": small.noop(clock, peers, rounds["noop"]),
            "agent": small.agent(clock, peers, rounds["agent"]),
            "sizes": small.sizes(clock, peers, rounds["sizes"], most),
            "storm": storm.scenarios(clock, peers, work, waits),
            "commits": commits.scenarios(clock, peers, rounds["commits"]),
        }
        versions = {peer.name: peer.version for peer in peers}
        missing = [name for name in NAMES if name not in versions]
        measured: dict[str, figures.Measured] = {}
        found = figures.Figures(machine, versions, missing, work, waits, measured, is_quick)
        if into:
            found.keep(_saved_in(into))
        for scenario in itertools.chain.from_iterable(of_group[name] for name in groups):
            start = time.monotonic()
            measured[scenario.key] = figures.Measured(scenario.title, clock.play(scenario))
            print(f"{time.monotonic() - start:6.1f} s  {scenario.title}", flush=True)
            if into:
                found.save(_saved_in(into))
    return found


def _saved_in(folder: Path) -> Path:
    (folder / "reference").mkdir(parents=True, exist_ok=True)
    return folder / "reference/benchmarks.json"


def _write(found: figures.Figures, into: Path) -> None:
    # In an environment of its own, with the managers that are measured.
    import charts

    (into / "pictures").mkdir(exist_ok=True)
    found.save(_saved_in(into))
    (into / "reference/benchmarks.md").write_text(benchmarks_page.page(found))
    charts.draw(found, into / "pictures")


if __name__ == "__main__":
    sys.exit(main())
