"""Attempts as values, for the tests of what is left of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

from gitgates.core.types import ALLOW, BLOCK, Decision, Findings, GateResult, ResultOrigin, Visit
from gitgates.report import artifacts
from gitgates.report.result import AttemptReport, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Level, Status

START_S = 1705314600.0  # 2024-01-15T10:30:00Z, when the seed's example begins


def visit(name: str, status: Status, **more: Any) -> Visit:
    fine = status in ("passed", "skipped")
    verdict: Level = more.pop("verdict", ALLOW if fine else BLOCK)
    action = more.pop("action", "CONTINUE" if fine else "BLOCK")
    more.setdefault("exit_status", {"passed": 0, "failed": 1}.get(status))
    for part, record in (("findings", Findings), ("origin", ResultOrigin)):
        fields = {field: more.pop(field) for field in record._fields if field in more}
        more[part] = record(**fields)
    return Visit(
        result=GateResult(gate=name, status=status, **more), verdict=verdict, action=action
    )


def attempt(*visits: Visit, **more: Any) -> AttemptReport:
    verdict = max((v.verdict for v in visits), default=ALLOW)
    gate = next((v.result.gate for v in visits if v.verdict == verdict != ALLOW), "")
    decision = Decision(
        verdict=verdict,
        decided_by=gate,
        reason=f"gate `{gate}` failed" if gate else "",
        visits=visits,
        not_run=more.pop("not_run", ()),
    )
    fields: dict[str, Any] = {
        "hook": "Stop",
        "host": "claude",
        "root": "/work",
        "timestamp_s": START_S,
        "duration_s": sum(v.result.duration_s for v in visits),
        "decision": decision,
        "verdict": outcome_of(decision),
    }
    return AttemptReport(**{**fields, **more})


FAILED = attempt(visit("a", "failed", output=b"no\n"))
PASSED = attempt(visit("a", "passed"))


class Place(NamedTuple):
    """Where the artifacts of a run go."""

    state_abs: str
    run_abs: str
    root_abs: str
    artifacts_dir: str = ""
    keep_runs: int = 50
    max_retries: int = 0


def save(place: Place, attempt: AttemptReport) -> tuple[str, ...]:
    """Save an attempt; return the notes."""
    return artifacts.save(
        attempt._replace(root=place.root_abs),
        place.run_abs,
        max_retries=place.max_retries,
        artifacts_dir=place.artifacts_dir,
        keep_runs=place.keep_runs,
    )
