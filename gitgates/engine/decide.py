"""Say what all results mean together, in words for a person."""

from __future__ import annotations

from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.types import ACTIONS, ALLOW, BLOCK, STOP, Decision, GateResult, Plan, Visit

_SHOWN = 3  # paths, on one line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from gitgates.engine.walk import Walk


def decide(plan: Plan, walk: Walk) -> Decision:
    """Return the decision of a walk that is over: the strongest verdict, and who asked for it."""
    deciding = tuple(v for v in walk.visits if v.verdict == walk.verdict != ALLOW and _decides(v))
    notes = tuple(step.note for step in plan.steps if step.note)
    return Decision(
        verdict=walk.verdict,
        asked=deciding[0].result.gate if deciding else "",
        reason="; ".join(dict.fromkeys(_reason(visit) for visit in deciding)),
        visits=walk.visits,
        not_run=walk.not_run,
        notes=tuple(
            note
            for note in (plan.event.note, *notes, *observed(walk.visits), _to_stage(plan, deciding))
            if note
        ),
    )


def _to_stage(plan: Plan, deciding: tuple[Visit, ...]) -> str:
    """Say what to do about the files that fixers changed before a commit."""
    writes = {step.gate.name for step in plan.steps if step.gate.writes}
    left_out = [v.result.gate for v in deciding if v.verdict >= BLOCK and _left_out(v.result)]
    fixers = [name for name in left_out if name in writes]
    if plan.hook.name not in BEFORE_A_COMMIT or not fixers:
        return ""
    text = "look at what was fixed (git diff), stage it (git add) and commit again"
    restages = any(step.gate.restage for step in plan.steps if step.gate.name in fixers)
    if restages or plan.event.host == "pre-commit":  # under that, no gate stages anything
        return text
    return f"{text}; with `restage = true` the gate stages it"


def observed(visits: tuple[Visit, ...]) -> tuple[str, ...]:
    """Say what gates that only observe would have done."""
    return tuple(
        f"gate `{visit.result.gate}` only observes: it {describe(visit.result)}, which would have "
        + ("been a warning" if visit.would == "CONTINUE" else f"led to {_target(visit.would)}")
        for visit in visits
        if visit.would and (visit.would != "CONTINUE" or visit.result.status != "passed")
    )


def _target(action: str) -> str:
    return action if action in ACTIONS else f"gate `{action}`"


def _decides(visit: Visit) -> bool:
    """Tell whether a visit has its verdict from itself, not from the gate that it led to."""
    if visit.verdict in (BLOCK, STOP):
        return visit.action in ("BLOCK", "STOP")
    return visit.result.status != "passed" or bool(visit.result.changed_paths)


def _reason(visit: Visit) -> str:
    said = describe(visit.result)
    match visit.verdict:
        case 3 if visit.result.status == "not-started" and visit.action == "STOP":
            return visit.result.reason or said
        case 3 | 2 if visit.result.status == "passed" and not visit.result.changed_paths:
            return f"gate `{visit.result.gate}` passed, and its on_pass is {visit.action}"
        case 3 | 2:
            return f"gate `{visit.result.gate}` {said}"
        case _ if visit.rescued_by:
            return f"gate `{visit.result.gate}` {said}, but `{visit.rescued_by}` saved it"
        case _:
            return f"gate `{visit.result.gate}` {said}"


def describe(result: GateResult) -> str:
    """Return how a gate ended, in a few words: `failed (exit status 1)`."""
    left_out = _left_out(result)
    match result.status:
        case "failed":
            why = f"exit status {result.exit_status}" if result.exit_status else result.reason
            return f"failed ({why})"
        case "killed":
            return f"was killed{_by_signal(result)}"
        case "timed-out":
            return f"timed out ({result.reason})" if result.reason else "timed out"
        case "not-started":
            return f"could not be started ({result.reason})"
        case "skipped" | "not-run":
            return f"was not run ({result.reason})"
        case "passed" if result.restaged_paths and not left_out:
            return f"changed and restaged {count_files(result.restaged_paths)}"
        case "passed" if result.changed_paths:
            return f"changed {count_files(left_out)}"
        case status:
            return status


def _left_out(result: GateResult) -> tuple[str, ...]:
    """Return what a gate changed and did not restage."""
    return tuple(path for path in result.changed_paths if path not in result.restaged_paths)


def _by_signal(result: GateResult) -> str:
    return f" by signal {result.signal}" if result.signal else ""


def count_files(paths: Collection[str]) -> str:
    """Return how many files, and the first of them: `2 files: a.py, b.py`."""
    return f"{len(paths)} file{'s' if len(paths) > 1 else ''}: {first_names(paths)}"


def undeclared(paths: Collection[str], beside: Collection[str]) -> str:
    """Say that a gate changed files without saying so, or one of those that ran `beside` it."""
    others = " or ".join(f"`{name}`" for name in sorted(beside))
    who = f"it or {others}, which ran beside it," if others else "it"
    return f"{who} changed {count_files(paths)}; gates that fix files say `writes = true`"


def undeclared_staging(paths: Collection[str]) -> str:
    """Say that a gate changed the index being committed without saying so."""
    what_to_do = "gates that stage what they fix say `writes = true` and `restage = true`"
    return f"it changed the index being committed: {first_names(paths)}; {what_to_do}"


def changed_meanwhile(paths: Collection[str], again: str) -> str:
    """Say that somebody changed files while they were checked; `again` is what to do then."""
    it_was = "it was" if len(paths) == 1 else "they were"
    return f"{first_names(paths)} changed while {it_was} checked; {again} again"


def first_names(names: Collection[str]) -> str:
    """Return the first of some names, in order, on one line."""
    return ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
