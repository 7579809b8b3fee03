"""One try of an agent at stopping: what its gates say, and what that leads to."""

from __future__ import annotations

import os
import time

from gitgates.engine.failures import Failure, compare, does_not_converge
from gitgates.errors import GitgatesError, Interrupted
from gitgates.hosts import agent_host
from gitgates.policies.baseline import BaselineFailures, suppress_baseline
from gitgates.policies.breaker import BLOCKED, PASSED
from gitgates.policies.gate_run import (
    attempt_of,
    changed_by_gates,
    deciding,
    definition,
    earlier_lines,
    event_report,
    failures_of,
    gate_set_key,
    logs_of,
    round_entry,
    run_gates,
    save_attempt,
    unpassed,
)
from gitgates.policies.retry_rule import EXHAUSTED, NOT_CONVERGING, STOPPED, Limits, Try, rule
from gitgates.policies.session import NO_RESULT
from gitgates.report.feedback import (
    EventReport,
    GateReport,
    feedback,
    person_text,
    stop_text,
    warning_text,
)
from gitgates.store.files import length_of, read_tail
from gitgates.types import BLOCK, STOP, WARN, Decision, GateResult, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from gitgates.engine.failures import Change
    from gitgates.policies.call import Call
    from gitgates.policies.gate_run import GateRun
    from gitgates.policies.retry_rule import Ruling
    from gitgates.policies.session import Fact, Round
    from gitgates.types import Level

    Found: TypeAlias = dict[str, tuple[Failure, ...]]
    Known: TypeAlias = dict[str, BaselineFailures]
    Since: TypeAlias = tuple[tuple[str, int], ...]

_MOST_NAMED = 10  # files of others
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_CLOCK_S = 0.01  # by which a file's time may lag behind the clock
_OTHERS = (
    " A failure that comes from there is theirs to mend: say so with `gitgates cannot-fix`, and "
    "name the file."
)
_LATER = 2000  # characters of what the agent is told with the next prompt
_AS_BEFORE = Decision(BLOCK, reason="nothing has happened since the attempt before")
_ALL_GATES = "all gates"
_TRY_AGAIN = "Put right what is in the way if you may, then end your turn again."
_END_NOW = (
    "\n\nDo no more work: end now, with a short report of what is done and what is not. The main "
    "conversation will be stopped, too."
)


