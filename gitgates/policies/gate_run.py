"""Run the gates of an agent's event, and put together what is to be said of them."""

from __future__ import annotations

import os
import shlex
import time

from gitgates.config.load import FILES
from gitgates.engine.failures import Failure, split
from gitgates.engine.hooks import GATES_OWN_TIME, gates_limit_s, host_limit_s
from gitgates.engine.normalise import normalise
from gitgates.engine.pipeline import record_skips
from gitgates.engine.plan import make_plan
from gitgates.engine.run import Deadline, NullListener, RunOptions, run_plan
from gitgates.engine.walk import describe, observed
from gitgates.environ import skipped_gates
from gitgates.hosts.capabilities import express
from gitgates.lifecycle import ENDINGS
from gitgates.policies.call import Changes
from gitgates.policies.session import NO_RESULT
from gitgates.record import Record
from gitgates.report.artifacts import save
from gitgates.report.excerpt import readable
from gitgates.report.feedback import EventReport, GateReport, feedback, stop_text
from gitgates.report.result import AttemptReport, outcome_of
from gitgates.store.files import open_state
from gitgates.store.runs import log_abs, new_run
from gitgates.types import ALLOW, BLOCK, STOP, WARN, Event, Verdict
from gitgates.worktree.gc import collect_if_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.policies.call import Call
    from gitgates.policies.session import Fact, Round
    from gitgates.types import Decision, Gate, GateResult, Plan, Visit

_NO_PASS = ("failed", "timed-out", "killed", *NO_RESULT)
_FINE = ("passed", "skipped")
_OUTCOMES = {ALLOW: "passed", WARN: "passed", BLOCK: "blocked", STOP: "stopped"}
_OWN_FIRST_S = 2.0
_MOST_READ = 1 << 20  # bytes of a log that failures are looked for in


class LogListener(NullListener):
    """Hears what a person should know at once; there is none, so that the host's log does."""

    def __init__(self, call: Call) -> None:
        self._say = call.say

    def said(self, text: str) -> None:
        """Pass it on."""
        self._say(text)


class GateRun(Record):
    """What is to be run, and where to."""

    plan: Plan
    run_abs: str
    logs_abs: str
    deadline: Deadline
    began_s: float  # since the epoch


def plan_run(call: Call, changes: Changes) -> GateRun | None:
    """Return what an event asks to be run; None if every gate is skipped."""
    payload, hook = call.payload, call.hook
    event = Event(
        host=payload.host,
        name=payload.event,
        root_abs=call.repo.root_abs,
        paths=changes.paths,
        gone=changes.gone,
        stdin=call.raw,
        payload=payload,
    )
    plan = make_plan(call.config, hook, event, skipped_gates(call.env))
    record_skips(plan, call.repo)
    if all(step.skip for step in plan.steps if step.gate.name in plan.listed):
        return None
    limit_s = gates_limit_s(call.config, hook)
    run_abs = new_run(call.repo.state_abs)
    # Where it is what the gates' own limits come to, those are to be met first, and named.
    is_sum = payload.kind in GATES_OWN_TIME and not hook.timeout_s
    deadline = Deadline(time.monotonic() + limit_s + (_OWN_FIRST_S if is_sum else 0.0), limit_s)
    return GateRun(plan, run_abs, f"{run_abs}/logs", deadline, time.time())


def run_gates(
    call: Call, run: GateRun, earlier: Mapping[tuple[str, int], GateResult] | None = None
) -> Decision:
    """Run the gates; results in `earlier` stand.

    Raises: GitgatesError for each expected failure.
    """
    options = RunOptions(deadline=run.deadline, logs_abs=run.logs_abs, earlier=earlier or {})
    return run_plan(run.plan, call.config, call.repo, LogListener(call), options=options)


def decide_event(call: Call) -> Verdict:
    """Run the gates of an event that is no end of work; return what they mean for it."""
    paths = call.edited_paths
    run = plan_run(call, Changes(paths))
    if run is None:
        return Verdict()
    call.end_within(host_limit_s(call.config, call.hook))
    decision = _allow_config_fix(call, run_gates(call, run), paths)
    verdict = _say(call, run, decision)
    if decision.verdict or any(v.result.status not in _FINE for v in decision.visits):
        # An edit that is fine leaves nothing behind.
        save_attempt(call, run, attempt_of(call, run, verdict, decision))
    entry = round_entry(call, run, deciding(decision)) | {"outcome": _OUTCOMES[verdict.level]}
    return verdict._replace(entries=(entry,))


