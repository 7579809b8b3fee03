"""Statistics over many runs: of gates, headless runs and metrics. Pure and cold."""

from __future__ import annotations

from datetime import datetime
from statistics import fmean, median

from gitgates.report.result import OUTCOMES, failed_gates
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.store.proofs import Proof

_DECIDING = ("BLOCK", "STOP")
_IDLE = ("skipped", "not-run")
_BARS = "▁▂▃▄▅▆▇█"
_DRAWN = 40  # values, the newest

# field → the head of its column, how a value is written, and what it counts.
# The help of `gitgates runs stats` has these.
COLUMNS = {
    "runs": ("runs", "{}", "number of runs, without those skipped"),
    "unchecked": ("unchecked", "{}", "number of runs that succeeded with nothing to check"),
    "flaky": ("flaky", "{}", "number of runs that failed, and then passed on the same content"),
    "total_seconds": ("total", "{:.1f} s", "total time of these runs"),
    "median_seconds": ("median", "{:.1f} s", "median time"),
    "changed": ("changed", "{}", "outcomes changed: number of runs decided by its BLOCK or STOP"),
    "overrides": (
        "overridden",
        "{}",
        """number of times that a person skipped it (--skip, SKIP, GITGATES_SKIP) since the
        oldest kept run, or an agent reported that it cannot fix it""",
    ),
    "fed_back_bytes": (
        "fed back",
        "{} B",
        """its share of the bytes sent to agents: those of an attempt are divided among the gates
        that decided, by the length of their output""",
    ),
    "fix_rate": (
        "fixed",
        "{:.0%}",
        """share of an agent's cycles with a failed attempt of the gate in which it passed at a
        later attempt""",
    ),
    "attempts_to_pass": (
        "attempts",
        "{:.1f}",
        """average number of its attempts up to the first pass, in the cycles of an agent in which
        it passed""",
    ),
    "false_positives": (
        "false",
        "{}",
        """number of failures without a cause: at the next attempt of the same run, it passed on the
        same tree""",
    ),
    "flaps": (
        "flaps",
        "{}",
        """number of snapshots on which it both passed and failed, in the same hook and as far back
        as that is recorded; each is listed below""",
    ),
}


