"""The walk over any plan ends, runs each gate once per content, and obeys the actions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitgates.engine.plan import make_plan
from gitgates.engine.walk import advance
from gitgates.types import ALLOW, BLOCK, STOP, WARN, Config, Event, Gate, GateResult, Hook, Plan

EVENT = Event(host="git", name="pre-push", root_abs="/r", paths=())
WORDS = ["CONTINUE", "CONTINUE", "BLOCK", "STOP"]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of up to six gates whose chains lead only forward, so that none comes back."""
    count = draw(st.integers(1, 6))
    gates = [
        Gate(
            name=f"g{n}",
            command="x",
            on_pass=draw(st.sampled_from([*WORDS, *(f"g{m}" for m in range(n + 1, count))])),
            on_fail=draw(st.sampled_from([*WORDS, *(f"g{m}" for m in range(n + 1, count))])),
            writes=draw(st.booleans()),
            priority=draw(st.sampled_from(["critical", "high", "normal", "low"])),
        )
        for n in range(count)
    ]
    listed = tuple(draw(st.lists(st.sampled_from([gate.name for gate in gates]), max_size=6)))
    strategy = "collect" if draw(st.booleans()) else "sequence"
    hook = Hook(name="pre-push", gates=listed, strategy=strategy)  # type: ignore[arg-type]
    return make_plan(Config(gates=tuple(gates), hooks=(hook,)), hook, EVENT, {})


def run(plan: Plan, failing: set[str], changing: set[str]) -> tuple[int, list[tuple[str, int]]]:
    """Run a plan with made-up results; return the verdict and what ran on which content."""
    results: dict[tuple[str, int], GateResult] = {}
    ran: list[tuple[str, int]] = []
    while True:
        walk = advance(plan, results)
        if not walk.due:
            return walk.verdict, ran
        if any(due.step.gate.writes for due in walk.due):
            assert len(walk.due) == 1  # what writes runs alone
        if plan.hook.strategy == "sequence":
            assert len(walk.due) == 1
        for due in walk.due:
            name = due.step.gate.name
            key = (name, due.generation)
            assert key not in results  # once per content
            changed = ("f",) if name in changing and due.step.gate.writes else ()
            status = "failed" if name in failing else "passed"
            results[key] = GateResult(gate=name, status=status, changed_paths=changed)  # type: ignore[arg-type]
            ran.append(key)


@given(plan=plans(), data=st.data())
def test_every_walk_ends(plan: Plan, data: st.DataObject) -> None:
    names = [step.gate.name for step in plan.steps] or ["none"]
    failing = data.draw(st.sets(st.sampled_from(names)))
    changing = data.draw(st.sets(st.sampled_from(names)))
    verdict, ran = run(plan, failing, changing)
    if not failing & {name for name, _ in ran} and all(
        step.gate.on_pass not in ("BLOCK", "STOP") for step in plan.steps
    ):
        assert verdict == ALLOW
    if plan.hook.strategy == "collect" and verdict < STOP:
        assert {name for name, _ in ran} >= set(plan.listed)


def verdict_of(*gates: Gate, failing: set[str], listed: tuple[str, ...] = ("a",)) -> int:
    hook = Hook(name="pre-push", gates=listed)
    return run(make_plan(Config(gates=gates), hook, EVENT, {}), failing, set())[0]


def test_precedence() -> None:
    a = Gate(name="a", command="x")
    b = Gate(name="b", command="x", on_fail="STOP")
    warn = Gate(name="a", command="x", on_fail="CONTINUE")
    assert verdict_of(a, failing=set()) == ALLOW
    assert verdict_of(warn, failing={"a"}) == WARN
    assert verdict_of(a, failing={"a"}) == BLOCK
    assert verdict_of(warn, b, failing={"a", "b"}, listed=("a", "b")) == STOP


def test_priority_then_listed_order() -> None:
    gates = tuple(
        Gate(name=name, command="x", priority=priority)
        for name, priority in (
            ("n1", "normal"),
            ("low", "low"),
            ("top", "critical"),
            ("hi", "high"),
        )
    )
    hook = Hook(name="pre-push", gates=("n1", "low", "top", "n1", "hi"))
    plan = make_plan(Config(gates=gates), hook, EVENT, {})
    assert plan.listed == ("top", "hi", "n1", "n1", "low")
