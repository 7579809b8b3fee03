"""From how processes ended to how their gate ended."""

from __future__ import annotations

from gitgates.engine.walk import ENDED
from gitgates.types import Ending, GateResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Status

# The worst of a gate's runs decides for all of them.
_WORSE: tuple[Status, ...] = ("passed", "failed", "killed", "timed-out", "not-started")
# What a POSIX shell says of a command that it could not run. Source: sh(1), EXIT STATUS.
_SHELL_CANNOT = {
    127: "command not found",
    126: "not executable",
}


def judge(gate: str, endings: tuple[Ending, ...], *, shell: bool) -> GateResult:
    """Return the result of a gate from the ends of its runs (at least one), without its output."""
    return max((_judge_one(gate, ending, shell=shell) for ending in endings), key=_badness)


def _badness(result: GateResult) -> tuple[int, int]:
    return _WORSE.index(result.status), result.exit_status or 0


def _judge_one(gate: str, end: Ending, *, shell: bool) -> GateResult:
    status: Status
    reason = end.not_started
    if reason:
        status = "not-started"
    elif end.timed_out:
        status = "timed-out"
    elif end.ended_by_us:
        status, reason = "killed", ENDED
    elif end.signal:
        status = "killed"
    elif shell and end.exit_status in _SHELL_CANNOT:
        status, reason = "not-started", _SHELL_CANNOT[end.exit_status]
    else:
        status = "passed" if end.exit_status == 0 else "failed"
    return GateResult(
        gate=gate, status=status, exit_status=end.exit_status, signal=end.signal, reason=reason
    )
