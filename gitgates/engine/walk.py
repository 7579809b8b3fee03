"""Walk a plan: which gates are due, and what the results so far mean.

The walk is a fold: it starts from the first gate each time, with all results so far, and either
comes to a gate without a result, which is due, or to the end. Nothing is remembered in between.

A result counts for the content that the gate saw. When a gate that writes has changed files, the
content is another one, and a gate met again after that runs again.
"""

from __future__ import annotations

from gitgates.record import Record
from gitgates.types import (
    ACTIONS,
    ALLOW,
    BLOCK,
    STOP,
    WARN,
    Gate,
    GateResult,
    Plan,
    Step,
    Visit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.types import Verdict

    # (gate, how often content had changed when it ran) → its result
    Results = Mapping[tuple[str, int], GateResult]

# Hooks whose subject is a commit being made: a change made by a gate would not be in it.
BEFORE_A_COMMIT = ("pre-commit", "pre-merge-commit")


class Due(Record):
    """A gate that should run now, on the content as it is."""

    step: Step
    generation: int


class Walk(Record):
    """Where a run stands."""

    due: tuple[Due, ...]  # empty: it is over
    verdict: Verdict
    visits: tuple[Visit, ...]
    not_run: tuple[str, ...]  # listed gates that the end came before


class _Walker:
    """One pass over a plan. Its fields are what the pass has met."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self.steps = {step.gate.name: step for step in plan.steps}
        self.is_commit = plan.hook.name in BEFORE_A_COMMIT
        self.results = results
        self.generation = 0
        self.due: list[Due] = []
        self.visits: list[Visit] = []

    def visit(self, name: str, called_by: str = "") -> Verdict | None:
        """Return what a gate and its chain mean; None where one of them has not run yet."""
        step = self.steps[name]
        if step.fault:
            return self._end_at(step, called_by)
        if step.skip:
            result = GateResult(gate=name, status="skipped", reason=step.skip)
            self.visits.append(Visit(result, ALLOW, "CONTINUE", called_by))
            return ALLOW
        result_or_none = self.results.get((name, self.generation))
        if result_or_none is None:
            self.due.append(Due(step, self.generation))
            return None
        return self._follow(step.gate, result_or_none, called_by)

    def _follow(self, gate: Gate, result: GateResult, called_by: str) -> Verdict | None:
        self.generation += bool(result.changed_paths)
        passed = result.status == "passed" and not (self.is_commit and result.changed_paths)
        action = gate.on_pass if passed else gate.on_fail
        place = len(self.visits)
        self.visits.append(Visit(result, _plain(action, passed=passed), action, called_by))
        if action in ACTIONS:
            return self.visits[place].verdict
        inner = self.visit(action, called_by=gate.name)
        if inner is None:
            return None
        verdict = max(inner, ALLOW if passed else WARN)
        rescued_by = action if not passed and verdict == WARN else ""
        self.visits[place] = self.visits[place]._replace(verdict=verdict, rescued_by=rescued_by)
        return verdict

    def _end_at(self, step: Step, called_by: str) -> Verdict:
        result = GateResult(gate=step.gate.name, status="not-started", reason=step.fault)
        self.visits.append(Visit(result, STOP, "STOP", called_by))
        return STOP


def advance(plan: Plan, results: Results) -> Walk:
    """Return which gates are due after these results, or what it all means in the end."""
    walker = _Walker(plan, results)
    collect = plan.hook.strategy == "collect"
    verdict: Verdict = ALLOW
    for place, name in enumerate(plan.listed):
        due_before = len(walker.due)
        found = walker.visit(name)
        if found is None:
            if not collect or _holds_back(walker.due, due_before):
                break
            continue
        verdict = max(verdict, found)
        if verdict == STOP or (verdict == BLOCK and not collect):
            walker.due.clear()
            return _walk(walker, verdict, plan.listed[place + 1 :])
    return _walk(walker, verdict, ())


def _holds_back(due: list[Due], before: int) -> bool:
    """Tell whether nothing after the newest due gate may be looked at yet.

    A gate that writes runs alone: after those before it, and before all that come after it.
    """
    if not due[-1].step.gate.writes:
        return False
    if before:
        due.pop()
    return True


def _walk(walker: _Walker, verdict: Verdict, rest: tuple[str, ...]) -> Walk:
    met = {visit.result.gate for visit in walker.visits}
    due = tuple(dict.fromkeys(walker.due))
    return Walk(due, verdict, tuple(walker.visits), tuple(n for n in rest if n not in met))


def _plain(action: str, *, passed: bool) -> Verdict:
    match action:
        case "STOP":
            return STOP
        case "BLOCK":
            return BLOCK
        case _:
            return ALLOW if passed else WARN
