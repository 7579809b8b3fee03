"""Write into docs/explanation/safety.md what each hook manager leaves behind, by scenario.

Each scenario runs with the real programs, through an installed hook, in a repository of its own:
one file partially staged, one changed and not staged, and a gate that runs until it is told to end.
Works on Linux, where processes can be found through /proc.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import page
from bed import Bed
from managers import MANAGERS, ROOT, Manager
from scenarios import SCENARIOS, Scenario

if TYPE_CHECKING:
    from page import Found

PAGE = ROOT / "docs" / "explanation" / "safety.md"
JOBS = 4  # they mostly wait


def play(scenario: Scenario, manager: Manager, folder: Path) -> Found:
    """Play one scenario with one manager; return what each of its rows shows."""
    bed = Bed(folder, manager)
    try:
        seen = scenario.play(bed)
    finally:
        bed.go()
    return {
        (row, manager.name): one._replace(said=page.words(one.said, str(folder)))
        for row, one in zip(scenario.rows, seen, strict=True)
    }


def play_all(scenarios: list[Scenario]) -> Found:
    """Play scenarios with every manager, a few at once."""
    todo = [(scenario, manager) for scenario in scenarios for manager in MANAGERS]
    found: Found = {}
    with (
        tempfile.TemporaryDirectory(prefix="gitgates-compare-") as folder,
        ThreadPoolExecutor(JOBS) as pool,
    ):
        jobs = [
            pool.submit(play, scenario, manager, Path(folder) / str(number))
            for number, (scenario, manager) in enumerate(todo)
        ]
        for job in jobs:
            found |= job.result()
    return found


def main() -> int:
    """Play everything, print all that was seen, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="print scenarios with this in their name")
    options = parser.parse_args()
    found = play_all([each for each in SCENARIOS if options.only in each.name])
    names = [manager.name for manager in MANAGERS]
    made = page.summary(found, names, [manager.says_version() for manager in MANAGERS])
    print(page.observations(found, names))
    if options.only:
        print(made)
    else:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.fill(text, made), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
