"""Run gates at an agent's event, and report and save their results."""

from __future__ import annotations

import shlex
import time

from gitgates.core.environ import skipped_gates
from gitgates.core.lifecycle import GATES_OWN_TIME, RETRIED
from gitgates.core.types import WARN
from gitgates.drivers.recorder import observe_if_recorded, record_gates
from gitgates.engine.plan.hooks import gates_limit_s
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import takes_paths
from gitgates.engine.plan.walk import CANCELLED, describe, is_waiting, observed, unchecked_gates
from gitgates.engine.run.job import Deadline, RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.journal.entries import FLAKY, NO_RESULT, UNCHECKED, WAITING, RoundEntry
from gitgates.report.artifacts import save
from gitgates.report.feedback import EventReport, GateReport
from gitgates.report.result import AttemptReport, outcome_of
from gitgates.store.runs import new_run
from gitgates.worktree.gc import collect_if_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.failure import Failure
    from gitgates.core.types import Config, Decision, Gate, GateResult, Plan, Visit
    from gitgates.drivers.call import Call

_NO_PASS = ("failed", "timed-out", "killed", *NO_RESULT)
_OWN_FIRST_S = 2.0


class GateRun(Listener):
    """The gates of an event, and the folder of their run.

    What a person should know at once goes to the host's log: there is no person.
    """

    def __init__(self, call: Call, plan: Plan, settings: Config | None = None) -> None:
        hook = plan.hook
        self.call, self.plan, self.settings = call, plan, settings or call.config
        self.gates = {step.gate.name: step.gate for step in plan.steps}
        self.listed = ", ".join(plan.listed)  # the same gates are one cycle of fix and retry
        # The configuration, and what the environment leaves out of it.
        self.config = " ".join((plan.config_digest, *sorted(skipped_gates(call.env))))
        self.run_abs = call.run_abs or new_run(call.repo.state_abs)
        self.logs_abs = f"{self.run_abs}/logs"
        self.began_s = time.time()
        limit_s = gates_limit_s(self.settings, hook)
        # If it is the sum of the gates' own limits, those must be met first, and named.
        is_sum = call.payload.kind in GATES_OWN_TIME and not hook.timeout_s
        until = time.monotonic() + limit_s + (_OWN_FIRST_S if is_sum else 0.0)
        self.deadline = Deadline(until, limit_s, is_extended=not call.has_limit)
        self.notes: list[str] = []  # on results
        self.failed: Mapping[str, str] = {}  # gate → how it ended on the same content before

    def message(self, text: str) -> None:
        """Pass on a message for the person."""
        self.call.say(text)

    def note(self, text: str) -> None:
        """Keep a remark for the report."""
        self.notes.append(text)

    def run(self, earlier: Mapping[tuple[str, int], GateResult] | None = None) -> Decision:
        """Run the gates; results in `earlier` are kept. What they write is theirs.

        Raises: GitgatesError for each expected failure.
        """
        options = RunOptions(
            deadline=self.deadline,
            logs_abs=self.logs_abs,
            earlier=earlier or {},
            since_ns=self._since_ns(),
            failed=self.failed,
        )
        call, listener = self.call, self.call.listener or self
        if call.kind in RETRIED and not call.by_hand:
            observe_if_recorded(call, always=True)
        decision = run_plan(self.plan, self.settings, call.repo, listener, options=options)
        ran = {visit.result.gate for visit in decision.visits if visit.result.duration_s}
        if call.by_hand:  # within a command, whose changes are the agent's
            return decision
        if names := [
            gate.name for gate in self.gates.values() if gate.program.writes and gate.name in ran
        ]:
            record_gates(call, names)
        return decision

    def _since_ns(self) -> int:
        """Return since when the session waits for its turn, by the monotonic clock; 0: not yet."""
        payload, since_s = self.call.payload, 0.0
        key = (payload.event, payload.agent.id, self.call.prompt, self.listed)
        for round_ in self.call.session.rounds_of(*key):
            waits = WAITING in dict(round_.statuses).values()
            since_s = (since_s or round_.stamp) if waits else 0.0
        return max(time.monotonic_ns() - int((time.time() - since_s) * 1e9), 1) if since_s else 0

    def entry(self, outcome: str, statuses: tuple[tuple[str, str], ...]) -> RoundEntry:
        """Return the journal entry of the run."""
        return self.call.round(
            self.listed, outcome, statuses=statuses, run=self.run_abs, config=self.config
        )

    def save(self, decision: Decision, to_agent: str, **overrides: Any) -> None:  # noqa: ANN401 - fields
        """Save the results of the run, and prune old runs from time to time.

        `overrides`: fields of the AttemptReport that differ from those of the gates alone.
        """
        call, payload, config = self.call, self.call.payload, self.call.config
        call.decision = decision
        fields = {
            "hook": payload.event,
            "host": payload.host,
            "root": call.repo.root_abs,
            "timestamp_s": self.began_s,
            "duration_s": max(time.time() - self.began_s, 0.0),
            "decision": decision,
            "verdict": outcome_of(decision),
            "session": payload.session,
            "agent": payload.agent.type,
            "agent_fixes": payload.ending.message,
            "fed_back_bytes": len(to_agent.encode("utf-8", "replace")),
        }
        notes = save(
            AttemptReport(**{**fields, **overrides}),
            self.run_abs,
            max_retries=call.hook.max_retries if payload.kind in RETRIED else 0,
            artifacts_dir=config.artifacts_dir,
            keep_runs=config.keep_runs,
        )
        for text in notes:
            call.note(text)
        collect_if_due(call.repo, config)

    def record(
        self, decision: Decision, tree: str, failures: Mapping[str, tuple[Failure, ...]]
    ) -> None:
        """Record how the gates have ended on a tree. `failures`: all of a gate, by its name."""
        from gitgates.store.proofs import append, proof_of  # only if gates ran

        call = self.call
        results = {visit.result.gate: visit.result for visit in decision.visits}
        proofs = [
            proof_of(
                self.gates[name],
                result,
                content=tree,
                hook=call.payload.event,
                root_abs=call.repo.root_abs,
                base=call.session.beginning.tree if takes_paths(self.gates[name]) else "",
                failures=failures.get(name, ()),
            )
            for name, result in results.items()
            if result.status in ("passed", "failed", FLAKY)
        ]
        try:
            append(call.repo.shared_state_abs, proofs)
        except OSError as error:
            call.say(f"the results were not recorded for later runs: {error.strerror}")

    def report(self, decision: Decision) -> EventReport:
        """Return the report on a decision."""
        call = self.call
        report = event_report(
            decision, self.plan, root_abs=call.repo.root_abs, notes=tuple(dict.fromkeys(self.notes))
        )
        return report._replace(hook=call.payload.event, elsewhere=call.is_elsewhere)