def _say(call: Call, run: GateRun, decision: Decision) -> Verdict:
    said = event_report(call, run, decision)
    leads_to, why = express(call.payload, decision.verdict)
    said = said._replace(leads_to=leads_to)
    if why:
        call.say(f"{why}: {decision.reason}")
        said = said._replace(notes=(*said.notes, f"{why}."))
    person = "\n".join(said.observed)
    if decision.verdict == STOP:
        return Verdict(STOP, to_agent=feedback(said), to_person=stop_text(said))
    if decision.verdict == BLOCK and _was_said(call, deciding(decision)):
        # A tool that is missing must not lock the agent out of everything.
        said = said._replace(leads_to=WARN)
        return Verdict(WARN, to_agent=feedback(said), to_person=f"gitgates: {decision.reason}")
    if decision.verdict >= WARN or said.changed_paths:
        level = max(decision.verdict, WARN)
        return Verdict(level, to_agent=feedback(said), to_person=person)
    return Verdict(to_person=person)


def _was_said(call: Call, asked: tuple[tuple[str, str], ...]) -> bool:
    """Return whether only gates that cannot run block, and that was said in this prompt already."""
    prompt = call.prompt
    told = {
        gate
        for one in call.session.rounds
        if one.prompt == prompt and one.hook == call.payload.event
        for gate, status in one.statuses
        if status in NO_RESULT
    }
    return bool(asked) and all(status in NO_RESULT and gate in told for gate, status in asked)


def _allow_config_fix(call: Call, decision: Decision, paths: tuple[str, ...] | None) -> Decision:
    """Let an edit of the configuration through where only a mistake in it is in the way."""
    is_fault = decision.verdict == STOP and all(
        visit.result.status == "not-started" for visit in decision.visits if visit.verdict == STOP
    )
    if call.payload.kind == "before-tool" and is_fault and set(paths or ()) & set(FILES):
        return decision._replace(verdict=WARN)
    return decision


def unpassed(decision: Decision) -> list[Visit]:
    """Return the visits that something is to be said of, those that decide first."""
    found = [
        visit
        for visit in decision.visits
        if not visit.would
        and not visit.result.excused
        and not visit.rescued_by
        and (visit.verdict >= WARN or visit.result.status in _NO_PASS)
    ]
    return sorted(found, key=lambda visit: -visit.verdict)


def deciding(decision: Decision) -> tuple[tuple[str, str], ...]:
    """Return gate and status of each visit that asks for what was decided."""
    return tuple(
        dict.fromkeys(
            (visit.result.gate, visit.result.status)
            for visit in decision.visits
            if visit.verdict == decision.verdict and visit.action in ("BLOCK", "STOP")
        )
    )


def round_entry(call: Call, run: GateRun, statuses: tuple[tuple[str, str], ...]) -> Fact:
    """Return what the journal keeps of a run; what was made of it is added by the caller."""
    return {
        "what": "round",
        "hook": call.payload.event,
        "agent": call.payload.agent_id,
        "prompt": call.prompt,
        "gates": gate_set_key(run),
        "statuses": [list(one) for one in statuses],
        "run": run.run_abs,
        "config": definition(call, run),
        "began": run.began_s,
    }


def definition(call: Call, run: GateRun) -> str:
    """Return what stands for the configuration and for what the environment leaves out of it."""
    return " ".join((run.plan.config_digest, *sorted(skipped_gates(call.env))))


def gate_set_key(run: GateRun) -> str:
    """Return the gates that a hook lists, as one word: they are one cycle of fix and retry."""
    return ", ".join(run.plan.listed)


def failures_of(gate: Gate, result: GateResult, root_abs: str) -> tuple[Failure, ...]:
    """Return the failures of a gate that failed in `root_abs`, told apart as its pattern says."""
    return split(whole_output(result), gate.failures, gate.name, root_abs)


