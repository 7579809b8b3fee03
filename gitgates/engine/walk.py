"""Walk a plan: which gates are due, and what the results so far mean.

The walk is a fold: it starts from the first gate each time, with all results so far, and either
comes to a gate without a result, which is due, or to the end. How far each chain had come is kept
in between, for speed alone: a chain may have thousands of gates.

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


class _Chain:
    """How far a listed gate, and those that it led to, have come."""

    def __init__(self, listed: str, generation: int) -> None:
        self.name, self.called_by = listed, ""  # the gate to go on with
        self.generation = generation  # of the content that it is met with
        self.visits: list[Visit] = []
        self.led_on: list[tuple[int, bool]] = []  # the places of those that led on; did they pass
        self.verdict: Verdict | None = None  # None: a gate has not run yet


class Walker:
    """Walks one plan again and again, while results are added."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps = {step.gate.name: step for step in plan.steps}
        self.may_change = plan.hook.name not in (*BEFORE_A_COMMIT, "pre-push")
        self.chains: dict[tuple[str, int], _Chain] = {}
        self._begin({})

    def _begin(self, results: Results) -> None:
        self.results = results
        self.generation = 0
        self.due: list[Due] = []
        self.visits: list[Visit] = []

    def advance(self, results: Results) -> Walk:
        """Return which gates are due after these results, or what it all means in the end."""
        self._begin(results)
        collect = self.plan.hook.strategy == "collect"
        listed = self.plan.listed
        verdict: Verdict = ALLOW
        for place, name in enumerate(listed):
            due_before = len(self.due)
            found = self.visit(name)
            if found is None:
                if not collect or _holds_back(self.due, due_before):
                    break
                continue
            verdict = max(verdict, found)
            if verdict == STOP or (verdict == BLOCK and not collect):
                self.due.clear()
                self.note_ended(listed[place + 1 :])
                return _walk(self, verdict, listed)
        return _walk(self, verdict, ())

    def visit(self, listed: str) -> Verdict | None:
        """Return what a gate and its chain mean; None where one of them has not run yet."""
        met_at = (listed, self.generation)
        chain = self.chains.setdefault(met_at, _Chain(*met_at))
        self.generation = chain.generation
        if chain.verdict is None:
            self._follow(chain)
            chain.generation = self.generation
        self.visits += chain.visits
        return chain.verdict

    def _follow(self, chain: _Chain) -> None:
        """Go on along a chain, to its end or to a gate that has not run yet.

        A loop, not a recursion: a chain may be longer than the interpreter's stack.
        """
        while True:
            name, called_by = chain.name, chain.called_by
            step = self.steps[name]
            result = self.results.get((name, self.generation))
            if step.fault or step.skip:
                chain.visits.append(_unrun(step, called_by))
                break
            if result is None:
                self.due.append(Due(step, self.generation))
                return
            passed = self._passed(step, result)
            if result.status == "killed" and result.reason == ENDED:
                chain.visits.append(Visit(result, BLOCK, "BLOCK", called_by))
                break  # we ended it: that is nothing to act upon
            action = step.gate.on_pass if passed else step.gate.on_fail
            if step.gate.observe or result.excused:
                would = action if step.gate.observe else ""
                chain.visits.append(Visit(result, ALLOW, "CONTINUE", called_by, would=would))
                break
            chain.visits.append(Visit(result, _plain(action, passed=passed), action, called_by))
            if action in ACTIONS:
                break
            chain.led_on.append((len(chain.visits) - 1, passed))
            chain.name, chain.called_by = action, name
        _unwind(chain)

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


def _unwind(chain: _Chain) -> None:
    """Let each gate of a chain take the verdict of what it led to."""
    verdict = chain.visits[-1].verdict
    for place, passed in reversed(chain.led_on):
        visit = chain.visits[place]
        rescued_by = visit.action if not passed and verdict == ALLOW else ""
        verdict = max(verdict, ALLOW if passed else WARN)
        chain.visits[place] = visit._replace(verdict=verdict, rescued_by=rescued_by)
    chain.verdict = verdict


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
    """Return which gates of a plan are due after these results, or what it all means in the end."""
    return Walker(plan).advance(results)


def _holds_back(due: list[Due], before: int) -> bool:
    """Tell whether nothing after the newest due gate may be looked at yet.

    A gate that writes runs alone: after those before it, and before all that come after it.
    """
    if not due[-1].step.gate.writes:
        return False
    if before:
        due.pop()
    return True


def _walk(walker: Walker, verdict: Verdict, rest: tuple[str, ...]) -> Walk:
    met = {visit.result.gate for visit in walker.visits} if rest else frozenset[str]()
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
