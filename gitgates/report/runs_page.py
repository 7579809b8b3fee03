"""All kept runs as one HTML page: what gates cost and find, over time, by session; bypasses. Cold.

Of each list, only the newest or the most are shown, so that thousands of runs make no larger page.
"""

from __future__ import annotations

import time
from collections import Counter

from gitgates.core.clean import counted, plain_line
from gitgates.core.record import Record
from gitgates.report.page import TONES, render, series
from gitgates.report.result import attempts_made, failed_gates
from gitgates.report.statistics import failures_found, gate_stats, outcome_word, trends
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from gitgates.store.proofs import Proof

    Row: TypeAlias = dict[str, Any]

_ROWS = 100  # of a table
_DAYS = 30  # that have a bar
_DRAWN = 10  # gates, and metrics, over time
_POINTS = 200  # of each
_LONGEST = 120  # characters of a text
_SHORT = 12  # digits of an id


class KeptRuns(Record):
    """What the page is made from. All lists are oldest first."""

    root_abs: str
    documents: Sequence[Row]  # `result.json` of each run
    proofs: Sequence[Proof]
    skips: Sequence[Row]  # of the ledger: what was skipped since the oldest run
    commits: Sequence[Row]  # `commit`, `subject`, `state` and `why`, of those without a pass
    verified: int  # the number of commits that were looked at


def runs_page(content: KeptRuns) -> str:
    """Return the HTML."""
    documents = content.documents
    skipped = [gate for entry in content.skips for gate in entry["gates"]]
    gates = gate_stats(documents, skipped, content.proofs)
    counts = failures_found(documents, content.proofs, content.root_abs)
    by_value = [{**gate, "found": counts.get(gate["name"], (0, 0))} for gate in gates]
    by_value.sort(key=lambda gate: (-gate["found"][1], gate["total_seconds"]))
    flaky = [gate for gate in gates if gate["flaps"] or gate["false_positives"]]
    return render(
        "report/runs_page.html.j2",
        title=f"gitgates runs of {_line(content.root_abs)}",
        facts=_facts(documents, gates),
        days=_days(documents),
        by_time=_table(_timed, gates),
        longest=max((gate["total_seconds"] for gate in gates), default=0) or 1,
        by_value=_table(_value, by_value),
        flaky=_table(_flaky, flaky),
        drawn=[*_durations(documents, gates[:_DRAWN]), *_metrics(content.proofs)],
        sessions=_table(_session, _by_session(documents)),
        verified=counted(content.verified, "commit"),
        commits=_table(_commit, content.commits[::-1]),
        skips=_table(_skip, content.skips[::-1]),
        runs=_table(_run, documents[::-1]),
    )


def _line(text: object) -> str:
    return plain_line(str(text), _LONGEST)


def _minute(timestamp: str) -> str:
    return _line(timestamp)[:16].replace("T", " ")


def _table(make: Callable[[Any], Row], entries: Sequence[Any]) -> Row:
    """Return the rows of a table that are shown, and how many are not."""
    return {"rows": [*map(make, entries[:_ROWS])], "more": max(len(entries) - _ROWS, 0)}


def _facts(documents: Sequence[Row], gates: list[Row]) -> list[tuple[str, str]]:
    ends = Counter(document["quality_gates"]["final_status"] for document in documents)
    times = sorted(document["quality_gates"]["attempts"][0]["timestamp"] for document in documents)
    return [
        ("Runs", f"{len(documents)}: {ends['passed']} passed, {ends['failed']} failed"),
        ("Time", f"{_minute(times[0])} to {_minute(times[-1])} UTC" if times else "none"),
        ("Time of gates", f"{sum(gate['total_seconds'] for gate in gates):,.0f} seconds"),
        ("Page made", _minute(utc(time.time())) + " UTC"),
    ]


