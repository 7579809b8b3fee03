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

# The reason of a gate that was killed because the run was over.
ENDED = "the run was ended"

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
        self.may_change = plan.hook.name not in (*BEFORE_A_COMMIT, "pre-push")
        self.results = results
        self.generation = 0
        self.due: list[Due] = []
        self.visits: list[Visit] = []

    def visit(self, listed: str) -> Verdict | None:
        """Return what a gate and its chain mean; None where one of them has not run yet.

        A loop, not a recursion: a chain may be longer than the interpreter's stack.
        """
        chain: list[tuple[int, bool]] = []  # the places of those that led on, and did they pass
        name, called_by = listed, ""
        while True:
            step = self.steps[name]
            result = self.results.get((name, self.generation))
            if step.fault or step.skip:
                self.visits.append(_unrun(step, called_by))
                break
            if result is None:
                self.due.append(Due(step, self.generation))
                return None
            passed = self._passed(step, result)
            if result.status == "killed" and result.reason == ENDED:
                self.visits.append(Visit(result, BLOCK, "BLOCK", called_by))
                break  # we ended it: that is nothing to act upon
            action = step.gate.on_pass if passed else step.gate.on_fail
            if step.gate.observe or result.excused:
                would = action if step.gate.observe else ""
                self.visits.append(Visit(result, ALLOW, "CONTINUE", called_by, would=would))
                break
            self.visits.append(Visit(result, _plain(action, passed=passed), action, called_by))
            if action in ACTIONS:
                break
            chain.append((len(self.visits) - 1, passed))
            name, called_by = action, name
        return self._unwind(chain, self.visits[-1].verdict)

    def note_ended(self, names: tuple[str, ...]) -> None:
        """Take note of gates that were under way when another one stopped the run."""
        for name in names:
            result = self.results.get((name, self.generation))
            if result and not any(visit.result is result for visit in self.visits):
                self.visits.append(Visit(result, ALLOW, "CONTINUE"))

    def _passed(self, step: Step, result: GateResult) -> bool:
        self.generation += step.gate.writes and bool(result.changed_paths)
        left_out = set(result.changed_paths) - set(result.restaged_paths)
        return result.status == "passed" and (self.may_change or not left_out)

    def _unwind(self, chain: list[tuple[int, bool]], verdict: Verdict) -> Verdict:
        """Let each gate of a chain take the verdict of what it led to."""
        for place, passed in reversed(chain):
            visit = self.visits[place]
            rescued_by = visit.action if not passed and verdict == ALLOW else ""
            verdict = max(verdict, ALLOW if passed else WARN)
            self.visits[place] = visit._replace(verdict=verdict, rescued_by=rescued_by)
        return verdict


def _unrun(step: Step, called_by: str) -> Visit:
    """Return the visit of a gate that is skipped, or that cannot be run at all."""
    name = step.gate.name
    if step.fault:
        result = GateResult(gate=name, status="not-started", reason=step.fault)
        return Visit(result, STOP, "STOP", called_by)
    return Visit(
        GateResult(gate=name, status="skipped", reason=step.skip), ALLOW, "CONTINUE", called_by
    )


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
            walker.note_ended(plan.listed[place + 1 :])
            return _walk(walker, verdict, plan.listed)
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
