"""One try of an agent at stopping: what its gates say, and what that leads to."""

from __future__ import annotations

import os
import time

from gitgates.agent.baseline import Known, excuse
from gitgates.agent.checks import (
    changed_by_gates,
    deciding,
    definition,
    earlier_lines,
    failures_of,
    logs_of,
    remember,
    run_check,
    set_of_gates,
    situation,
    unpassed,
)
from gitgates.agent.place import is_elsewhere
from gitgates.agent.saving import Came, save_attempt
from gitgates.agent.scenes import changed_by_others
from gitgates.engine.failures import Failure, compare, does_not_converge
from gitgates.errors import GitgatesError, Interrupted
from gitgates.hosts import agent_host
from gitgates.policies.needs import hears_all
from gitgates.policies.retry import (
    BLOCKED,
    EXHAUSTED,
    NO_RESULT,
    NOT_CONVERGING,
    PASSED,
    STOPPED,
    Limits,
    Try,
    rule,
)
from gitgates.report.feedback import (
    EventReport,
    GateReport,
    feedback,
    person_text,
    stop_text,
    warning_text,
)
from gitgates.store.files import length_of, read_tail
from gitgates.types import BLOCK, STOP, WARN, Answer, Decision, GateResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from gitgates.agent.checks import Check
    from gitgates.agent.place import Place
    from gitgates.engine.failures import Change
    from gitgates.policies.retry import Ruling
    from gitgates.policies.session import Fact, Round, Session
    from gitgates.types import Verdict

    # The answer, the round for the journal, and what else goes there.
    Led: TypeAlias = tuple[Answer, Fact, list[Fact]]
    Found: TypeAlias = dict[str, tuple[Failure, ...]]
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