def _days(documents: Sequence[Row]) -> list[Row]:
    """Return the runs of each of the newest days that have some, in percent of the most."""
    counts: dict[str, Counter[str]] = {}
    for document in documents:
        cycle = document["quality_gates"]
        day = _line(cycle["attempts"][0]["timestamp"])[:10]
        counts.setdefault(day, Counter())[cycle["final_status"]] += 1
    most = max((ends.total() for ends in counts.values()), default=1)
    return [
        {
            "day": day,
            "runs": counted(ends.total(), "run"),
            "spoken": f"{ends['passed']} passed, {ends['failed']} failed",
            "passed": 100 * ends["passed"] / most,
            "failed": 100 * ends["failed"] / most,
        }
        for day, ends in sorted(counts.items())[-_DAYS:]
    ]


def _timed(gate: Row) -> Row:
    return {
        "name": _line(gate["name"]),
        "runs": gate["runs"],
        "seconds": gate["total_seconds"],
        "total": f"{gate['total_seconds']:,.1f}",
        "median": "-" if gate["median_seconds"] is None else f"{gate['median_seconds']:,.1f}",
    }


def _value(gate: Row) -> Row:
    failures, fixes = gate["found"]
    cost = f"{gate['total_seconds'] / fixes:,.1f}" if fixes else "-"
    return {"name": _line(gate["name"]), "found": failures, "fixed": fixes, "cost": cost}


def _flaky(gate: Row) -> Row:
    trees = ", ".join(_line(tree)[:_SHORT] for tree in gate["flaps"][:5])
    more = len(gate["flaps"]) - 5
    return {
        "name": _line(gate["name"]),
        "trees": f"{trees} and {more} more" if more > 0 else trees or "-",
        "false": gate["false_positives"],
    }


def _durations(documents: Sequence[Row], gates: list[Row]) -> list[Row]:
    """Return how long gates took in each run, drawn."""
    seconds: dict[str, list[float]] = {gate["name"]: [] for gate in gates}
    for document in documents:
        for attempt in attempts_made(document):
            for result in attempt["results"]:
                if result["duration_seconds"] and result["name"] in seconds:
                    seconds[result["name"]].append(result["duration_seconds"])
    return [_drawn(f"{name}: seconds", values) for name, values in seconds.items() if values]


def _metrics(proofs: Sequence[Proof]) -> list[Row]:
    rows = trends(proofs)[:_DRAWN]
    return [
        _drawn(f"{row['gate']}: {row['metric']}", [value["value"] for value in row["values"]])
        for row in rows
    ]


def _drawn(name: str, values: list[float]) -> Row:
    return series({"name": _line(name), "values": values[-_POINTS:]})


def _by_session(documents: Sequence[Row]) -> list[list[Row]]:
    """Return the runs of each session of an agent, the newest session first."""
    runs_of: dict[str, list[Row]] = {}
    for document in documents:
        if session := document.get("session"):
            runs_of.setdefault(session, []).append(document)
    return [*runs_of.values()][::-1]


def _session(runs: list[Row]) -> Row:
    return {
        "name": _line(runs[0]["session"]),
        "host": _line(runs[-1]["host"]),
        "from": _minute(runs[0]["quality_gates"]["attempts"][0]["timestamp"]),
        "runs": len(runs),
        "attempts": sum(len(attempts_made(run)) for run in runs),
        "outcome": _line(outcome_word(runs[-1])),
        "tone": TONES.get(outcome_word(runs[-1]), "bad"),
    }


def _commit(row: Row) -> Row:
    state = f"{row['state']}: {row['why']}" if row["why"] else row["state"]
    return {"id": row["commit"][:_SHORT], "subject": _line(row["subject"]), "state": _line(state)}


def _skip(entry: Row) -> Row:
    return {
        "gates": _line(", ".join(map(str, entry["gates"]))),
        "by": _line(entry.get("by", "")),
        "hook": _line(entry.get("hook", "")),
        "time": _minute(str(entry.get("time", ""))),
    }


def _run(document: Row) -> Row:
    cycle, names = document["quality_gates"], ", ".join(failed_gates(document))
    outcome = outcome_word(document)
    return {
        "id": _line(document["execution_id"]),
        "where": _line(f"{document['host']}, {cycle['attempts'][-1]['hook']}"),
        "outcome": _line(f"{outcome}: {names}" if names else outcome),
        "tone": TONES.get(outcome, "bad"),
        "seconds": f"{cycle['total_duration_seconds']:,.1f}",
    }
