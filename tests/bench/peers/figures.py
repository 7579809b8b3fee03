"""What has been measured, with the machine and the versions; and whether the targets are met."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import commits
import small
import storm
from clock import Sample
from peers import GITGATES, NO_HOOK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OWN_S = 0.25  # of a person's commit, with four gates that start an interpreter


class Measured(NamedTuple):
    """A scenario that is over: name → a sample of each round."""

    title: str
    samples: dict[str, list[Sample]]

    def median(self, name: str) -> float:
        """Return the seconds of one."""
        return statistics.median(one.seconds for one in self.samples[name])

    def peers(self) -> list[str]:
        """Return the other managers."""
        ours = (GITGATES, NO_HOOK, small.BEFORE)
        return [name for name in self.samples if name not in ours]


class Figures(NamedTuple):
    """All that the page tells."""

    machine: dict[str, str]
    versions: dict[str, str]
    missing: list[str]
    storm: storm.Storm
    waits: dict[str, list[float]]  # by peer, what the person waited for in the storm
    scenarios: dict[str, Measured]
    is_quick: bool

    def keep(self, path: Path) -> None:
        """Add what was saved before of the same, on a machine like this, until it is measured."""
        saved = read(path) if path.exists() else self
        if saved.conditions() == self.conditions():
            self.scenarios.update(saved.scenarios)
            self.waits.update(saved.waits)

    def conditions(self) -> tuple[object, ...]:
        """Return what has to be equal for figures to stand on one page."""
        machine = {**self.machine, "load before": ""}
        return machine, self.versions, self.storm, self.is_quick

    def save(self, path: Path) -> None:
        """Write all of it, with each single run."""
        scenarios = {
            key: {"title": one.title, "samples": one.samples} for key, one in self.scenarios.items()
        }
        known = {**self._asdict(), "storm": list(self.storm), "scenarios": scenarios}
        lines = [f"  {json.dumps(key)}: {json.dumps(known[key])}" for key in known]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read(path: Path) -> Figures:
    """Return what was saved."""
    known: dict[str, Any] = json.loads(path.read_text())
    scenarios = {
        key: Measured(
            one["title"],
            {name: [Sample(*s) for s in runs] for name, runs in one["samples"].items()},
        )
        for key, one in known["scenarios"].items()
    }
    return Figures(**{**known, "storm": storm.Storm(*known["storm"]), "scenarios": scenarios})


def machine() -> dict[str, str]:
    """Return what is known of this machine."""
    found = {"system": f"{platform.system()} {platform.release()}"}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        models = []
    found["processor"] = f"{os.cpu_count()} × {models[0] if models else platform.machine()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found["memory"] = f"{memory / (1 << 30):.0f} GiB"
    found["Python"] = sys.version.split()[0]
    found["load before"] = f"{os.getloadavg()[0]:.2f}"
    return found


class Target(NamedTuple):
    """One thing that must be shown; `found` is None where it was not measured."""

    what: str
    found: float | None
    most: float
    unit: str = ""  # none for a ratio

    def verdict(self) -> str:
        """Return a word for it."""
        if self.found is None:
            return "not measured"
        return "met" if self.found <= self.most else "missed"

    def texts(self) -> tuple[str, str]:
        """Return the figure and the target as they are shown."""
        if self.unit == "ms":
            found = "" if self.found is None else f"{self.found:.1f} ms"
            return found, f"at most {self.most:g} ms"
        unit = f" {self.unit}" if self.unit else ""
        found = "" if self.found is None else f"{self.found:.3g}{unit}"
        return found, f"at most {self.most:g}{unit}"


def targets(figures: Figures) -> Iterator[Target]:
    """Return each target, in the order of the page."""
    found = figures.scenarios
    for key, what in ((commits.AGAIN, "again, unchanged"), (commits.STOPPED, "after Stop")):
        ours = _median(found, key, GITGATES)
        alone = _median(found, key, NO_HOOK) or 0
        whole = f"the set {what}: whole, of which {alone * 1000:.0f} ms without a hook"
        yield Target(whole, None if ours is None else ours * 1000, 30, "ms")
        fastest = _fastest(found, key)
        yield Target(f"the set {what}: of the fastest peer", _ratio(ours, fastest), 0.02)
    ours = _median(found, commits.ALL_FILES, GITGATES)
    fastest = _fastest(found, commits.ALL_FILES)
    yield Target(
        "linters, one file of 200 changed: of the fastest peer", _ratio(ours, fastest), 0.2
    )
    ours = _median(found, commits.COLD, GITGATES)
    for peer in ("pre-commit", "prek"):
        other = _median(found, commits.COLD, peer)
        yield Target(f"the set cold: of {peer}", _ratio(ours, other), 0.9)
    fastest = _fastest(found, commits.COLD)
    yield Target("the set cold: of the fastest peer", _ratio(ours, fastest), 1.05)
    noop = found.get(small.noop_key(3))
    what = "three gates `true`: of gitgates before reuse, in pairs; 2 % are noise"
    yield Target(what, _paired(noop, small.BEFORE), 1.02)
    ours, prek = (_median(found, small.noop_key(3), name) for name in (GITGATES, "prek"))
    yield Target("three gates `true`: of prek", _ratio(ours, prek), 1.2)
    ours = _median(found, storm.KEY, GITGATES)
    what = f"{figures.storm.worktrees} worktrees at once: of the ideal"
    yield Target(what, _ratio(ours, figures.storm.ideal_s()), 1.1)
    waits = figures.waits.get(GITGATES)
    what = f"a person's commit meanwhile: waits for one gate, and has {_OWN_S} s itself"
    yield Target(what, max(waits) if waits else None, figures.storm.gate_s + _OWN_S, "s")


def _median(found: dict[str, Measured], key: str, name: str) -> float | None:
    one = found.get(key)
    return one.median(name) if one and name in one.samples else None


def _fastest(found: dict[str, Measured], key: str) -> float | None:
    one = found.get(key)
    return min(map(one.median, one.peers()), default=None) if one else None


def _ratio(ours: float | None, other: float | None) -> float | None:
    return ours / other if ours is not None and other else None


def _paired(one: Measured | None, other: str) -> float | None:
    """Return the median of the ratios within each round."""
    if not one or other not in one.samples or GITGATES not in one.samples:
        return None
    pairs = zip(one.samples[GITGATES], one.samples[other], strict=True)
    return statistics.median(ours.seconds / its.seconds for ours, its in pairs)
