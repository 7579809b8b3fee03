"""An agent's attempt to stop: run the gates, and decide whether it may."""

from __future__ import annotations

from itertools import pairwise

from gitgates.core.errors import GitgatesError, Interrupted
from gitgates.core.types import BLOCK, STOP, WARN, Decision, Verdict
from gitgates.drivers.breaker import (
    BLOCKED,
    CANNOT_FIX,
    EXHAUSTED,
    NOT_CONVERGING,
    PASSED,
    STOPPED,
    Attempt,
    rule,
)
from gitgates.drivers.gate_run import deciding, unchecked, unpassed
from gitgates.journal.entries import (
    ANY,
    FLAKY,
    NO_RESULT,
    UNCHECKED,
    BaselineEntry,
    StopEntry,
    WarningEntry,
)
from gitgates.report.feedback import feedback, person_text, readable, stop_text, warning_text
from gitgates.store.runs import log_abs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from gitgates.core.failure import Failure
    from gitgates.core.types import Level
    from gitgates.drivers.breaker import Ruling
    from gitgates.drivers.gate_run import GateRun
    from gitgates.engine.findings.failures import FailureChanges
    from gitgates.features.gates.baseline import BaselineFailures
    from gitgates.journal.entries import Round
    from gitgates.report.feedback import EventReport, GateReport

    Statuses: TypeAlias = tuple[tuple[str, str], ...]
    FailuresByGate: TypeAlias = dict[str, tuple[Failure, ...]]
    Baselines: TypeAlias = dict[str, BaselineFailures]

_MOST_NAMED = 10  # others' files
_RETRIED = ("failed", "timed-out")
_OSCILLATING_ROUNDS = 4  # if this many counts go up and down, it is no accident
_OTHERS = (
    " A failure caused by them is not yours to fix: report it with `gitgates cannot-fix`, and "
    "name the file."
)
_LATER = 2000  # characters of the message that the agent gets with its next prompt
_TRY_AGAIN = "Fix the obstacle if you are allowed to, then end your turn again."
_END_NOW = (
    "\n\nStop working: end now, with a short report of what is done and what is not. The main "
    "conversation will be stopped as well."
)


