"""A run and its attempts as the data of `result.json`. Pure, and cold.

One cycle of failing, fixing and trying again is one run: each attempt, a process of its own, is
added to what the ones before it left. The fields are in report/artifact_fields.py.
"""

from __future__ import annotations

import time

from gitgates.clean import utf8
from gitgates.record import Record
from gitgates.report.artifact_fields import OUTCOMES, VERSION, is_sound
from gitgates.report.artifact_summary import summary
from gitgates.types import BLOCK, STOP, VERDICTS, WARN, Decision, GateResult, Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Attempt", "add_attempt", "is_sound", "outcome_of", "summary"]

LONGEST_FIXES = 2000  # characters
WITH_OUTPUT = 20  # attempts: each is written again with every one that follows


class Attempt(Record):
    """One firing of a hook: what its gates did, and what was made of that."""

    hook: str
    host: str
    root: str
    timestamp_s: float  # since the epoch
    duration_s: float
    decision: Decision
    verdict: str  # a word of OUTCOMES
    tree: str = ""  # the snapshot that the gates saw; empty: not known
    session: str = ""
    agent: str = ""
    agent_fixes: str = ""  # what the agent said last: what it did before this attempt
    fed_back_bytes: int = 0
    notes: tuple[str, ...] = ()  # besides those of the decision
    cannot_fix: tuple[tuple[str, str], ...] = ()  # gate and reason
    excused: tuple[str, ...] = ()  # gates whose failures were there before
    observed: tuple[str, ...] = ()  # gates whose failures are only watched


def outcome_of(decision: Decision) -> str:
    """Return the verdict of an attempt that no policy has a say in."""
    if decision.verdict < BLOCK:
        return "warned" if decision.verdict == WARN else "passed"
    deciding = {v.result.status for v in decision.visits if v.verdict == decision.verdict}
    if deciding == {"not-started"}:
        return "could-not-run"
    return "stopped" if decision.verdict == STOP else "blocked"


def add_attempt(
    document: dict[str, Any] | None, execution_id: str, attempt: Attempt, max_retries: int
) -> dict[str, Any]:
    """Return the document with one attempt more. None, or one that is not ours: a new one."""
    known = document if document and is_sound(document) else {}
    before = known.get("quality_gates", {}).get("attempts", [])
    attempts = [*before, _attempt(attempt, len(before) + 1, execution_id)]
    old, new = attempts[:-WITH_OUTPUT], attempts[-WITH_OUTPUT:]
    first = {
        "version": VERSION,
        "execution_id": execution_id,
        "hook": attempt.hook,
        "host": attempt.host,
        "root": attempt.root,
        **_present({"session": attempt.session, "agent": attempt.agent}),
    }
    plain: dict[str, Any] = _utf8(
        {
            **first,
            **known,
            "outcome": attempt.verdict,
            "quality_gates": {
                "retry_attempts": len(attempts) - 1,
                "max_retries": max_retries,
                "final_status": OUTCOMES[attempt.verdict][0],
                "total_duration_seconds": round(sum(a["duration_seconds"] for a in attempts), 3),
                "attempts": [*map(_without_output, old), *new],
            },
        }
    )
    return plain


def _attempt(attempt: Attempt, number: int, execution_id: str) -> dict[str, Any]:
    decision = attempt.decision
    said = attempt.agent_fixes[:LONGEST_FIXES] if number > 1 else ""
    return {
        "attempt": number,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(attempt.timestamp_s)),
        **_present({"agent_fixes": said}),
        "hook": attempt.hook,
        "duration_seconds": round(attempt.duration_s, 3),
        "verdict": attempt.verdict,
        "asked": decision.asked,
        "reason": decision.reason,
        "fed_back_bytes": attempt.fed_back_bytes,
        **_present(
            {
                "tree": attempt.tree,
                "not_run": list(decision.not_run),
                "cannot_fix": [list(pair) for pair in attempt.cannot_fix],
                "notes": list(dict.fromkeys((*decision.notes, *attempt.notes))),
            }
        ),
        "results": [_result(visit, attempt, execution_id) for visit in decision.visits],
    }


def _result(visit: Visit, attempt: Attempt, execution_id: str) -> dict[str, Any]:
    result = visit.result
    fields = {
        "name": result.gate,
        "passed": result.status == "passed",
        "duration_seconds": round(result.duration_s, 3),
    }
    if result.exit_status is not None:
        fields["exit_code"] = result.exit_status
    return {
        **fields,
        "output": result.output.decode("utf-8", "replace"),
        "status": result.status,
        "verdict": VERDICTS[visit.verdict],
        "action": visit.action,
        **_present(
            {
                "signal": result.signal,
                "reason": result.reason,
                "log": _log(result, execution_id),
                "dropped_bytes": result.dropped_bytes,
                "changed_paths": list(result.changed_paths),
                "observed": bool(visit.would) or result.gate in attempt.observed,
                "excused": bool(result.excused) or result.gate in attempt.excused,
            }
        ),
    }


def _log(result: GateResult, execution_id: str) -> str:
    """Return the log's path from the folder of the run. A push may have gates of several runs."""
    _, found, path = result.log_abs.rpartition("/runs/")
    if not found:
        return ""
    run, _, inside = path.partition("/")
    return inside if run == execution_id else f"../{path}"


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _without_output(attempt: dict[str, Any]) -> dict[str, Any]:
    return {**attempt, "results": [{**result, "output": ""} for result in attempt["results"]]}


def _utf8(value: Any) -> Any:  # noqa: ANN401 - plain data of any depth
    # A name that is not UTF-8 has surrogates, and so may what an agent says: no JSON has them.
    match value:
        case str():
            return utf8(value)
        case dict():
            return {key: _utf8(item) for key, item in value.items()}
        case list():
            return [_utf8(item) for item in value]
        case _:
            return value
