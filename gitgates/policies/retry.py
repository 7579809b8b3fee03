"""The gates at the end of work: whether they run again, and what becomes of what they say."""

from __future__ import annotations

from gitgates.policies.gates import has_gates
from gitgates.types import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.call import Call
    from gitgates.policy import Need
    from gitgates.types import Config


def needs(_config: Config) -> tuple[Need, ...]:
    """Return nothing: the hooks that list gates are those of policies/gates.py."""
    return ()


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Run the gates at the end of work where something has changed, and say what that leads to."""
    if not (has_gates(call) and call.ends_work):
        return so_far
    if not call.session.base:
        from gitgates.policies.beginning import record_base  # seldom: hooks came in mid-session

        record_base(call)
    if call.is_unchanged:
        # What has been undone needs no warning any more.
        told = ({"what": "told"},) if call.session.warnings else ()
        return so_far.joined(Verdict(entries=told))
    # What runs gates takes as long to load as git takes to tell what has changed.
    from gitgates.engine.hooks import host_limit_s
    from gitgates.policies.gate_run import plan_run

    run = plan_run(call, call.changes)
    if run is None:
        return so_far
    from gitgates.policies.attempt import StopAttempt

    call.end_within(host_limit_s(call.config, call.hook) + call.more_s)
    own = StopAttempt(call, run).decide()
    if any(step.gate.writes and not step.skip for step in run.plan.steps):
        call.forget_snapshot()
    return so_far.joined(own)