class _Tally:
    """The counters of one gate."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.unchecked = 0
        self.flaky = 0
        self.changed = 0
        self.overrides = 0
        self.fed_back = 0.0
        self.cycles: list[list[bool]] = []  # of agents: whether it passed, attempt by attempt
        self.false_positives = 0
        self.flaps: set[str] = set()

    def count(self, result: dict[str, Any]) -> bool:
        """Count a run of the gate; return whether it checked anything."""
        is_unchecked = result["status"] == "unchecked"
        is_reused = bool(result.get("reused")) and not result["duration_seconds"]
        if result["status"] not in _IDLE and not is_reused:
            self.seconds.append(result["duration_seconds"])
            self.unchecked += is_unchecked
            self.flaky += result["status"] == "flaky"
        return not (is_unchecked or result["status"] in _IDLE)


def gate_stats(
    documents: Iterable[dict[str, Any]], skipped: Iterable[str], proofs: Iterable[Proof] = ()
) -> list[dict[str, Any]]:
    """Return the statistics of each gate, the longest total time first.

    Fields are those of COLUMNS and the name; None if there was nothing to count.

    `skipped`: a gate's name for each time that a person left it out. `proofs`: of all that has run.
    """
    tallies: dict[str, _Tally] = {}
    for document in documents:
        _add_run(document["quality_gates"], tallies)
    for name in skipped:
        tallies.setdefault(name, _Tally()).overrides += 1
    ends: dict[Any, set[str]] = {}
    for proof in proofs:
        run = proof.gate, proof.definition, proof.hook, proof.base, proof.content
        ends.setdefault(run, set()).add(proof.status)
    for (name, *_, content), statuses in ends.items():
        if ("flaky" in statuses or statuses >= {"passed", "failed"}) and name in tallies:
            tallies[name].flaps.add(content)
    rows = [_gate(name, tally) for name, tally in tallies.items()]
    return sorted(rows, key=lambda gate: (-gate["total_seconds"], gate["name"]))


def _add_run(cycle: dict[str, Any], tallies: dict[str, _Tally]) -> None:
    passes: dict[str, list[bool]] = {}
    failed: dict[str, str] = {}  # gate → the tree that it failed on, at one attempt
    for attempt in cycle["attempts"]:
        earlier, failed = failed, {}
        tree = attempt.get("tree", "")
        for result in attempt["results"]:
            tally = tallies.setdefault(result["name"], _Tally())
            if not tally.count(result):
                continue
            tally.changed += _decided(result)
            is_fine = result["passed"] or result.get("excused", False)
            is_fine = is_fine or result["status"] == "flaky"
            passes.setdefault(result["name"], []).append(is_fine)
            if not is_fine:
                failed[result["name"]] = tree
            elif tree and earlier.get(result["name"]) == tree:
                tally.false_positives += 1
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
    seconds, runs = tally.seconds, len(tally.seconds)
    failed = [passed for passed in tally.cycles if False in passed]
    fixed = [passed for passed in failed if True in passed[passed.index(False) :]]
    waits = [passed.index(True) + 1 for passed in tally.cycles if True in passed]
    return {
        "name": name,
        "runs": runs,
        "unchecked": tally.unchecked,
        "flaky": tally.flaky,
        "total_seconds": round(sum(seconds), 3),
        "median_seconds": round(median(seconds), 3) if runs else None,
        "changed": tally.changed,
        "overrides": tally.overrides,
        "fed_back_bytes": round(tally.fed_back),
        "fix_rate": round(len(fixed) / len(failed), 3) if failed else None,
        "attempts_to_pass": round(sum(waits) / len(waits), 2) if waits else None,
        "false_positives": tally.false_positives,
        "flaps": sorted(tally.flaps),
    }


def failures_found(
    documents: Iterable[dict[str, Any]], proofs: Iterable[Proof], root_abs: str
) -> dict[str, tuple[int, int]]:
    """Return for each gate how many failures it has found in a worktree, and how many were fixed.

    One is found when the gate fails for the first time, or after it has passed, and fixed when it
    passes after that, on other content.
    """
    ends = [
        (attempt["timestamp"], result["name"], result["status"], attempt.get("tree", ""))
        for document in documents
        for attempt in document["quality_gates"]["attempts"]
        for result in attempt["results"]
    ]
    # A git hook whose gates all pass leaves no document.
    ends += [
        (utc(proof.time_s), proof.gate, proof.status, proof.content)
        for proof in proofs
        if proof.config and proof.root_abs == root_abs
    ]
    counts: dict[str, tuple[int, int]] = {}
    failed_on: dict[str, str] = {}  # gate → the content that it failed on last
    for _time, gate, status, content in sorted(ends, key=lambda end: end[0]):
        failures, fixes = counts.get(gate, (0, 0))
        if status == "failed":
            counts[gate] = failures + (gate not in failed_on), fixes
            failed_on[gate] = content
        elif status == "passed" and gate in failed_on:
            before = failed_on.pop(gate)
            counts[gate] = failures, fixes + (not before or before != content)
    return counts


def headless_stats(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return statistics of headless runs; None if there are none.

    A run has failed at first if a gate failed, or a limit was exceeded, at its first attempt. No
    person takes part in such a run: if it passes in the end, its agent has fixed it.
    """
    runs = [run for run in documents if run.get("headless")]
    failed = [run for run in runs if _has_failed(run["quality_gates"]["attempts"][0])]
    passed = [run for run in runs if _has_passed(run)]
    fixed = [run for run in failed if _has_passed(run)]
    tokens = [sum(counts) for run in passed if (counts := _of_turns(run, "tokens"))]
    seconds = [
        run["quality_gates"]["total_duration_seconds"] + sum(_of_turns(run, "seconds"))
        for run in passed
    ]
    attempts = [len(run["quality_gates"]["attempts"]) for run in passed]
    return {
        "runs": len(runs),
        "passed": len(passed),
        "failed_at_first": len(failed),
        "fixed": len(fixed),
        "fix_rate": round(len(fixed) / len(failed), 3) if failed else None,
        "attempts_to_pass": median(attempts) if attempts else None,
        "seconds_to_pass": round(median(seconds), 3) if seconds else None,
        "tokens_to_pass": round(fmean(tokens)) if tokens else None,
    }


