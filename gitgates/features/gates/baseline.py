"""The baseline: failures from before the session are reported once, and do not count.

At its first failure in a session, a gate with `baseline = true` runs once more, on the session's
first snapshot, in a private checkout, unless that result is already known.
"""

from __future__ import annotations

import os

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.engine.findings.baseline import failures_in, recorded_failures
from gitgates.engine.plan.plan import is_given_paths, takes_paths
from gitgates.engine.run.job import RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.journal.entries import Baseline, BaselineEntry
from gitgates.store.proofs import definition_of, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.failure import Failure
    from gitgates.core.types import Decision, Gate, GateResult, Step
    from gitgates.drivers.gate_run import GateRun
    from gitgates.git.repo import Repo
    from gitgates.journal.entries import Session

_NO_VERDICT = {
    "timed-out": "it timed out",
    "killed": "it was killed",
    "not-started": "it could not be started",
    "unchecked": "it had nothing to check",
    "not-run": "no time was left to run it",
}
_SHOWN = 5


class BaselineFailures(Record):
    """A gate's failures from before the session."""

    failures: tuple[Failure, ...] = ()  # those that still exist
    note: str = ""  # why they count anyway
    excused: str = ""  # why the gate's result does not count
    person_note: str = ""  # the same for people, only in the first report


def suppress_baseline(
    run: GateRun, session: Session, decision: Decision
) -> tuple[Decision, dict[str, BaselineFailures], list[BaselineEntry]]:
    """Suppress failures from before the session, and run the gates that these had blocked.

    Return the resulting decision, the suppressed failures by gate, and new journal entries.
    """
    baselines: dict[str, BaselineFailures] = {}
    learnt: list[BaselineEntry] = []
    while result := _next(run, decision, baselines):
        gate = run.gates[result.gate]
        now = failures_in(gate, result, run.call.repo.root_abs, run.call.env)
        if isinstance(now, str):
            note = f"Its failures from before this session count, too: {now}."
            baselines[gate.name] = BaselineFailures(note=note)
            continue
        tree = session.beginning.tree
        key = f"{gate.name}:{definition_of(gate)}:{tree}{_paths_digest(run, gate)}"
        before = session.baselines.get(key)
        if gate.measures.baseline == "file":
            before = Baseline(gate.name)
        is_first = before is None
        if before is None:
            before = _recorded(run, session, gate) or _run_baseline(run, session, gate.name)
            learnt.append(BaselineEntry(definition=key, **before._asdict()))
        compared = _compare(result, now, before)
        baselines[gate.name] = compared if is_first else compared._replace(person_note="")
        if compared.excused:
            accepted = tuple(failure.fingerprint for failure in compared.failures)
            excused = result.with_findings(excused=compared.excused, accepted=accepted)
            earlier = {at: excused if other is result else other for at, other in decision.results}
            decision = run.run(earlier)
    return decision, baselines, learnt


def _next(
    run: GateRun, decision: Decision, baselines: dict[str, BaselineFailures]
) -> GateResult | None:
    """Return the next failed gate whose failures may be in the baseline."""
    for result in (visit.result for visit in decision.visits):
        is_new = result.status == "failed" and result.gate not in baselines
        if is_new and not result.findings.excused and run.gates[result.gate].measures.baseline:
            return result
    return None


def _paths_digest(run: GateRun, gate: Gate) -> str:
    """Return a digest of the paths, for a gate that can fail only on the paths given to it."""
    step = next(step for step in run.plan.steps if step.gate.name == gate.name)
    return f":{digest(*step.paths)}" if is_given_paths(gate) else ""


def _recorded(run: GateRun, session: Session, gate: Gate) -> Baseline | None:
    """Return how the same gate ended on the session's first snapshot, at any time.

    None if that is unknown, as it is for a gate that takes paths: its earlier paths are unknown.
    """
    if not session.beginning.tree or takes_paths(gate):
        return None
    failures = recorded_failures(gate, run.call.repo, session.beginning.tree)
    return None if failures is None else Baseline(gate.name, failures)


def _run_baseline(run: GateRun, session: Session, name: str) -> Baseline:
    """Run a gate on the session's first snapshot."""
    from gitgates.worktree.checkouts import check_out  # cold: once per gate and session
    from gitgates.worktree.setup import worktree_settings

    call, step = run.call, next(step for step in run.plan.steps if step.gate.name == name)
    if session.beginning.why_not or not session.beginning.tree:
        return Baseline(name, why_not=session.beginning.why_not or "first snapshot not found")
    try:
        settings = worktree_settings(call.config)
        left_s = run.deadline.left_s()
        with check_out(
            call.repo, session.beginning.tree, settings, call.say, limit_s=left_s
        ) as checkout:
            paths = tuple(
                path for path in step.paths if os.path.isfile(os.path.join(checkout.root_abs, path))
            )
            if step.paths and not paths:
                return Baseline(name)  # none of its files existed
            decision = _run_in_checkout(run, step._replace(paths=paths), checkout.repo)
    except GitgatesError as error:
        return Baseline(name, why_not=error.message)
    result = decision.visits[0].result
    if why_not := _NO_VERDICT.get(result.status):
        return Baseline(name, why_not=f"{why_not} on the session's first snapshot")
    passed = result.status == "passed"
    failures = () if passed else failures_in(step.gate, result, checkout.root_abs, call.env)
    if isinstance(failures, str):
        return Baseline(name, why_not=f"on the session's first snapshot, {failures}")
    if not takes_paths(step.gate):
        run.record(decision, session.beginning.tree, {name: failures})
    return Baseline(name, tuple(failure[:2] for failure in failures))


def _run_in_checkout(run: GateRun, step: Step, checkout: Repo) -> Decision:
    gate = step.gate.changed(on_pass="CONTINUE", on_fail="CONTINUE")  # noqa: S106 - an action
    plan = run.plan._replace(listed=(gate.name,), steps=(step._replace(gate=gate),))
    options = RunOptions(
        checkout=checkout,
        deadline=run.deadline,
        logs_abs=f"{run.logs_abs}/baseline",
    )
    return run_plan(plan, run.call.config, run.call.repo, run, options=options)


def _compare(result: GateResult, now: tuple[Failure, ...], before: Baseline) -> BaselineFailures:
    """Return the failures that are in the baseline, and whether all are."""
    if before.why_not:
        why = f"It is not known whether it failed before this session ({before.why_not}), so "
        do = "Fix what you have caused; report the rest with cannot-fix as not yours."
        return BaselineFailures(note=f"{why}everything counts. {do}")
    earlier = {*dict(before.failures), *result.findings.accepted}
    old = tuple(failure for failure in now if failure.fingerprint in earlier)
    if len(old) < len(now):
        return BaselineFailures(failures=old)
    titles = "; ".join(failure.title for failure in old[:_SHOWN])
    titles += "; …" if len(old) > _SHOWN else ""
    text = (
        f"not caused by this session: `{result.gate}` failed in the same way before it ({titles})"
    )
    return BaselineFailures(
        failures=old, excused="the same failures existed before the session", person_note=text
    )