def event_report(
    decision: Decision, plan: Plan, *, root_abs: str, notes: tuple[str, ...] = ()
) -> EventReport:
    """Return the report on a decision about a plan's gates."""
    gates = {step.gate.name: step.gate for step in plan.steps}
    visits = decision.visits
    met = {visit.result.gate for visit in visits}
    why = (
        f"the list ended at `{decision.decided_by}`"
        if decision.decided_by
        else "the run ended before"
    )
    findings = tuple(
        GateReport(
            result=visit.result,
            description=gates[visit.result.gate].description,
            command=_command_of(gates[visit.result.gate]),
        )
        for visit in unpassed(decision)
    )
    cancelled = (visit.result for visit in visits if visit.result.reason == CANCELLED)
    passed = (visit.result.gate for visit in visits if visit.result.status == "passed")
    return EventReport(
        hook=plan.event.name,
        root_abs=root_abs,
        attempt=0,
        attempts=0,
        findings=findings,
        passed=tuple(dict.fromkeys(passed)),
        not_run=(
            *((result.gate, result.reason) for result in cancelled),
            *((name, why) for name in decision.not_run if name not in met),
        ),
        observed=observed(visits),
        notes=(
            *(
                f"`{v.result.gate}` {describe(v.result)}, but `{v.rescued_by}` fixed it."
                for v in visits
                if v.rescued_by
            ),
            *notes,
        ),
        # Under the agent; or somebody else did it while they ran.
        changed_paths=tuple(sorted({p for v in visits for p in v.result.changed_paths})),
    )


def unpassed(decision: Decision) -> list[Visit]:
    """Return the visits to report, the deciding ones first."""
    visits = [
        visit
        for visit in decision.visits
        if not visit.would
        and not visit.result.findings.excused
        and not visit.rescued_by
        and visit.result.reason != CANCELLED
        and (visit.verdict >= WARN or visit.result.status in _NO_PASS)
    ]
    return sorted(visits, key=lambda visit: -visit.verdict)


def deciding(decision: Decision) -> tuple[tuple[str, str], ...]:
    """Return gate and status of each visit that caused the decision."""
    return tuple(
        dict.fromkeys(
            (visit.result.gate, WAITING if is_waiting(visit.result) else visit.result.status)
            for visit in decision.visits
            if visit.verdict == decision.verdict and visit.action in ("BLOCK", "STOP")
        )
    )


def unchecked(decision: Decision) -> tuple[tuple[str, str], ...]:
    """Return gate and status of each gate that had nothing to check, or is flaky."""
    flaky = [visit.result.gate for visit in decision.visits if visit.result.status == FLAKY]
    idle = [(gate, UNCHECKED) for gate in unchecked_gates(decision)]
    return (*idle, *((gate, FLAKY) for gate in dict.fromkeys(flaky)))


def _command_of(gate: Gate) -> str:
    return (
        gate.program.command
        if isinstance(gate.program.command, str)
        else shlex.join(gate.program.command or ())
    )
