"""Failures that were there before the agent came: they are said once, and do not count.

At its first failure in a session, a gate with `baseline = true` runs once more, on the session's
first snapshot, in a private checkout.
"""

from __future__ import annotations

import os
import zlib

from gitgates.engine.command import without_git
from gitgates.engine.failures import Failure
from gitgates.engine.run import RunOptions, run_plan
from gitgates.errors import GitgatesError
from gitgates.policies.gate_run import GateRun, LogListener, failures_of, run_gates, whole_output
from gitgates.policies.session import Baseline
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.policies.call import Call
    from gitgates.policies.session import Fact, Session
    from gitgates.types import Decision, Gate, GateResult, Step

_NO_VERDICT = {
    "timed-out": "it timed out on the session's first snapshot",
    "killed": "it was killed on the session's first snapshot",
    "not-started": "it could not be started on the session's first snapshot",
    "not-run": "there was no time left to run it on the session's first snapshot",
}
_SHOWN = 5


class BaselineFailures(Record):
    """What is known of a gate's failures from before the session."""

    failures: tuple[Failure, ...] = ()  # those that are still there
    note: str = ""  # why they count all the same
    excused: str = ""  # why nothing that the gate says counts
    told: str = ""  # the same for people, once


def suppress_baseline(
    call: Call, run: GateRun, session: Session, decision: Decision
) -> tuple[Decision, dict[str, BaselineFailures], list[Fact]]:
    """Let failures that were there before not count, and go on where they were in the way.

    Returns the decision then, what is known of each such gate, and what the journal learns.
    """
    known: dict[str, BaselineFailures] = {}
    learnt: list[Fact] = []
    while found := _next(run, decision, known):
        step, result = found
        key = _key(step.gate, session)
        before = dict(session.baselines).get(key)
        if is_first := before is None:
            before = _run_baseline(call, run, session, step)
            learnt.append(_fact(key, before))
        one = _compare(call, run, step, result, before=before)
        known[step.gate.name] = one if is_first else one._replace(told="")
        if one.excused:
            earlier = {
                at: seen._replace(excused=one.excused) if seen is result else seen
                for at, seen in decision.results
            }
            decision = run_gates(call, run, earlier)
    return decision, known, learnt


def _next(
    run: GateRun, decision: Decision, known: dict[str, BaselineFailures]
) -> tuple[Step, GateResult] | None:
    """Return the next gate that failed, and whose failures may have been there before."""
    steps = {step.gate.name: step for step in run.plan.steps}
    for visit in decision.visits:
        step, result = steps[visit.result.gate], visit.result
        if step.gate.baseline and result.status == "failed" and step.gate.name not in known:
            return step, result
    return None


def _key(gate: Gate, session: Session) -> str:
    definition = zlib.crc32(repr(gate).encode("utf-8", "replace"))
    return f"{gate.name}:{definition:08x}:{session.base}"


def _fact(key: str, found: Baseline) -> Fact:
    failures = [list(one) for one in found.failures]
    return {"what": "baseline", "definition": key, **found._asdict(), "failures": failures}


def _run_baseline(call: Call, run: GateRun, session: Session, step: Step) -> Baseline:
    """Run a gate on the session's first snapshot."""
    from gitgates.git.checkout import check_out  # cold: once a gate and session

    gate = step.gate
    if session.no_base or not session.base:
        return Baseline(gate.name, why_not=session.no_base or "there is no first snapshot")
    try:
        with check_out(call.repo, session.base, link=call.config.link) as checkout:
            there = tuple(
                path for path in step.paths if os.path.isfile(os.path.join(checkout.root_abs, path))
            )
            if step.paths and not there:
                return Baseline(gate.name)  # nothing that it looks at was there
            result = _run_in_checkout(call, run, step._replace(paths=there), checkout.repo)
    except GitgatesError as error:
        return Baseline(gate.name, why_not=error.message)
    if why_not := _NO_VERDICT.get(result.status, ""):
        return Baseline(gate.name, why_not=why_not)
    if result.status == "passed":
        return Baseline(gate.name)
    failures = failures_of(gate, result, checkout.root_abs)
    return Baseline(gate.name, tuple((one.fingerprint, one.title) for one in failures))


def _run_in_checkout(call: Call, run: GateRun, step: Step, checkout: Repo) -> GateResult:
    gate = step.gate._replace(on_pass="CONTINUE", on_fail="CONTINUE")  # noqa: S106 - an action
    alone = step._replace(gate=gate)
    plan = run.plan._replace(listed=(step.gate.name,), steps=(alone,))
    options = RunOptions(
        checkout=checkout._replace(env=without_git(call.env)),
        deadline=run.deadline,
        logs_abs=f"{run.logs_abs}/baseline",
    )
    ended = run_plan(plan, call.config, call.repo, LogListener(call), options=options)
    return ended.visits[0].result


def _compare(
    call: Call, run: GateRun, step: Step, result: GateResult, *, before: Baseline
) -> BaselineFailures:
    """Return which failures were there before, and whether that excuses all of them."""
    gate = step.gate
    if before.why_not:
        why = f"Whether it failed before this session is not known ({before.why_not}), so that "
        do = "Fix what you have caused; of the rest, say with cannot-fix that it is not yours."
        return BaselineFailures(note=f"{why}everything counts. {do}")
    was = dict(before.failures)
    now = failures_of(gate, result, call.repo.root_abs)
    old = tuple(one for one in now if one.fingerprint in was)
    if len(old) < len(now) or not old:
        return BaselineFailures(failures=old)
    if not gate.failures and (named := _mentions_session_file(result, run.plan.event.paths or ())):
        why = f"Its output was the same before this session, but it names `{named}`, which this "
        return BaselineFailures(note=f"{why}session has changed, so that it counts.")
    shown = "; ".join(one.title for one in old[:_SHOWN]) + ("; …" if len(old) > _SHOWN else "")
    text = f"not caused by this session: `{gate.name}` failed in the same way before it ({shown})"
    return BaselineFailures(
        failures=old, excused="the same failures were there before the session", told=text
    )


def _mentions_session_file(result: GateResult, paths: tuple[str, ...]) -> str:
    """Return a file of the session that an output names: there, the session may have a part."""
    output = whole_output(result)
    return next((path for path in paths if os.fsencode(path) in output), "")
