"""Run the gates of an agent's event, and put together what is to be said of them."""

from __future__ import annotations

import os
import shlex
import time

from gitgates.agent.place import is_elsewhere
from gitgates.engine.failures import Failure, split
from gitgates.engine.hooks import GATES_OWN_TIME, gates_limit_s
from gitgates.engine.normalise import normalise
from gitgates.engine.pipeline import record_skips
from gitgates.engine.plan import make_plan
from gitgates.engine.run import Deadline, RunOptions, Silent, run_plan
from gitgates.engine.walk import describe, observed
from gitgates.environ import skipped_gates
from gitgates.record import Record
from gitgates.report.excerpt import readable
from gitgates.report.feedback import EventReport, GateReport
from gitgates.store.files import open_state
from gitgates.store.runs import log_abs, new_run
from gitgates.types import WARN, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.agent.place import Place
    from gitgates.policies.session import Fact, Round
    from gitgates.types import Config, Decision, Gate, GateResult, Hook, Plan, Visit

_NO_PASS = ("failed", "timed-out", "killed", "not-started", "not-run")
_OWN_FIRST_S = 2.0
_MOST_READ = 1 << 20  # bytes of a log that failures are looked for in


class LogListener(Silent):
    """Hears what a person should know at once; there is none, so that the host's log does."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def said(self, text: str) -> None:
        """Pass it on."""
        self._place.say(text)


class Check(Record):
    """What is to be run, and where to."""

    plan: Plan
    config: Config
    hook: Hook
    run_abs: str
    logs_abs: str
    deadline: Deadline
    began_s: float  # since the epoch


class Changes(Record):
    """What an event is about, in files."""

    paths: tuple[str, ...] | None  # None: it is not about files
    gone: tuple[str, ...] = ()
    note: str = ""  # what is to be known of that


def make_check(place: Place, config: Config, hook: Hook, changes: Changes) -> Check | None:
    """Return what an event asks to be run; None where every gate is skipped."""
    event = Event(
        host=place.payload.host,
        name=place.payload.event,
        root_abs=place.repo.root_abs,
        paths=changes.paths,
        gone=changes.gone,
        stdin=place.raw,
        payload=place.payload,
    )
    plan = make_plan(config, hook, event, skipped_gates(place.env))
    record_skips(plan, place.repo)
    if all(step.skip for step in plan.steps if step.gate.name in plan.listed):
        return None
    limit_s = gates_limit_s(config, hook)
    run_abs = new_run(place.repo.state_abs)
    # Where it is what the gates' own limits come to, those are to be met first, and named.
    is_sum = place.payload.kind in GATES_OWN_TIME and not hook.timeout_s
    deadline = Deadline(time.monotonic() + limit_s + (_OWN_FIRST_S if is_sum else 0.0), limit_s)
    return Check(plan, config, hook, run_abs, f"{run_abs}/logs", deadline, time.time())


def run_check(
    place: Place, check: Check, earlier: Mapping[tuple[str, int], GateResult]
) -> Decision:
    """Run the gates; results in `earlier` stand.

    Raises: GitgatesError for each expected failure.
    """
    options = RunOptions(deadline=check.deadline, logs_abs=check.logs_abs, earlier=earlier)
    return run_plan(check.plan, check.config, place.repo, LogListener(place), options=options)


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


def remember(
    place: Place, check: Check, statuses: tuple[tuple[str, str], ...], prompt: str
) -> Fact:
    """Return what the journal keeps of a check; what was made of it is added by the caller."""
    return {
        "hook": place.payload.event,
        "agent": place.payload.agent_id,
        "prompt": prompt,
        "gates": set_of_gates(check),
        "statuses": [list(one) for one in statuses],
        "run": check.run_abs,
        "config": definition(place, check),
        "began": check.began_s,
    }


def definition(place: Place, check: Check) -> str:
    """Return what stands for the configuration and for what the environment leaves out of it."""
    return " ".join((check.plan.config_digest, *sorted(skipped_gates(place.env))))


def set_of_gates(check: Check) -> str:
    """Return the gates that a hook lists, as one word: they are one cycle of fix and retry."""
    return ", ".join(check.plan.listed)


def failures_of(gate: Gate, result: GateResult, root_abs: str) -> tuple[Failure, ...]:
    """Return the failures of a gate that failed in `root_abs`, told apart as its pattern says."""
    return split(whole_output(result), gate.failures, gate.name, root_abs)


def whole_output(result: GateResult) -> bytes:
    """Return all of a gate's output, as far as that is reasonable; what was kept has a gap."""
    if not (result.dropped_bytes and result.log_abs):
        return result.output
    try:
        with open(result.log_abs, "rb", opener=open_state) as file:
            return max(file.read(_MOST_READ), result.output, key=len)  # `max_log` may be small
    except OSError:
        return result.output


def _command_of(gate: Gate) -> str:
    return gate.command if isinstance(gate.command, str) else shlex.join(gate.command or ())


def situation(place: Place, check: Check, decision: Decision) -> EventReport:
    """Return what there is to be said of a decision."""
    gates = {step.gate.name: step.gate for step in check.plan.steps}
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
    return EventReport(
        hook=place.payload.event,
        root_abs=place.repo.root_abs,
        elsewhere=is_elsewhere(place),
        attempt=0,
        attempts=0,
        findings=findings,
        passed=tuple(
            dict.fromkeys(v.result.gate for v in decision.visits if v.result.status == "passed")
        ),
        not_run=tuple((name, why) for name in decision.not_run if name not in met),
        observed=observed(decision.visits),
        notes=tuple(
            f"`{v.result.gate}` {describe(v.result)}, but `{v.rescued_by}` put that right."
            for v in decision.visits
            if v.rescued_by
        ),
        changed_paths=changed_by_gates(decision),
    )


def changed_by_gates(decision: Decision) -> tuple[str, ...]:
    """Return which files gates have changed under the agent, or somebody else while they ran."""
    return tuple(sorted({path for v in decision.visits for path in v.result.changed_paths}))


def earlier_lines(rounds: Sequence[Round], gate: str) -> frozenset[str]:
    """Return the lines of a gate's outputs in the attempts of a cycle, normalised."""
    lines: set[str] = set()
    for path_abs in logs_of(rounds, gate):
        try:
            with open(path_abs, "rb", opener=open_state) as file:
                output = file.read(_MOST_READ)
        except OSError:
            continue
        lines.update(normalise("\n".join(readable(output))).split("\n"))
    return frozenset(lines)


def logs_of(rounds: Sequence[Round], gate: str) -> list[str]:
    """Return the logs of a gate in the attempts of a cycle, the oldest first."""
    folders = [
        f"{one.run}/logs/attempt-{number}" if number > 1 else f"{one.run}/logs"
        for number, one in enumerate(rounds, 1)
    ]
    paths_abs = [log_abs(folder, gate, 0) for folder in folders]
    return [path_abs for path_abs in paths_abs if os.path.isfile(path_abs)]
