"""A run as plain data, for JSON. Cold: no hook of git loads this.

Field names are part of the interface: `version` goes up when one changes its meaning or goes away.
"""

from __future__ import annotations

from gitgates.clean import utf8
from gitgates.types import BLOCK, VERDICTS, Decision, GateResult, Plan, Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1


def run_document(decision: Decision, plan: Plan) -> dict[str, Any]:
    """Return a whole run: what was decided, and every gate in the order in which it was met."""
    return {
        "version": VERSION,
        "hook": plan.event.name,
        "root": utf8(plan.event.root_abs),
        "exit_status": 1 if decision.verdict >= BLOCK else 0,
        "verdict": VERDICTS[decision.verdict],
        "asked": decision.asked,
        "reason": decision.reason,
        "gates": [_visit(visit, plan) for visit in decision.visits],
        "not_run": list(decision.not_run),
        "notes": list(decision.notes),
    }


def interrupted_document(error: dict[str, Any], decision: Decision, plan: Plan) -> dict[str, Any]:
    """Return a run that a signal ended: its `error_document`, and how gates ended until then."""
    return {**run_document(decision, plan), **error}


def error_document(message: str, hint: str, exit_status: int) -> dict[str, Any]:
    """Return a run that came to no decision."""
    error = {"message": utf8(message), "hint": utf8(hint)}
    return {"version": VERSION, "exit_status": exit_status, "verdict": None, "error": error}


def result_fields(result: GateResult) -> dict[str, Any]:
    """Return how one gate ended. Output that is not UTF-8 has its odd bytes replaced."""
    return {
        "name": result.gate,
        "status": result.status,
        "exit_status": result.exit_status,
        "signal": result.signal,
        "duration_s": round(result.duration_s, 3),
        "reason": utf8(result.reason),
        "output": result.output.decode("utf-8", "replace"),
        "dropped_bytes": result.dropped_bytes,
        "changed_paths": [utf8(path) for path in result.changed_paths],
        "restaged_paths": [utf8(path) for path in result.restaged_paths],
        "log": utf8(result.log_abs),
    }


def _visit(visit: Visit, plan: Plan) -> dict[str, Any]:
    paths = next(step.paths for step in plan.steps if step.gate.name == visit.result.gate)
    return {
        **result_fields(visit.result),
        "verdict": VERDICTS[visit.verdict],
        "action": visit.action,
        "called_by": visit.called_by,
        "rescued_by": visit.rescued_by,
        "paths": [utf8(path) for path in paths],
    }