class StopAttempt:
    """One try at stopping."""

    def __init__(self, call: Call, run: GateRun) -> None:
        self._call = call
        self._session = call.whole_session
        self._tree = call.tree  # that the gates will see; empty: not known for certain
        payload = call.payload
        self._rounds = self._session.rounds_of(
            payload.event, payload.agent_id, call.prompt, gate_set_key(run)
        )
        self._blocked = [one for one in self._rounds if one.outcome == BLOCKED]
        self._run = self._in_folder_of_cycle(run)

    def _in_folder_of_cycle(self, run: GateRun) -> GateRun:
        """Have all attempts of one cycle in one folder."""
        first = self._rounds[0].run if self._rounds else ""
        number = len(self._rounds) + 1
        if not first:
            return run
        return run._replace(run_abs=first, logs_abs=f"{first}/logs/attempt-{number}")

    def decide(self) -> Verdict:
        """Return what the gates lead to; they run only where something has happened since."""
        if self._has_passed():
            return Verdict()
        if last := self._reusable_round():
            return self._repeat_result(last)
        return self._run_gates()

    def _reusable_round(self) -> Round | None:
        """Return the round whose result stands, because nothing has happened since."""
        last = self._rounds[-1] if self._rounds else None
        if last is None or last.outcome != BLOCKED or last.key != self._call.last_before:
            return None
        if self._session.reasons_not_to_fix(self._call.prompt):
            return None  # a command of ours, of which no event tells
        return last if self._is_as_it_was(last) else None

    def _has_passed(self) -> bool:
        """Return whether the gates passed the last time that they ran, and it was on this content.

        A question after the work is done need not run everything again, whatever tools it took.
        """
        payload, gates = self._call.payload, gate_set_key(self._run)
        rounds = [
            one
            for one in self._session.rounds
            if (one.hook, one.agent, one.gates) == (payload.event, payload.agent_id, gates)
        ]
        return bool(rounds) and rounds[-1].outcome == PASSED and self._is_same_content(rounds[-1])

    def _is_as_it_was(self, one: Round) -> bool:
        """Return whether everything is as it was when this round ran, as far as can be known."""
        return self._is_same_content(one) and not self._tools_were_used(one.transcript)

    def _is_same_content(self, one: Round) -> bool:
        """Return whether a round ran with the same definitions on provably equal content."""
        is_same = one.tree == self._tree != ""
        return is_same and one.config == definition(self._call, self._run)

    def _tools_were_used(self, since: int) -> bool:
        """Return whether the transcript shows a tool call since; if there is none, it does not.

        We hear of a tool call ourselves only where the configuration asks for it.
        """
        payload = self._call.payload
        since_then = read_tail(payload.transcript_abs, since)
        if since_then is None or since < 0:
            return since_then is not None
        calls_in = agent_host(payload.host).calls_in
        calls = (call for line in since_then.split(b"\n") for call in calls_in(line))
        return any(not call.is_result for call in calls)

    def _repeat_result(self, last: Round) -> Verdict:
        """Return the earlier result once more; it counts as an attempt."""
        ruling = self._rule(BLOCK, last.statuses, last.fingerprints())
        failures = [[gate, list(found)] for gate, found in last.failures]
        entry = self._entry(ruling, last.statuses) | {"failures": failures}
        said = self._report_of(last, ruling)
        if ruling.outcome == BLOCKED:
            verdict = Verdict(BLOCK, to_agent=feedback(said))
            self._save(verdict, ruling, _AS_BEFORE)
            return verdict._replace(entries=(entry,))
        names = ", ".join(f"`{gate}` ({status})" for gate, status in last.statuses)
        went = "stopped" if ruling.verdict == STOP else "let go"
        text = f"gitgates: {names}: the agent was {went} {ruling.how}. Report: {last.run}"
        if ruling.verdict == STOP:
            verdict = self._stop(feedback(said._replace(leads_to=STOP), _LATER), text)
        else:
            verdict = Verdict(WARN, to_person=text, entries=(self._warning(text),))
        self._save(verdict, ruling, _AS_BEFORE)
        return verdict._replace(entries=(entry, *verdict.entries))

    def _run_gates(self) -> Verdict:
        """Run the gates; return what that leads to."""
        try:
            decision = run_gates(self._call, self._run)
        except Interrupted:
            raise
        except GitgatesError as error:
            return self._could_not_run(str(error))
        if changed_by_gates(decision):
            self._tree = ""  # not all gates have seen what is there now
        decision, known, learnt = suppress_baseline(self._call, self._run, self._session, decision)
        found = self._failures(decision, known)
        marks = frozenset(
            f"{gate}:{failure.fingerprint}" for gate, each in found.items() for failure in each
        )
        asked = deciding(decision)
        ruling = self._rule(decision.verdict, asked, marks)
        said = self._report(decision, found, known)
        others = self._note_of_others() if found else ""
        if others and ruling.outcome == BLOCKED:
            others += _OTHERS
        notes = (self._call.changes.note, others)
        said = said._replace(notes=(*said.notes, *filter(None, notes)))
        verdict = self._verdict(ruling, said)
        self._save(verdict, ruling, decision, said.notes)
        failures = [
            [gate, [[one.fingerprint, one.title] for one in each]] for gate, each in found.items()
        ]
        entry = self._entry(ruling, asked) | {"failures": failures}
        return verdict._replace(entries=(entry, *learnt, *verdict.entries))

    def _note_of_others(self) -> str:
        """Return which of the files that differ somebody else has changed; empty for none known."""
        from gitgates.policies.authorship import changed_by_others  # only where gates failed

        call, event = self._call, self._run.plan.event
        try:
            others = changed_by_others(call)
            new = set(call.repo.git.names(*_UNTRACKED)) if others else set()
        except GitgatesError as error:
            call.say(str(error))
            return ""
        both = {*(event.paths or ()), *event.gone}.intersection(others)
        named = sorted(p for p in both if not (p in new and self._was_written_by_gates(p)))
        if not named:
            return ""
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        some = ", ".join(named[:_MOST_NAMED])
        return f"These files were changed by somebody else meanwhile: {some}{more}."

    def _was_written_by_gates(self, path: str) -> bool:
        """Return whether a file that git does not know was last written while gates ran."""
        try:
            written_s = os.lstat(f"{self._call.repo.root_abs}/{path}").st_mtime
        except OSError:
            return False
        runs = [(one.began, one.stamp) for one in self._session.rounds if one.began]
        runs.append((self._run.began_s, time.time()))
        return any(began - _CLOCK_S <= written_s <= ended for began, ended in runs)

    def _could_not_run(self, why: str) -> Verdict:
        """Return what comes of gates that could not run at all: that blocks once."""
        asked = ((_ALL_GATES, "not-started"),)
        ruling = self._rule(BLOCK, asked, frozenset())
        text = f"The gates could not run, so that nothing was checked: {why}"
        if ruling.outcome == BLOCKED:
            verdict = Verdict(BLOCK, to_agent=f"{text}\n\n{_TRY_AGAIN}")
        else:
            said = f"gitgates let the agent go {ruling.how}. {text}"
            verdict = Verdict(WARN, to_person=said, entries=(self._warning(text),))
        self._save(verdict, ruling, Decision(BLOCK, reason=why))
        return verdict._replace(entries=(self._entry(ruling, asked), *verdict.entries))

    def _save(
        self, verdict: Verdict, ruling: Ruling, decision: Decision, notes: tuple[str, ...] = ()
    ) -> None:
        is_warning = ruling.outcome == PASSED and ruling.verdict == WARN
        attempt = attempt_of(self._call, self._run, verdict, decision)._replace(
            verdict="warned" if is_warning else ruling.outcome,
            tree=self._tree,
            cannot_fix=tuple(self._session.reasons_not_to_fix(self._call.prompt).items()),
            notes=notes,
        )
        save_attempt(self._call, self._run, attempt)

    def _entry(self, ruling: Ruling, statuses: tuple[tuple[str, str], ...]) -> Fact:
        """Return the round for the journal."""
        length = length_of(self._call.payload.transcript_abs)
        led_to = {"outcome": ruling.outcome, "tree": self._tree, "transcript": length}
        return round_entry(self._call, self._run, statuses) | led_to

    def _rule(
        self, level: Level, asked: tuple[tuple[str, str], ...], marks: frozenset[str]
    ) -> Ruling:
        hook, call = self._call.hook, self._call
        rounds = (*(one.fingerprints() for one in self._rounds), marks)
        one = Try(
            hook=hook.name,
            prompt=call.prompt,
            agent=call.payload.agent_id,
            gates=gate_set_key(self._run),
            verdict=level,
            deciding=asked,
            diverges=does_not_converge(rounds),
        )
        limits = Limits(hook.max_retries, *call.config.breaker, stops=hook.on_exhausted == "stop")
        return rule(self._session, one, limits)

    def _failures(self, decision: Decision, known: Known) -> Found:
        """Return the failures of each gate, without those from before the session."""
        gates = {step.gate.name: step.gate for step in self._run.plan.steps}
        root_abs = self._call.repo.root_abs
        found = {
            visit.result.gate: failures_of(gates[visit.result.gate], visit.result, root_abs)
            for visit in unpassed(decision)
            if visit.result.status not in ("passed", *NO_RESULT)
        }
        before = {gate: one.failures for gate, one in known.items()}
        return {
            gate: tuple(one for one in each if one not in before.get(gate, ()))
            for gate, each in found.items()
        }

    def _report(self, decision: Decision, found: Found, known: Known) -> EventReport:
        """Return what there is to say, with what has changed since the last attempt."""
        said = event_report(self._call, self._run, decision)
        given_up = self._session.reasons_not_to_fix(self._call.prompt)
        nothing = BaselineFailures()
        findings = []
        for one in said.findings:
            gate = one.result.gate
            before = known.get(gate, nothing)
            own = found.get(gate, ())
            change, since = self._since_last(gate, own) if own and self._blocked else (None, ())
            findings.append(
                one._replace(
                    cannot_fix=given_up.get(gate, ""),
                    change=change,
                    since=since,
                    earlier=earlier_lines(self._rounds, gate) if change else frozenset(),
                    known=before.failures,
                    caused=own if before.failures and not change else (),
                    note=before.note,
                )
            )
        told = tuple(one.told for one in known.values() if one.told)
        return said._replace(findings=tuple(findings), notes=(*said.notes, *told))

    def _report_of(self, last: Round, ruling: Ruling) -> EventReport:
        """Return what there is to say of a result that stands."""
        failures = {gate: tuple(Failure(*one) for one in each) for gate, each in last.failures}
        findings = []
        for gate, status in last.statuses:
            change, since = self._since_last(gate, failures.get(gate, ()))
            logs = logs_of(self._rounds, gate)
            result = GateResult(
                gate=gate,
                status=status,  # type: ignore[arg-type]  # one that we wrote ourselves
                reason="as in the last attempt",
                log_abs=logs[-1] if logs else "",
            )
            findings.append(GateReport(result=result, change=change, since=since))
        return EventReport(
            hook=last.hook,
            root_abs=self._call.repo.root_abs,
            elsewhere=self._call.is_elsewhere,
            attempt=ruling.attempt,
            attempts=ruling.attempts,
            findings=tuple(findings),
            repeated=True,
        )

    def _since_last(self, gate: str, now: tuple[Failure, ...]) -> tuple[Change, Since]:
        """Return what has changed since the last attempt, and since when each failure is known."""
        since: dict[str, int] = {}
        before: tuple[Failure, ...] = ()
        for number, one in enumerate(self._blocked, 1):
            before = tuple(Failure(*each) for each in dict(one.failures).get(gate, ()))
            since = {each.fingerprint: since.get(each.fingerprint, number) for each in before}
        return compare(before, now), tuple(since.items())

    def _verdict(self, ruling: Ruling, said: EventReport) -> Verdict:
        observed = "\n".join(f"gitgates: {line}" for line in said.observed)
        match ruling.outcome:
            case "passed" if ruling.verdict == WARN:
                text = warning_text(said)
                later = feedback(said._replace(leads_to=WARN), _LATER)
                return Verdict(WARN, to_person=text, entries=(self._warning(later),))
            case "passed":
                lines = (*said.observed, *said.notes)
                later = feedback(said._replace(leads_to=WARN), _LATER)
                return Verdict(
                    to_person="\n".join(f"gitgates: {line}" for line in lines),
                    entries=(self._warning(later),) if said.changed_paths else (),
                )
            case "blocked":
                said = said._replace(attempt=ruling.attempt, attempts=ruling.attempts)
                return Verdict(BLOCK, to_agent=feedback(said), to_person=observed)
            case "stopped":
                said = said._replace(leads_to=STOP)
                return self._stop(feedback(said, _LATER), stop_text(said))
            case _ if ruling.verdict == STOP:
                said = said._replace(leads_to=STOP)
                return self._stop(feedback(said, _LATER), person_text(said, ruling.how))
            case _:
                text = person_text(said, ruling.how) + f" Report: {self._run.run_abs}"
                return Verdict(WARN, to_person=text, entries=(self._warning(text),))

    def _warning(self, text: str) -> Fact:
        return {"what": "warning", "hook": self._call.payload.event, "text": text}

    def _stop(self, reason: str, text: str) -> Verdict:
        """Return what ends the work: `text` for the person, `reason` for a sub-agent."""
        if self._call.payload.kind == "turn-end":
            return Verdict(STOP, to_agent=text, to_person=text)
        if any(one.outcome in (STOPPED, EXHAUSTED, NOT_CONVERGING) for one in self._rounds):
            return Verdict()  # it was told; nothing else can end it
        entry = {"what": "stop", "reason": text}
        return Verdict(BLOCK, reason + _END_NOW, to_person=text, entries=(entry,))
