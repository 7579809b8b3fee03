"""Schedule a plan: which gates are due, what the results mean, and messages about them.

The walk is a fold: it starts from the first gate each time, with all results so far, and either
comes to a gate without a result, which is due, or to the end.

A result counts for the content that the gate saw. When a gate that writes has changed files, the
content differs, and a gate met again after that runs again. So does, once and at the end, a gate
that passed on files that were changed later.
"""

from __future__ import annotations

from gitgates.core.record import Record
from gitgates.core.types import (
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
    from collections.abc import Collection, Iterable, Mapping

    from gitgates.core.types import Level

    # (gate, how often content had changed when it ran) → its result
    Results = Mapping[tuple[str, int], GateResult]

# The reason of a gate that was killed because the run was over.
ENDED = "the run was interrupted"
# That of a gate that was ended, because another one had blocked and the hook has `fail_fast`.
CANCELLED = "cancelled: another gate blocked"

# Hooks whose subject is a commit being made: a change made by a gate would not be in it.
BEFORE_A_COMMIT = ("pre-commit", "pre-merge-commit")
# Begins the reason of a gate whose turn would have come after the host gave up.
WAITS = "it waits for "
_NOT_COMPARED = "nothing was compared: "
_CIRCLE = "gates keep changing what it has checked"
_SHOWN = 3  # paths, on one line
_PASSES = ("passed", "flaky")
_IDLE = ("skipped", "unchecked", "not-run")  # statuses of gates that have checked nothing
_VERDICTS: dict[str, Level] = {"STOP": STOP, "BLOCK": BLOCK}  # others: by the result


class Due(Record):
    """A gate that should run now."""

    step: Step
    generation: int


class Walk(Record):
    """The state of a walk: due gates, visited gates, the verdict."""

    due: tuple[Due, ...]  # empty: it is over
    verdict: Level
    visits: tuple[Visit, ...]
    not_run: tuple[str, ...]  # listed gates that the walk ended before


class _Walker:
    """One walk through a plan with the results so far."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self.plan = plan
        self.results = results
        self.steps = {step.gate.name: step for step in plan.steps}
        self.may_change = plan.hook.name not in (*BEFORE_A_COMMIT, "pre-push")
        self.generation = 0  # how often gates have changed the content by now
        self.changed: list[frozenset[str]] = []  # the files, each time
        self.passed: dict[str, int] = {}  # gate that writes nothing → when it has passed last
        self.due: list[Due] = []
        self.visits: list[Visit] = []

    def walk(self) -> Walk:
        verdict, is_over = self.visit_all(self.plan.listed)
        if is_over or (verdict == BLOCK and self.plan.hook.fail_fast):
            return self.over(verdict)
        if not self.due and verdict < BLOCK:
            verdict = max(verdict, self.check_again())
        due = tuple(dict.fromkeys(self.due))
        return Walk(due=due, verdict=verdict, visits=tuple(self.visits), not_run=())

    def visit_all(self, names: Iterable[str]) -> tuple[Level, bool]:
        """Visit gates, one after the other unless they may run at once.

        Return what they mean, and whether no other gate may run.
        """
        collect = self.plan.hook.strategy == "collect"
        unfinished: set[str] = set()
        verdict: Level = ALLOW
        for name in names:
            level = self.visit(name)
            if level is None:
                if not collect or self.is_held_back(unfinished):
                    break
                unfinished.add(name)
                continue
            verdict = max(verdict, level)
            if verdict == STOP or (verdict == BLOCK and not collect):
                return verdict, True
        return verdict, False

    def check_again(self) -> Level:
        """Visit gates again that have passed on files which another gate changed later."""
        verdict, is_over = self.visit_all(self.stale())
        if not (self.due or is_over) and (circular := self.stale()):
            reason = f"{', '.join(f'`{name}`' for name in circular)} would have to run again"
            result = GateResult(gate=circular[0], status="failed", reason=f"{reason}: {_CIRCLE}")
            self.visits.append(Visit(result=result, verdict=BLOCK, action="BLOCK"))
            return BLOCK
        return verdict

    def stale(self) -> list[str]:
        """Return the gates that have passed on content that no longer exists."""
        return [name for name, when in self.passed.items() if self.has_seen(name, when)]

    def has_seen(self, name: str, when: int) -> bool:
        """Return whether a gate is about any of the files that were changed since."""
        paths = self.steps[name].paths
        since = frozenset[str]().union(*self.changed[when:])
        return bool(since and (not paths or not since.isdisjoint(paths)))

    def visit(self, listed_name: str) -> Level | None:
        """Return what a gate and its chain mean; None if one of them has not run yet.

        A loop, not a recursion: a chain may be longer than the interpreter's stack.
        """
        begun = len(self.visits)
        led_on: list[tuple[int, bool]] = []  # the places of visits that led on; did they pass
        name, called_by = listed_name, ""
        while True:
            step = self.steps[name]
            result = self.results.get((name, self.generation))
            if result is None and not (step.fault or step.skip):
                self.due.append(Due(step=step, generation=self.generation))
                return None
            visit, passed = self._visit_gate(step, result, called_by)
            if visit.result.status in _IDLE and not all(passed for _, passed in led_on):
                # Nothing has checked what failed: that saves no gate.
                visit = visit._replace(verdict=BLOCK, action="BLOCK")
            self.visits.append(visit)
            if visit.action in ACTIONS:
                return _unwind(self.visits, led_on, begun)
            led_on.append((len(self.visits) - 1, passed))
            name, called_by = visit.action, name

    def _visit_gate(
        self, step: Step, result: GateResult | None, called_by: str
    ) -> tuple[Visit, bool]:
        """Return the effect of a gate's action on its result, and whether it passed."""
        if result is None or step.fault or step.skip:
            return _unrun(step, called_by), False
        if result.status == "skipped":
            return _allowed(result, called_by), False
        if result.status == "unchecked":  # neither action applies
            verdict = ALLOW if step.gate.actions.observe else WARN
            return _allowed(result, called_by)._replace(verdict=verdict), False
        passed = self._has_passed(result)
        self.passed.pop(step.gate.name, None)
        if passed and not (step.gate.program.writes or step.gate.actions.observe):
            self.passed[step.gate.name] = self.generation
        if step.gate.program.writes and result.changed_paths:
            self.generation += 1  # from here on, gates check different content
            self.changed.append(frozenset(result.changed_paths))
        if result.status == "killed" and result.reason == ENDED:
            # We ended it: there is nothing to act upon.
            return Visit(result=result, verdict=BLOCK, action="BLOCK", called_by=called_by), passed
        if result.reason == CANCELLED:
            return _allowed(result, called_by), passed  # it is not what blocks
        action = step.gate.actions.on_pass if passed else step.gate.actions.on_fail
        if step.gate.actions.observe or result.findings.excused:
            would = action if step.gate.actions.observe else ""
            return _allowed(result, called_by)._replace(would=would), passed
        verdict = _VERDICTS.get(action, ALLOW if passed and result.status == "passed" else WARN)
        return Visit(result=result, verdict=verdict, action=action, called_by=called_by), passed

    def _has_passed(self, result: GateResult) -> bool:
        left_out = set(result.changed_paths) - set(result.restaged_paths)
        return result.status in _PASSES and (self.may_change or not left_out)

    def is_held_back(self, unfinished: set[str]) -> bool:
        """Return whether no gate after the newest due one may start yet.

        A gate that writes runs alone: after those before it, and before all that come after it.
        """
        step = self.due[-1].step
        if unfinished if step.gate.program.writes else not unfinished.isdisjoint(step.after):
            self.due.pop()
        return step.gate.program.writes

    def over(self, verdict: Level) -> Walk:
        """Return a finished walk in which all gates that were not visited do not run."""
        met = {visit.result.gate for visit in self.visits}
        for name in self.plan.listed:
            # Some may have been under way when another one stopped the run.
            result = self.results.get((name, self.generation))
            if result and name not in met:
                self.visits.append(_allowed(result))
                met.add(name)
        not_run = tuple(name for name in self.plan.listed if name not in met)
        return Walk(due=(), verdict=verdict, visits=tuple(self.visits), not_run=not_run)


def advance(plan: Plan, results: Results) -> Walk:
    """Return which of a plan's gates are due after these results, or the verdict if none is."""
    return _Walker(plan, results).walk()


def _unwind(visits: list[Visit], led_on: list[tuple[int, bool]], begun: int) -> Level:
    """Give each gate of a chain the verdict of the gate that it called; return the first's."""
    verdict = visits[-1].verdict
    for place, passed in reversed(led_on):
        visit = visits[place]
        rescued_by = visit.action if not passed and verdict == ALLOW else ""
        verdict = max(verdict, ALLOW if passed else WARN)
        visits[place] = visit._replace(verdict=verdict, rescued_by=rescued_by)
    return visits[begun].verdict


def _unrun(step: Step, called_by: str) -> Visit:
    """Return the visit of a gate that is skipped or cannot run."""
    name = step.gate.name
    if step.fault:
        result = GateResult(gate=name, status="not-started", reason=step.fault)
        return Visit(result=result, verdict=STOP, action="STOP", called_by=called_by)
    return _allowed(GateResult(gate=name, status="skipped", reason=step.skip), called_by)


def _allowed(result: GateResult, called_by: str = "") -> Visit:
    return Visit(result=result, verdict=ALLOW, action="CONTINUE", called_by=called_by)


def make_decision(plan: Plan, walk: Walk) -> Decision:
    """Summarise a finished walk: the strongest verdict, which `_visit_gate` gave, and why."""
    deciding = _deciding(walk.visits, walk.verdict)
    notes = tuple(step.note for step in plan.steps if step.note)
    return Decision(
        verdict=walk.verdict,
        decided_by=deciding[0].result.gate if deciding else "",
        reason=_reasons(deciding),
        visits=walk.visits,
        not_run=walk.not_run,
        notes=tuple(
            note
            for note in (
                plan.event.note,
                *notes,
                *observed(walk.visits),
                _staging_hint(plan, deciding),
            )
            if note
        ),
    )


def blocking_gates(decision: Decision) -> tuple[str, ...]:
    """Return the gates that block, if their own lines already say all of the reason."""
    deciding = _deciding(decision.visits, decision.verdict)
    if decision.verdict < BLOCK or decision.reason != _reasons(deciding):
        return ()
    if any(v.result.status == "passed" or v.result.reason.endswith(_CIRCLE) for v in deciding):
        return ()
    return tuple(dict.fromkeys(visit.result.gate for visit in deciding))


def _deciding(visits: tuple[Visit, ...], verdict: Level) -> tuple[Visit, ...]:
    return tuple(v for v in visits if v.verdict == verdict != ALLOW and _decides(v))


def _staging_hint(plan: Plan, deciding: tuple[Visit, ...]) -> str:
    """Return the hint to stage the files that fixers changed before a commit."""
    writes = {step.gate.name for step in plan.steps if step.gate.program.writes}
    left_out = [v.result.gate for v in deciding if v.verdict >= BLOCK and _left_out(v.result)]
    fixers = [name for name in left_out if name in writes]
    if plan.hook.name not in BEFORE_A_COMMIT or not left_out:
        return ""
    if not fixers:
        return "review the changes (git diff), stage them (git add) and commit again"
    if reason := next((v.result.reason for v in deciding if _left_out(v.result)), ""):
        what_to_do = "stage what you want of them (git add -p) and commit again"
        return f"{reason}: fix those files in the working tree, {what_to_do}"
    text = "review the fixes (git diff), stage them (git add) and commit again"
    restages = any(step.gate.program.restage for step in plan.steps if step.gate.name in fixers)
    if restages or plan.event.host == "pre-commit":  # under that, no gate stages anything
        return text
    return f"{text}; with `restage = true` the gate stages it"


def observed(visits: tuple[Visit, ...]) -> tuple[str, ...]:
    """Return messages about what gates with `observe` would have done."""
    return tuple(
        f"gate `{visit.result.gate}` only observes: it {describe(visit.result)}, which would have "
        + ("been a warning" if visit.would == "CONTINUE" else f"led to {_target(visit.would)}")
        for visit in visits
        if visit.would and (visit.would != "CONTINUE" or visit.result.status != "passed")
    )


def _target(action: str) -> str:
    return action if action in ACTIONS else f"gate `{action}`"


def _decides(visit: Visit) -> bool:
    """Return whether a visit has a verdict of its own, not of the gate that it called."""
    if visit.result.reason == CANCELLED:
        return False
    if visit.verdict in (BLOCK, STOP):
        return visit.action in ("BLOCK", "STOP")
    return visit.result.status != "passed" or bool(visit.result.changed_paths)


def _reasons(deciding: tuple[Visit, ...]) -> str:
    return "; ".join(dict.fromkeys(_reason(visit) for visit in deciding))


def _reason(visit: Visit) -> str:
    result, ending = visit.result, describe(visit.result)
    if visit.verdict == STOP and result.status == "not-started" and visit.action == "STOP":
        return result.reason or ending
    if visit.verdict >= BLOCK and result.status in _PASSES and not result.changed_paths:
        return f"gate `{result.gate}` passed, and its on_pass is {visit.action}"
    saved = visit.verdict < BLOCK and visit.rescued_by
    return f"gate `{result.gate}` {ending}" + (f", but `{saved}` passed" if saved else "")


def unchecked_gates(decision: Decision) -> tuple[str, ...]:
    """Return a run's gates that had nothing to check, in the order of the run."""
    idle = (v.result.gate for v in decision.visits if v.result.status == "unchecked")
    return tuple(dict.fromkeys(idle))


def is_waiting(result: GateResult) -> bool:
    """Return whether a gate did not run because it was not its turn yet."""
    return result.status == "not-run" and result.reason.startswith(WAITS)


def describe(result: GateResult) -> str:
    """Return how a gate ended, in a few words: `failed (exit status 1)`."""
    left_out = _left_out(result)
    match result.status:
        case "failed":
            status = f"exit status {result.exit_status}" if result.exit_status else ""
            return f"failed ({'; '.join(filter(None, (status, result.reason)))})"
        case "killed":
            return "was killed" + (f" by signal {result.signal}" if result.signal else "")
        case "timed-out":
            return f"timed out ({result.reason})" if result.reason else "timed out"
        case "not-started" | "flaky":
            how = "is flaky" if result.status == "flaky" else "could not be started"
            return f"{how} ({result.reason})"
        case "skipped" | "not-run" | "unchecked":
            how = "checked nothing" if result.status == "unchecked" else "was not run"
            if result.reason.startswith(_NOT_COMPARED):
                how = "compared nothing"
            return f"{how} ({result.reason.removeprefix(_NOT_COMPARED)})"
        case "passed" if result.restaged_paths and not left_out:
            return f"changed and restaged {count_files(result.restaged_paths)}"
        case "passed" if result.changed_paths:
            return f"changed {count_files(left_out)}"
        case status:
            return status


def _left_out(result: GateResult) -> tuple[str, ...]:
    """Return what a gate changed and did not restage."""
    return tuple(path for path in result.changed_paths if path not in result.restaged_paths)


def new_failures(result: GateResult) -> list[str]:
    """Return the titles of a gate's failures that count, if it has some that do not."""
    known = {*result.findings.accepted}
    return [
        each.title for each in result.findings.failures if known and each.fingerprint not in known
    ]


def count_files(paths: Collection[str]) -> str:
    """Return how many files, and the first of them: `2 files: a.py, b.py`."""
    return f"{len(paths)} file{'s' if len(paths) > 1 else ''}: {first_names(paths)}"


def undeclared(paths: Collection[str], beside: Collection[str]) -> str:
    """Return the message about files changed without `writes`, by a gate or one `beside` it."""
    others = " or ".join(f"`{name}`" for name in sorted(beside))
    who = f"it or {others}, which ran in parallel," if others else "it"
    return f"{who} changed {count_files(paths)}; gates that fix files need `writes = true`"


def conflicts_with_unstaged(paths: Collection[str]) -> str:
    """Return the message about files that cannot be restaged."""
    return f"the fix conflicts with unstaged changes in {first_names(paths)}"


def undeclared_staging(paths: Collection[str]) -> str:
    """Return the message about a gate without `restage` that changed the index being committed."""
    what_to_do = "gates that stage their fixes need `writes = true` and `restage = true`"
    return f"it changed the index being committed: {first_names(paths)}; {what_to_do}"


def changed_meanwhile(paths: Collection[str], again: str) -> str:
    """Return the message about files changed during the check; `again`: how to repeat it."""
    it_was = "it was" if len(paths) == 1 else "they were"
    return f"{first_names(paths)} changed while {it_was} checked; {again} again"


def first_names(names: Collection[str]) -> str:
    """Return the first of some names, in order, on one line."""
    return ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
