"""Results of headless runs as data: one attempt, twelve, hostile texts, no gates at all."""

from __future__ import annotations

from typing import Any

from gitgates.core.types import ALLOW, BLOCK, Decision, GateResult, Visit
from gitgates.report.result import AttemptReport, add_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Status

RUN = "20260301T101500.204816Z-4242"
HOSTILE = (
    "</pre></details></main><script>document.title = 'ran'</script><img src=http://evil.example/x>"
    "<style>*{display:none}</style>{{ 7*7 }}\x1b[31mred\x1b[0m\x1b]0;title\x07\u202etxt.exe\x00\n"
)


def gate(
    name: str,
    status: Status = "passed",
    output: str = "",
    seconds: float = 1.5,
    reason: str = "",
) -> Visit:
    """Return how a gate ended, and what that led to."""
    result = GateResult(
        gate=name,
        status=status,
        exit_status={"passed": 0, "failed": 1}.get(status),
        duration_s=seconds,
        output=output.encode("utf-8", "surrogateescape"),
        reason=reason,
    )
    if status in ("passed", "skipped"):
        return Visit(result=result, verdict=ALLOW, action="CONTINUE")
    return Visit(result=result, verdict=BLOCK, action="BLOCK")


def run_result(*attempts: tuple[str, tuple[Visit, ...]], **headless: object) -> dict[str, Any]:
    """Return the document of a run; of each attempt, its outcome and its gates."""
    document = None
    for number, (outcome, visits) in enumerate(attempts):
        decision = Decision(BLOCK, decided_by="test", reason="test: failed", visits=visits)
        if outcome == "passed":
            decision = Decision(ALLOW, visits=visits)
        attempt = AttemptReport(
            hook="headless",
            host="headless",
            root="/repo",
            timestamp_s=1_772_360_100 + 60 * number,
            duration_s=10,
            decision=decision,
            verdict=outcome,
        )
        document = add_attempt(document, RUN, attempt, 3)
    assert document
    return {**document, "headless": {"agent": "claude", **headless}}


def turn(attempt: int, text: str = "", **more: object) -> dict[str, Any]:
    """Return one turn of the agent."""
    return {"attempt": attempt, "seconds": 12.34 * attempt, "text": text, **more}


def one_attempt() -> dict[str, Any]:
    """Return a run that passed at once."""
    gates = (gate("test", seconds=24.1), gate("lint"), gate("docs", "skipped", reason="no path"))
    return run_result(
        ("passed", gates),
        task="Fix the login",
        status="passed",
        outcome="all gates passed",
        commit="4f1c" * 10,
        turns=[turn(1, "I have mended the login.", tokens=2345, cost_usd=0.0123)],
    )


def twelve_attempts() -> dict[str, Any]:
    """Return a run that was given up after twelve attempts."""
    bad = (
        gate("test", "failed", "FAIL: login\n  expected 200\n" * 40),
        gate("build", "timed-out", reason="limit 40 s", seconds=40),
        gate("types", "not-started", reason="no such program"),
        gate("lint"),
    )
    return run_result(
        *[("blocked", bad)] * 11,
        ("exhausted", bad),
        task="Fix it\n" + "with many words " * 200,
        status="failed",
        outcome="the gates still failed when no retry was left",
        failed_ref=f"refs/gitgates/failed/{RUN}",
        rolled_back=True,
        turns=[turn(number, f"Attempt {number}.") for number in range(1, 13)],
    )


def hostile() -> dict[str, Any]:
    """Return a run in which every text tries to break out."""
    gates = (
        gate(f"<b>{HOSTILE}", "failed", HOSTILE, reason=HOSTILE),
        gate("long", "failed", "x" * 1_000_000),
        gate("w" * 300, "failed", "\udcff" * 100 + "שלום\u2066"),
    )
    return run_result(
        ("blocked", gates),
        ("exhausted", gates),
        task=HOSTILE + "y" * 4000,
        status="failed",
        outcome=HOSTILE,
        commit=HOSTILE,
        turns=[turn(1, HOSTILE), turn(2, "z" * 4000, error=HOSTILE), turn(3, error=HOSTILE)],
    )


def no_gates() -> dict[str, Any]:
    """Return a run whose agent failed before any gate ran."""
    return run_result(
        ("could-not-run", ()),
        task="Fix the login",
        status="failed",
        outcome="the agent's client failed twice",
        turns=[turn(1, error="claude: exit status 1\nAPI limit reached")] * 2,
    )
