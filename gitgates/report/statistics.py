"""What the kept runs say of each gate: whether it earns its time. Pure, and cold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_DECIDING = ("BLOCK", "STOP")
_IDLE = ("skipped", "not-run")

# field → the head of its column, how a value is written, and what it counts.
# The help of `gitgates runs stats` has these.
COLUMNS = {
    "runs": ("runs", "{}", "how often the gate ran; skipped is not run"),
    "total_seconds": ("total", "{:.1f} s", "the time of all of these together"),
    "median_seconds": ("median", "{:.1f} s", "the time in the middle: half of them took less"),
    "changed": ("changed", "{}", "outcomes changed: how often its own BLOCK or STOP decided"),
    "overrides": (
        "overridden",
        "{}",
        """how often a person skipped it (SKIP, GITGATES_SKIP) since the oldest kept run began, or
        an agent said that it cannot fix it""",
    ),
    "fed_back_bytes": (
        "fed back",
        "{} B",
        """its share of the bytes that agents were given: those of an attempt are shared out among
        the gates that decided, by the length of their outputs""",
    ),
    "fix_rate": (
        "fixed",
        "{:.0%}",
        """of the cycles of an agent in which it did not pass at some attempt: those in which it
        passed at a later one""",
    ),
    "attempts_to_pass": (
        "attempts",
        "{:.1f}",
        """of the cycles of an agent in which it passed: how often it had run with its first pass,
        on average""",
    ),
    "flaps": (
        "flaps",
        "{}",
        """snapshots on which it passed once and did not another time, under the same hook; each is
        listed below""",
    ),
}


class _Tally:
    """What is counted of one gate on the way."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.changed = 0
        self.overrides = 0
        self.fed_back = 0.0
        self.cycles: list[list[bool]] = []  # of agents: whether it passed, attempt by attempt
        self.on_tree: dict[tuple[str, str], set[bool]] = {}  # hook and tree → whether it passed


def gate_stats(documents: Iterable[dict[str, Any]], skipped: Iterable[str]) -> list[dict[str, Any]]:
    """Return what sound documents say of each gate, the one that took longest first.

    Fields are those of COLUMNS and the name; None if there was nothing to count.

    `skipped`: a gate's name for each time that a person left it out.
    """
    tallies: dict[str, _Tally] = {}
    for document in documents:
        _add_run(document["quality_gates"], tallies)
    for name in skipped:
        tallies.setdefault(name, _Tally()).overrides += 1
    found = [_gate(name, tally) for name, tally in tallies.items()]
    return sorted(found, key=lambda gate: (-gate["total_seconds"], gate["name"]))


def _add_run(cycle: dict[str, Any], tallies: dict[str, _Tally]) -> None:
    passes: dict[str, list[bool]] = {}
    for attempt in cycle["attempts"]:
        for result in attempt["results"]:
            tally = tallies.setdefault(result["name"], _Tally())
            if result["status"] in _IDLE:
                continue
            tally.seconds.append(result["duration_seconds"])
            tally.changed += _decided(result)
            passes.setdefault(result["name"], []).append(result["passed"])
            if tree := attempt.get("tree"):
                tally.on_tree.setdefault((attempt["hook"], tree), set()).add(result["passed"])
        _share_out(attempt, tallies)
        for name, _reason in attempt.get("cannot_fix", []):
            tallies.setdefault(name, _Tally()).overrides += 1
    if cycle["max_retries"]:
        for name, passed in passes.items():
            tallies[name].cycles.append(passed)


def _decided(result: dict[str, Any]) -> bool:
    return result["verdict"] in ("block", "stop") and result["action"] in _DECIDING


def _share_out(attempt: dict[str, Any], tallies: dict[str, _Tally]) -> None:
    deciding = [result for result in attempt["results"] if _decided(result)]
    weights = [len(result["output"]) for result in deciding]
    if not any(weights):
        weights = [1 for _ in deciding]
    for result, weight in zip(deciding, weights, strict=True):
        tallies[result["name"]].fed_back += attempt["fed_back_bytes"] * weight / sum(weights)


def _gate(name: str, tally: _Tally) -> dict[str, Any]:
    seconds, runs = sorted(tally.seconds), len(tally.seconds)
    failed = [passed for passed in tally.cycles if False in passed]
    fixed = [passed for passed in failed if True in passed[passed.index(False) :]]
    waits = [passed.index(True) + 1 for passed in tally.cycles if True in passed]
    return {
        "name": name,
        "runs": runs,
        "total_seconds": round(sum(seconds), 3),
        "median_seconds": round((seconds[(runs - 1) // 2] + seconds[runs // 2]) / 2, 3)
        if runs
        else None,
        "changed": tally.changed,
        "overrides": tally.overrides,
        "fed_back_bytes": round(tally.fed_back),
        "fix_rate": round(len(fixed) / len(failed), 3) if failed else None,
        "attempts_to_pass": round(sum(waits) / len(waits), 2) if waits else None,
        "flaps": sorted({tree for (_, tree), ends in tally.on_tree.items() if len(ends) > 1}),
    }