class Attempt:
    """One try at stopping."""

    def __init__(self, place: Place, check: Check, session: Session, tree: str) -> None:
        self._place = place
        self._session = session
        self._tree = tree  # that the gates will see; empty: not known for certain
        self._prompt = session.prompt_of(place.payload.prompt_id)
        payload = place.payload
        self._rounds = session.rounds_of(
            payload.event, payload.agent_id, self._prompt, set_of_gates(check)
        )
        self._blocked = [one for one in self._rounds if one.outcome == BLOCKED]
        self._check = self._in_folder_of_cycle(check)

    def _in_folder_of_cycle(self, check: Check) -> Check:
        """Have all attempts of one cycle in one folder."""
        first = self._rounds[0].run if self._rounds else ""
        number = len(self._rounds) + 1
        if not first:
            return check
        return check._replace(run_abs=first, logs_abs=f"{first}/logs/attempt-{number}")

    def stands(self, last_before: str) -> Round | None:
        """Return the round whose result stands, because nothing has happened since."""
        last = self._rounds[-1] if self._rounds else None
        if last is None or last.outcome != BLOCKED or last.key != last_before:
            return None
        if self._session.reasons_not_to_fix(self._prompt):
            return None  # a command of ours, of which no event tells
        return last if self._is_as_it_was(last) else None

    def has_passed(self) -> bool:
        """Tell whether the gates passed the last time that they ran, and it was on this content.

        A question after the work is done need not run everything again, whatever tools it took.
        """
        payload, gates = self._place.payload, set_of_gates(self._check)
        rounds = [
            one
            for one in self._session.rounds
            if (one.hook, one.agent, one.gates) == (payload.event, payload.agent_id, gates)
        ]
        return bool(rounds) and rounds[-1].outcome == PASSED and self._is_same_content(rounds[-1])

    def _is_as_it_was(self, one: Round) -> bool:
        """Tell whether everything is as it was when this round ran, as far as can be known."""
        return self._is_same_content(one) and not self._tools_were_used(one.transcript)

    def _is_same_content(self, one: Round) -> bool:
        """Tell whether a round ran with the same definitions on content that is provably equal."""
        is_same = one.tree == self._tree != ""
        return is_same and one.config == definition(self._place, self._check)

    def _tools_were_used(self, since: int) -> bool:
        """Tell whether the transcript shows a tool call since; where there is none, it does not.

        We hear of a tool call ourselves only where the configuration asks for it.
        """
        payload = self._place.payload
        since_then = read_tail(payload.transcript_abs, since)
        if since_then is None or since < 0:
            return since_then is not None
        calls_in = agent_host(payload.host).calls_in
        calls = (call for line in since_then.split(b"\n") for call in calls_in(line))
        return any(not call.is_result for call in calls)

    def repeat(self, last: Round) -> Led:
        """Return the earlier result once more; it counts as an attempt."""
        ruling = self._rule(BLOCK, last.statuses, last.fingerprints())
        fact = {
            **remember(self._place, self._check, last.statuses, self._prompt),
            "failures": [[gate, list(found)] for gate, found in last.failures],
            **self._facts_of(ruling),
        }
        said = self._situation_of(last, ruling)
        if ruling.outcome == BLOCKED:
            answer = Answer(BLOCK, to_agent=feedback(said))
            self._save(answer, ruling, _AS_BEFORE)
            return answer, fact, []
        names = ", ".join(f"`{gate}` ({status})" for gate, status in last.statuses)
        went = "stopped" if ruling.verdict == STOP else "let go"
        text = f"gitgates: {names}: the agent was {went} {ruling.how}. Report: {last.run}"
        if ruling.verdict == STOP:
            answer, more = self._stop(feedback(said._replace(leads_to=STOP), _LATER), text)
        else:
            answer, more = Answer(WARN, to_person=text), [self._warning(text)]
        self._save(answer, ruling, _AS_BEFORE)
        return answer, fact, more

    def run(self, note: str, tree: str) -> Led:
        """Run the gates; return what that leads to. `tree` is what is there, provable or not."""
        try:
            decision = run_check(self._place, self._check, {})
        except Interrupted:
            raise
        except GitgatesError as error:
            return self._could_not_run(str(error))
        if changed_by_gates(decision):
            self._tree = ""  # not all gates have seen what is there now
        decision, known, learnt = excuse(self._place, self._check, self._session, decision)
        found = self._failures(decision, known)
        marks = frozenset(
            f"{gate}:{failure.fingerprint}" for gate, each in found.items() for failure in each
        )
        asked = deciding(decision)
        ruling = self._rule(decision.verdict, asked, marks)
        said = self._situation(decision, found, known)
        others = self._note_of_others(tree) if found else ""
        if others and ruling.outcome == BLOCKED:
            others += _OTHERS
        notes = (note, others)
        said = said._replace(notes=(*said.notes, *filter(None, notes)))
        answer, more = self._answer(ruling, said)
        self._save(answer, ruling, decision, said.notes)
        fact = {
            **remember(self._place, self._check, asked, self._prompt),
            "failures": [
                [gate, [[one.fingerprint, one.title] for one in each]]
                for gate, each in found.items()
            ],
            **self._facts_of(ruling),
        }
        return answer, fact, [*learnt, *more]

    def _note_of_others(self, tree: str) -> str:
        """Return which of the files that differ somebody else has changed; empty for none known."""
        event, config = self._check.plan.event, self._check.config
        try:
            others = changed_by_others(self._place, tree, hears_all=hears_all(config))
            new = set(self._place.git.names(*_UNTRACKED)) if others else set()
        except GitgatesError as error:
            self._place.say(str(error))
            return ""
        both = {*(event.paths or ()), *event.gone}.intersection(others)
        named = sorted(p for p in both if not (p in new and self._is_left_by_gates(p)))
        if not named:
            return ""
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        some = ", ".join(named[:_MOST_NAMED])
        return f"These files were changed by somebody else meanwhile: {some}{more}."

    def _is_left_by_gates(self, path: str) -> bool:
        """Tell whether a file that git does not know was last written while gates ran."""
        try:
            written_s = os.lstat(f"{self._place.repo.root_abs}/{path}").st_mtime
        except OSError:
            return False
        runs = [(one.began, one.stamp) for one in self._session.rounds if one.began]
        runs.append((self._check.began_s, time.time()))
        return any(began - _CLOCK_S <= written_s <= ended for began, ended in runs)

    def _could_not_run(self, why: str) -> Led:
        """Return what comes of gates that could not run at all: that blocks once."""
        asked = ((_ALL_GATES, "not-started"),)
        ruling = self._rule(BLOCK, asked, frozenset())
        fact = {
            **remember(self._place, self._check, asked, self._prompt),
            **self._facts_of(ruling),
        }
        text = f"The gates could not run, so that nothing was checked: {why}"
        more: list[Fact] = []
        if ruling.outcome == BLOCKED:
            answer = Answer(BLOCK, to_agent=f"{text}\n\n{_TRY_AGAIN}")
        else:
            answer = Answer(WARN, to_person=f"gitgates let the agent go {ruling.how}. {text}")
            more = [self._warning(text)]
        self._save(answer, ruling, Decision(BLOCK, reason=why))
        return answer, fact, more

    def _save(
        self, answer: Answer, ruling: Ruling, decision: Decision, notes: tuple[str, ...] = ()
    ) -> None:
        is_warning = ruling.outcome == PASSED and ruling.verdict == WARN
        came = Came(
            decision=decision,
            outcome="warned" if is_warning else ruling.outcome,
            tree=self._tree,
            retries=self._check.hook.max_retries,
            cannot_fix=tuple(self._session.reasons_not_to_fix(self._prompt).items()),
            notes=notes,
        )
        save_attempt(self._place, self._check, answer, came)

    def _facts_of(self, ruling: Ruling) -> Fact:
        length = length_of(self._place.payload.transcript_abs)
        return {"outcome": ruling.outcome, "tree": self._tree, "transcript": length}

    def _rule(
        self, verdict: Verdict, asked: tuple[tuple[str, str], ...], marks: frozenset[str]
    ) -> Ruling:
        hook, config = self._check.hook, self._check.config
        rounds = (*(one.fingerprints() for one in self._rounds), marks)
        one = Try(
            hook=hook.name,
            prompt=self._prompt,
            agent=self._place.payload.agent_id,
            gates=set_of_gates(self._check),
            verdict=verdict,
            deciding=asked,
            diverges=does_not_converge(rounds),
        )
        limits = Limits(hook.max_retries, *config.breaker, stops=hook.on_exhausted == "stop")
        return rule(self._session, one, limits)

    def _failures(self, decision: Decision, known: dict[str, Known]) -> Found:
        """Return the failures of each gate, without those from before the session."""
        gates = {step.gate.name: step.gate for step in self._check.plan.steps}
        root_abs = self._place.repo.root_abs
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

    def _situation(self, decision: Decision, found: Found, known: dict[str, Known]) -> EventReport:
        """Return what there is to say, with what has changed since the last attempt."""
        said = situation(self._place, self._check, decision)
        given_up = self._session.reasons_not_to_fix(self._prompt)
        nothing = Known()
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

    def _situation_of(self, last: Round, ruling: Ruling) -> EventReport:
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
            root_abs=self._place.repo.root_abs,
            elsewhere=is_elsewhere(self._place),
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

    def _answer(self, ruling: Ruling, said: EventReport) -> tuple[Answer, list[Fact]]:
        observed = "\n".join(f"gitgates: {line}" for line in said.observed)
        match ruling.outcome:
            case "passed" if ruling.verdict == WARN:
                text = warning_text(said)
                later = feedback(said._replace(leads_to=WARN), _LATER)
                return Answer(WARN, to_person=text), [self._warning(later)]
            case "passed":
                lines = (*said.observed, *said.notes)
                answer = Answer(to_person="\n".join(f"gitgates: {line}" for line in lines))
                later = feedback(said._replace(leads_to=WARN), _LATER)
                return answer, [self._warning(later)] if said.changed_paths else []
            case "blocked":
                said = said._replace(attempt=ruling.attempt, attempts=ruling.attempts)
                return Answer(BLOCK, to_agent=feedback(said), to_person=observed), []
            case "stopped":
                said = said._replace(leads_to=STOP)
                return self._stop(feedback(said, _LATER), stop_text(said))
            case _ if ruling.verdict == STOP:
                said = said._replace(leads_to=STOP)
                return self._stop(feedback(said, _LATER), person_text(said, ruling.how))
            case _:
                text = person_text(said, ruling.how) + f" Report: {self._check.run_abs}"
                return Answer(WARN, to_person=text), [self._warning(text)]

    def _warning(self, text: str) -> Fact:
        return {"what": "warning", "hook": self._place.payload.event, "text": text}

    def _stop(self, reason: str, text: str) -> tuple[Answer, list[Fact]]:
        """Return what ends the work: `text` for the person, `reason` for a sub-agent."""
        if self._place.payload.kind == "turn-end":
            return Answer(STOP, to_agent=text, to_person=text), []
        if any(one.outcome in (STOPPED, EXHAUSTED, NOT_CONVERGING) for one in self._rounds):
            return Answer(), []  # it was told; nothing else can end it
        told = Answer(BLOCK, to_agent=reason + _END_NOW, to_person=text)
        return told, [{"what": "stop", "reason": text}]