def whole_output(result: GateResult) -> bytes:
    """Return all of a gate's output, as far as that is reasonable; what was kept has a gap."""
    if not (result.dropped_bytes and result.log_abs):
        return result.output
    # `max_log` may be small.
    return max(read_log(result.log_abs), result.output, key=len)


def read_log(path_abs: str) -> bytes:
    """Return the beginning of a log; nothing if it is gone."""
    try:
        with open(path_abs, "rb", opener=open_state) as file:
            return file.read(_MOST_READ)
    except OSError:
        return b""


def earlier_lines(rounds: Sequence[Round], gate: str) -> frozenset[str]:
    """Return the lines of a gate's outputs in the attempts of a cycle, normalised."""
    lines: set[str] = set()
    for path_abs in logs_of(rounds, gate):
        output = read_log(path_abs)
        lines.update(normalise("\n".join(readable(output))).split("\n") if output else ())
    return frozenset(lines)


def logs_of(rounds: Sequence[Round], gate: str) -> list[str]:
    """Return the logs of a gate in the attempts of a cycle, the oldest first."""
    folders = [
        f"{one.run}/logs/attempt-{number}" if number > 1 else f"{one.run}/logs"
        for number, one in enumerate(rounds, 1)
    ]
    paths_abs = [log_abs(folder, gate, 0) for folder in folders]
    return [path_abs for path_abs in paths_abs if os.path.isfile(path_abs)]


def event_report(call: Call, run: GateRun, decision: Decision) -> EventReport:
    """Return what there is to be said of a decision."""
    gates = {step.gate.name: step.gate for step in run.plan.steps}
    met = {visit.result.gate for visit in decision.visits}
    why = f"the list ended at `{decision.asked}`" if decision.asked else "the run ended before"
    findings = tuple(
        GateReport(
            result=visit.result,
            description=gates[visit.result.gate].description,
            command=_command_of(gates[visit.result.gate]),
        )
        for visit in unpassed(decision)
    )
    passed = (v.result.gate for v in decision.visits if v.result.status == "passed")
    return EventReport(
        hook=call.payload.event,
        root_abs=call.repo.root_abs,
        elsewhere=call.is_elsewhere,
        attempt=0,
        attempts=0,
        findings=findings,
        passed=tuple(dict.fromkeys(passed)),
        not_run=tuple((name, why) for name in decision.not_run if name not in met),
        observed=observed(decision.visits),
        notes=tuple(
            f"`{v.result.gate}` {describe(v.result)}, but `{v.rescued_by}` put that right."
            for v in decision.visits
            if v.rescued_by
        ),
        changed_paths=changed_by_gates(decision),
    )


def _command_of(gate: Gate) -> str:
    return gate.command if isinstance(gate.command, str) else shlex.join(gate.command or ())


def changed_by_gates(decision: Decision) -> tuple[str, ...]:
    """Return which files gates have changed under the agent, or somebody else while they ran."""
    return tuple(sorted({path for v in decision.visits for path in v.result.changed_paths}))


def attempt_of(call: Call, run: GateRun, verdict: Verdict, decision: Decision) -> AttemptReport:
    """Return what is written down of an attempt, as far as no retries have a say in it."""
    payload = call.payload
    return AttemptReport(
        hook=payload.event,
        host=payload.host,
        root=call.repo.root_abs,
        timestamp_s=run.began_s,
        duration_s=max(time.time() - run.began_s, 0.0),
        decision=decision,
        verdict=outcome_of(decision),
        session=payload.session,
        agent=payload.agent_type,
        agent_fixes=payload.last_message,
        fed_back_bytes=len(verdict.to_agent.encode("utf-8", "replace")),
    )


def save_attempt(call: Call, run: GateRun, attempt: AttemptReport) -> None:
    """Write down what came of an attempt, and clear old runs away now and then."""
    config = call.config
    notes = save(
        attempt,
        run.run_abs,
        max_retries=call.hook.max_retries if call.payload.kind in ENDINGS else 0,
        artifacts_dir=config.artifacts_dir,
        keep_runs=config.keep_runs,
    )
    for text in notes:
        call.note(text)
    collect_if_due(call.repo, config)
