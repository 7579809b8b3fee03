"""Runs and gates as tables for people. What comes from anywhere is shown without its effects."""

from __future__ import annotations

from gitgates.clean import plain_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.report.artifact_stats import GateStats

    Run = tuple[str, dict[str, Any] | None]

_HELP_WIDTH = 60
_FAILED_SHOWN = 3


def listed(run_id: str, document: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the list says of a run."""
    if document is None:
        return {"execution_id": run_id, "outcome": None}
    cycle = document["quality_gates"]
    last = cycle["attempts"][-1]
    return {
        "execution_id": run_id,
        "outcome": document["outcome"],
        "host": document["host"],
        "hook": last["hook"],
        "timestamp": cycle["attempts"][0]["timestamp"],
        "attempts": len(cycle["attempts"]),
        "total_duration_seconds": cycle["total_duration_seconds"],
        "failed": [
            result["name"]
            for result in last["results"]
            if not result["passed"] and result["status"] != "skipped"
        ],
    }


def list_text(found: list[Run]) -> str:
    """Return the list of runs as lines."""
    if not found:
        return "no run is kept here\n"
    rows: list[tuple[str, ...]] = [("run", "host", "hook", "attempts", "time", "what came of it")]
    rows += [_row(listed(run_id, document)) for run_id, document in found]
    return _table(rows, right=(3, 4))


def stats_text(found: list[GateStats], runs: int) -> str:
    """Return what the runs say of each gate as lines."""
    if not found:
        return "no run with results is kept here\n"
    all_bytes = sum(gate.fed_back_bytes for gate in found)
    heads = ("gate", "runs", "total", "median", "changed", "overridden", "fed back", "fixed")
    rows: list[tuple[str, ...]] = [(*heads, "attempts", "flaps")]
    rows += [
        (
            plain_line(gate.name),
            str(gate.runs),
            _seconds(gate.total_seconds),
            _seconds(gate.median_seconds),
            str(gate.changed),
            str(gate.overrides),
            _share(gate.fed_back_bytes, all_bytes),
            "-" if gate.fix_rate is None else f"{gate.fix_rate:.0%}",
            "-" if gate.attempts_to_pass is None else f"{gate.attempts_to_pass:.1f}",
            str(len(gate.flaps)),
        )
        for gate in found
    ]
    flaps = [
        f"flaps: {plain_line(gate.name)} on {plain_line(tree)}\n"
        for gate in found
        for tree in gate.flaps
    ]
    closing = f"of {count(runs, 'run')} with results\n"
    return _table(rows, right=tuple(range(1, len(rows[0])))) + "".join(flaps) + closing


def help_of_stats(line: str, columns: dict[str, tuple[str, str]]) -> str:
    """Return the help of `runs stats`: what each column counts."""
    import textwrap

    lines = []
    for head, meaning in columns.values():
        first, *more = textwrap.wrap(" ".join(meaning.split()), _HELP_WIDTH)
        lines += [f"{head:<11} {first}", *(f"{'':<11} {rest}" for rest in more)]
    return "\n\n".join([line, "\b\n" + "\n".join(lines), "`-`: there was nothing to count."])


def count(number: int, what: str) -> str:
    """Return a number of things."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    if run["outcome"] is None:
        return (plain_line(run["execution_id"]), "", "", "", "", "logs only")
    failed = run["failed"][:_FAILED_SHOWN]
    names = ", ".join(plain_line(name) for name in failed) + (
        ", …" if len(run["failed"]) > len(failed) else ""
    )
    return (
        run["execution_id"],
        plain_line(run["host"]),
        plain_line(run["hook"]),
        str(run["attempts"]),
        _seconds(run["total_duration_seconds"]),
        f"{run['outcome']}: {names}" if names else run["outcome"],
    )


def _table(rows: list[tuple[str, ...]], right: tuple[int, ...]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            f"{cell:>{width}}" if number in right else f"{cell:<{width}}"
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _share(part: int, whole: int) -> str:
    return f"{part} B ({part / whole:.0%})" if whole else f"{part} B"
