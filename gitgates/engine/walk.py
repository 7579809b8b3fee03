"""Walk a plan: which gates are due, and what the results mean, in words for a person.

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
    Decision,
    GateResult,
    Plan,
    Step,
    Visit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gitgates.types import Verdict

    # (gate, how often content had changed when it ran) → its result
    Results = Mapping[tuple[str, int], GateResult]

# The reason of a gate that was killed because the run was over.
ENDED = "the run was ended"

# Hooks whose subject is a commit being made: a change made by a gate would not be in it.
BEFORE_A_COMMIT = ("pre-commit", "pre-merge-commit")
_SHOWN = 3  # paths, on one line


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