def _has_passed(document: dict[str, Any]) -> bool:
    return bool(document["headless"].get("status") == "passed")


def _has_failed(attempt: dict[str, Any]) -> bool:
    return bool(attempt["results"]) and OUTCOMES[attempt["verdict"]][0] == "failed"


def _of_turns(document: dict[str, Any], name: str) -> list[float]:
    turns = document["headless"].get("turns", [])
    return [turn[name] for turn in turns if turn.get(name) is not None]


def trends(proofs: Iterable[Proof]) -> list[dict[str, Any]]:
    """Return gate, metric and values of each number over time, the oldest value first."""
    values_by_metric: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for proof in sorted(proofs, key=lambda proof: proof.time_s):
        source = {"time": utc(proof.time_s), "commit": proof.base, "tree": proof.content}
        for name, value in proof.numbers.items():
            values_by_metric.setdefault((proof.gate, name), []).append({**source, "value": value})
    return [
        {"gate": gate, "metric": metric, "values": values}
        for (gate, metric), values in sorted(values_by_metric.items())
    ]


def mark_fixed(documents: Iterable[dict[str, Any]], proofs: Iterable[Proof]) -> None:
    """Mark as `fixed` each failed run whose failed gates have all passed later in that tree.

    If only a policy has blocked, a later run of the session must have passed.
    """
    documents = [*documents]
    failed = [
        document
        for document in documents
        if (failed_gates(document) or document["outcome"] == "blocked")
        if "headless" not in document
        if OUTCOMES[document["outcome"]][0] == "failed"
    ]
    if not failed:
        return
    passes = [
        (document["root"], result["name"], _time_of(document, attempt))
        for document in documents
        for attempt in document["quality_gates"]["attempts"]
        for result in attempt["results"]
        if result["passed"]
    ]
    passes += [
        (document["root"], session, _time_of(document, document["quality_gates"]["attempts"][-1]))
        for document in documents
        if (session := document.get("session")) and OUTCOMES[document["outcome"]][0] == "passed"
    ]
    passes += [(p.root_abs, p.gate, p.time_s) for p in proofs if p.status == "passed"]
    newest: dict[tuple[str, str], float] = {}
    for root, gate, time_s in passes:
        newest[root, gate] = max(newest.get((root, gate), 0.0), time_s)
    for document in failed:
        failed_s = _time_of(document, document["quality_gates"]["attempts"][-1])
        document["fixed"] = all(
            newest.get((document["root"], name), 0.0) > failed_s
            for name in failed_gates(document) or [document.get("session", "")]
        )


def outcome_word(document: dict[str, Any]) -> str:
    """Return the outcome of a run for a list, or `fixed`."""
    return "fixed" if document.get("fixed") else str(document["outcome"])


def _time_of(document: dict[str, Any], attempt: dict[str, Any]) -> float:
    """Return when an attempt began: its time is in seconds, the run's name has microseconds."""
    texts = (attempt["timestamp"], document["execution_id"].partition("-")[0])
    try:
        return max(datetime.fromisoformat(text).timestamp() for text in texts)
    except ValueError:
        return 0.0


def sparkline(values: list[float]) -> str:
    """Return the newest values as a line of bars, from the least of them to the most."""
    newest = values[-_DRAWN:]
    low, span = min(newest), max(newest) - min(newest)
    top = len(_BARS) - 1
    return "".join(
        _BARS[round((value - low) / span * top) if span else top // 2] for value in newest
    )