class StopAttempt:
    """One attempt to stop, in a cycle of fixes and retries."""

    def __init__(self, run: GateRun) -> None:
        call = self._call = run.call
        payload = call.payload
        self._run = run
        self._session = call.session
        self._tree = call.tree  # the tree that gates will see; empty: not known for certain
        self._notes: list[str] = []  # on what was not done
        self.decision: Decision | None = None  # the gates', once they have run
        self._given_up = self._earlier_reasons() | self._session.reasons_not_to_fix(call.prompt)
        self._rounds = self._session.rounds_of(
            payload.event, payload.agent.id, call.prompt, run.listed
        )
        self._blocked = [round_ for round_ in self._rounds if round_.outcome == BLOCKED]
        if self._rounds and not call.by_hand and (first := self._rounds[0].run):
            run.run_abs = first  # all attempts of a cycle are in one folder
            run.logs_abs = f"{first}/logs/attempt-{len(self._rounds) + 1}"
        same = [each for each in self._rounds if self._tree and each.tree == self._tree]
        ends = {gate: status for each in same for gate, status in each.statuses}
        run.failed = {gate: status for gate, status in ends.items() if status in _RETRIED}

    def decide(self) -> Verdict:
        """Return the verdict of the gates; they run unless they passed on the same content."""
        run, call = self._run, self._call
        if self._has_passed():
            call.explanations["gates"] = self._earlier_result()
            return Verdict()
        if call.is_dry:
            return Verdict()
        try:
            decision = run.run()
        except Interrupted:
            raise
        except GitgatesError as error:
            return self._could_not_run(str(error))
        if any(visit.result.changed_paths for visit in decision.visits):
            self._tree = ""  # not all gates have seen the current content
        baselines: Baselines = {}
        learnt: list[BaselineEntry] = []
        if any(gate.measures.baseline for gate in run.gates.values()):
            from gitgates.features.gates.baseline import suppress_baseline

            decision, baselines, learnt = suppress_baseline(run, self._session, decision)
        found = self._failures(decision)
        if self._tree:  # else the content has changed meanwhile
            excused = {gate: before.failures for gate, before in baselines.items()}
            run.record(decision, self._tree, excused | found)
        self.decision = decision
        failures = {
            gate: tuple(
                failure
                for failure in found[gate]
                if gate not in baselines or failure not in baselines[gate].failures
            )
            for gate in found
        }
        statuses = deciding(decision)
        ruling = self._rule(decision.verdict, statuses, failures)
        report = self._report(decision, failures, baselines)
        others = self._note_of_others() if failures else ""
        if others and ruling.outcome == BLOCKED:
            others += _OTHERS
        notes = (*report.notes, *self._notes, *filter(None, (call.changed_files.note, others)))
        verdict = self._verdict(ruling, report._replace(notes=notes))
        verdict = verdict._replace(entries=(*learnt, *verdict.entries))
        return self._keep(ruling, verdict, decision, statuses, failures=failures, notes=notes)

    def _earlier_reasons(self) -> dict[str, str]:
        """Return gate → why it could not be fixed in an earlier turn, on the same content."""
        last = next(reversed(self._same_gates()), None)
        if last is None or (last.outcome, last.tree) != (CANNOT_FIX, self._tree):
            return {}
        reasons = self._session.reasons_not_to_fix(last.prompt)
        return {gate: reasons[gate] for gate in reasons if gate != ANY}

    def _has_passed(self) -> bool:
        """Return whether the gates' last run passed on the same content.

        So a question after the work is done does not run everything again.
        """
        rounds = self._same_gates()
        if rounds and FLAKY in dict(rounds[-1].statuses).values():
            return False
        passed = (PASSED, self._tree, self._run.config)
        return bool(self._tree and rounds) and passed == (
            rounds[-1].outcome,
            rounds[-1].tree,
            rounds[-1].config,
        )

    def _same_gates(self) -> list[Round]:
        payload = self._call.payload
        key = (payload.event, payload.agent.id, self._run.listed)
        return [
            round_
            for round_ in self._session.rounds
            if (round_.hook, round_.agent, round_.gates) == key
        ]

    def _earlier_result(self) -> str:
        """Return how gates ended on the same content, for people."""
        idle = [gate for gate, status in self._same_gates()[-1].statuses if status == UNCHECKED]
        but = f", except `{'`, `'.join(idle)}`, which checked nothing" if idle else ""
        return f"they passed on the same content{but}"

    def _could_not_run(self, why: str) -> Verdict:
        """Return the verdict if gates could not run, which blocks once."""
        statuses = (("all gates", "not-started"),)
        ruling = self._rule(BLOCK, statuses, {})
        text = f"The gates could not run, so nothing was checked: {why}"
        if ruling.outcome == BLOCKED:
            verdict = Verdict(BLOCK, to_agent=f"{text}\n\n{_TRY_AGAIN}")
        else:
            verdict = self._allow_stop(f"gitgates let the agent stop {ruling.how}. {text}")
        return self._keep(ruling, verdict, Decision(BLOCK, reason=why), statuses)

    def _rule(self, level: Level, statuses: Statuses, failures: FailuresByGate) -> Ruling:
        call = self._call
        marks = frozenset(
            f"{gate}:{failure.fingerprint}" for gate in failures for failure in failures[gate]
        )
        attempt = Attempt(
            prompt=call.prompt,
            agent=call.payload.agent.id,
            gates=self._run.listed,
            verdict=level,
            deciding=statuses,
            diverges=does_not_converge(
                (*(round_.fingerprints() for round_ in self._rounds), marks)
            ),
            given_up=self._given_up,
            waits=any(
                (task.kind, task.status) == ("shell", "running")
                for task in call.payload.ending.background
            ),
        )
        most = call.config.breaker
        return rule(self._session, attempt, call.hook, blocks=call.blocks, breaker=most)

    def _keep(
        self,
        ruling: Ruling,
        verdict: Verdict,
        decision: Decision,
        statuses: Statuses,
        *,
        failures: FailuresByGate | None = None,
        notes: tuple[str, ...] = (),
    ) -> Verdict:
        """Save the attempt; return the verdict with the round for the journal."""
        is_warning = ruling.outcome == PASSED and ruling.verdict == WARN
        self._run.save(
            decision,
            verdict.to_agent,
            verdict="warned" if is_warning else ruling.outcome,
            tree=self._tree,
            cannot_fix=tuple(pair for pair in self._given_up.items() if pair[0] != ANY),
            notes=notes,
        )
        if ruling.outcome == PASSED:
            statuses = (*statuses, *unchecked(decision))
        entry = self._run.entry(ruling.outcome, statuses)
        marks = tuple(
            (gate, tuple(failure[:2] for failure in found))
            for gate, found in (failures or {}).items()
        )
        entry = entry._replace(tree=self._tree, failures=marks)
        return verdict._replace(entries=(entry, *verdict.entries))

    def _note_of_others(self) -> str:
        """Return a note on files that somebody else has changed; empty if there are none."""
        from gitgates.drivers.writers import changed_by_others  # only if gates failed

        call, event = self._call, self._run.plan.event
        try:
            changed = sorted(
                {*(event.paths or ()), *event.deleted}.intersection(changed_by_others(call))
            )
        except GitgatesError as error:
            call.say(str(error))
            return ""
        if not changed:
            return ""
        from gitgates.core.clean import first_few

        files = first_few(changed, _MOST_NAMED)
        return f"These files were changed by somebody else in the meantime: {files}."

    def _failures(self, decision: Decision) -> FailuresByGate:
        """Return each gate's failures, including those from before the session."""
        failures = {}
        for result in (visit.result for visit in unpassed(decision)):
            if result.status not in ("passed", "skipped", FLAKY, UNCHECKED, *NO_RESULT):
                from gitgates.engine.findings.failures import failures_of  # only if gates failed

                gate = self._run.gates[result.gate]
                root_abs = self._call.repo.root_abs
                failures[result.gate] = failures_of(gate, result, root_abs, self._notes.append)
        return failures

    def _report(
        self, decision: Decision, failures: FailuresByGate, baselines: Baselines
    ) -> EventReport:
        """Return the report, with the changes since the last attempt."""
        report = self._run.report(decision)
        findings = tuple(self._finding(finding, failures, baselines) for finding in report.findings)
        notes = tuple(
            baseline.person_note for baseline in baselines.values() if baseline.person_note
        )
        return report._replace(findings=findings, notes=(*report.notes, *notes))

    def _finding(
        self, finding: GateReport, failures: FailuresByGate, baselines: Baselines
    ) -> GateReport:
        gate = finding.result.gate
        now, caused = failures.get(gate, ()), False
        finding = finding._replace(cannot_fix=self._given_up.get(gate, ""))
        if before := baselines.get(gate):
            finding = finding._replace(preexisting=before.failures, note=before.note)
            caused = bool(before.failures)
        if not (now and self._blocked):
            return finding._replace(caused=now if caused else ())
        change, since = self._since_last(gate, now)
        return finding._replace(change=change, since=since, earlier=self._earlier_lines(gate))

    def _since_last(
        self, gate: str, now: tuple[Failure, ...]
    ) -> tuple[FailureChanges, tuple[tuple[str, int], ...]]:
        """Compare with the last attempt; return the changes, and each failure's first attempt."""
        from gitgates.core.failure import Failure  # only if gates failed
        from gitgates.engine.findings.failures import compare_failures

        since: dict[str, int] = {}
        before: tuple[Failure, ...] = ()
        for number, round_ in enumerate(self._blocked, 1):
            before = tuple(Failure(*each) for each in dict(round_.failures).get(gate, ()))
            since = {each.fingerprint: since.get(each.fingerprint, number) for each in before}
        return compare_failures(before, now), tuple(since.items())

    def _earlier_lines(self, gate: str) -> frozenset[str]:
        """Return the lines of a gate's outputs in earlier attempts, normalised."""
        from gitgates.engine.findings.failures import read_gate_log  # only if gates failed
        from gitgates.engine.findings.normalise import normalise

        lines: set[str] = set()
        for number, round_ in enumerate(self._rounds, 1):
            folder = f"{round_.run}/logs/attempt-{number}" if number > 1 else f"{round_.run}/logs"
            if output := read_gate_log(log_abs(folder, gate, 0)):
                lines.update(normalise("\n".join(readable(output))).split("\n"))
        return frozenset(lines)

    def _verdict(self, ruling: Ruling, report: EventReport) -> Verdict:
        observed = "\n".join(f"gitgates: {line}" for line in report.observed)
        if ruling.outcome == PASSED:
            is_warning = ruling.verdict == WARN
            later: tuple[WarningEntry, ...] = ()
            if is_warning or report.changed_paths:
                later = (self._warning(feedback(report._replace(leads_to=WARN), _LATER)),)
            if is_warning:
                return Verdict(WARN, to_person=warning_text(report), entries=later)
            lines = "\n".join(f"gitgates: {line}" for line in (*report.observed, *report.notes))
            return Verdict(to_person=lines, entries=later)
        if ruling.outcome == BLOCKED:
            report = report._replace(attempt=ruling.attempt, attempts=self._call.hook.attempts)
            return Verdict(BLOCK, to_agent=feedback(report), to_person=observed)
        if ruling.verdict == STOP:
            report = report._replace(leads_to=STOP)
            is_asked = ruling.outcome == STOPPED  # a gate wants the agent stopped
            text = stop_text(report) if is_asked else person_text(report, ruling.how)
            return self._stop(feedback(report, _LATER), text)
        return self._allow_stop(person_text(report, ruling.how) + f" Report: {self._run.run_abs}")

    def _allow_stop(self, text: str) -> Verdict:
        return Verdict(WARN, to_person=text, entries=(self._warning(text),))

    def _warning(self, text: str) -> WarningEntry:
        return WarningEntry(self._call.payload.event, text)

    def _stop(self, reason: str, text: str) -> Verdict:
        """Return the verdict that ends work: `text` for the person, `reason` for a sub-agent."""
        if self._call.payload.kind == "turn-end":
            return Verdict(STOP, to_agent=text, to_person=text)
        if any(round_.outcome in (STOPPED, EXHAUSTED, NOT_CONVERGING) for round_ in self._rounds):
            return Verdict()  # it has the message; nothing more can end it
        stop = StopEntry(text)
        return Verdict(BLOCK, reason + _END_NOW, to_person=text, entries=(stop,))


def does_not_converge(rounds: tuple[frozenset[str], ...]) -> str:
    """Return why attempts do not converge, or "". `rounds`: fingerprints, oldest first.

    A set that stays the same does not count here: those retries are limited elsewhere.
    """
    if len(rounds) > 1 and rounds[-1] and rounds[-1] != rounds[-2] and rounds[-1] in rounds[:-2]:
        return "the same failures recurred"
    counts = [len(failed) for failed in rounds[-_OSCILLATING_ROUNDS:]]
    steps = [after - before for before, after in pairwise(counts)]
    turns = [step * next_step < 0 for step, next_step in pairwise(steps)]
    if len(counts) == _OSCILLATING_ROUNDS and all(turns):
        return "the number of failures oscillates"
    return ""
