"""Run the gates at an agent's event that does not end a turn."""

from __future__ import annotations

from gitgates.config.load import settings_among
from gitgates.core.environ import skipped_gates
from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Event, Verdict
from gitgates.drivers.breaker import is_reported_unable
from gitgates.drivers.call import EventFiles
from gitgates.drivers.gate_run import GateRun, deciding
from gitgates.engine.plan.hooks import host_limit_s
from gitgates.engine.plan.plan import make_plan, record_skips
from gitgates.hosts.capabilities import express
from gitgates.report.feedback import feedback, stop_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision
    from gitgates.drivers.call import Call

_FINE = ("passed", "skipped")
_OUTCOMES = {ALLOW: "passed", WARN: "passed", BLOCK: "blocked", STOP: "stopped"}


def plan_run(call: Call, files: EventFiles) -> GateRun | None:
    """Return an event's run; None if every gate is skipped."""
    event = Event(
        host=call.payload.host,
        name=call.payload.event,
        root_abs=call.repo.root_abs,
        paths=files.paths,
        deleted=files.deleted,
        stdin=call.raw,
        payload=call.payload,
    )
    skips = skipped_gates(call.env)
    plan = make_plan(call.config, call.hook, event, skips)
    call.explanations["gates"] = plan
    if not call.is_dry:
        record_skips(plan, call.repo, skips)
    if all(step.skip for step in plan.steps if step.gate.name in plan.listed):
        return None
    return GateRun(call, plan)


def decide_event(call: Call) -> Verdict:
    """Run the gates at an event that does not end a turn; return the verdict."""
    paths = call.edited_paths
    run = plan_run(call, EventFiles(paths))
    if run is None or call.is_dry:
        return Verdict()
    call.end_within(host_limit_s(call.config, call.hook))
    decision = _allow_config_fix(call, run.run(), paths)
    verdict = _say(run, decision)
    if decision.verdict or any(v.result.status not in _FINE for v in decision.visits):
        run.save(decision, verdict.to_agent)  # a successful run leaves no files
    return verdict._replace(entries=(run.entry(_OUTCOMES[verdict.level], deciding(decision)),))


def _say(run: GateRun, decision: Decision) -> Verdict:
    call, report = run.call, run.report(decision)
    leads_to, why = express(call.payload, decision.verdict)
    report = report._replace(leads_to=leads_to)
    if why:
        call.say(f"{why}: {decision.reason}")
        report = report._replace(notes=(*report.notes, f"{why}."))
    person = "\n".join(report.observed)
    if decision.verdict == STOP:
        return Verdict(STOP, to_agent=feedback(report), to_person=stop_text(report))
    key = (call.prompt, call.payload.event)
    rounds = [round_ for round_ in call.session.rounds if (round_.prompt, round_.hook) == key]
    if decision.verdict == BLOCK and is_reported_unable(deciding(decision), rounds):
        # A missing tool must not lock the agent out of everything.
        report = report._replace(leads_to=WARN)
        return Verdict(WARN, to_agent=feedback(report), to_person=f"gitgates: {decision.reason}")
    if decision.verdict >= WARN or report.changed_paths:
        level = max(decision.verdict, WARN)
        return Verdict(level, to_agent=feedback(report), to_person=person)
    return Verdict(to_person=person)


def _allow_config_fix(call: Call, decision: Decision, paths: tuple[str, ...] | None) -> Decision:
    """Allow an edit of the configuration if only an error in the configuration blocks."""
    is_fault = decision.verdict == STOP and all(
        visit.result.status == "not-started" for visit in decision.visits if visit.verdict == STOP
    )
    if call.payload.kind == "before-tool" and is_fault and settings_among(paths or (), call.config):
        return decision._replace(verdict=WARN)
    return decision
