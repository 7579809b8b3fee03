"""The walk over any plan ends, runs each gate once per content, and obeys the actions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgates.config.load import checked
from gitgates.core.types import (
    ALLOW,
    BLOCK,
    STOP,
    WARN,
    Config,
    Event,
    Findings,
    Gate,
    GateResult,
    Hook,
    Plan,
    make_gate,
)
from gitgates.engine.plan.plan import make_plan
from gitgates.engine.plan.walk import CANCELLED, advance, make_decision

EVENT = Event(host="manual", name="manual", root_abs="/r", paths=())
WORDS = ["CONTINUE", "CONTINUE", "BLOCK", "STOP"]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of up to six gates whose chains lead only forward, so none comes back."""
    count = draw(st.integers(1, 6))
    gates = [
        make_gate(
            name=f"g{n}",
            command="x",
            on_pass=draw(st.sampled_from([*WORDS, *(f"g{m}" for m in range(n + 1, count))])),
            on_fail=draw(st.sampled_from([*WORDS, *(f"g{m}" for m in range(n + 1, count))])),
            writes=draw(st.booleans()),
            # Also what no configuration may have: gates that would wait for each other.
            after=tuple(f"g{m}" for m in draw(st.sets(st.integers(0, count - 1), max_size=2))),
            priority=draw(st.sampled_from(["critical", "high", "normal", "low"])),
        )
        for n in range(count)
    ]
    listed = tuple(draw(st.lists(st.sampled_from([gate.name for gate in gates]), max_size=6)))
    strategy = "collect" if draw(st.booleans()) else "sequence"
    hook = Hook(
        name="manual",
        gates=listed,
        strategy=strategy,  # type: ignore[arg-type]
        fail_fast=draw(st.booleans()),
    )
    return make_plan(Config(gates=tuple(gates), hooks=(hook,)), hook, EVENT, {})


def run(plan: Plan, failing: set[str], changing: set[str]) -> tuple[int, list[tuple[str, int]]]:
    """Run a plan with made-up results; return the verdict and what ran on which content."""
    results: dict[tuple[str, int], GateResult] = {}
    ran: list[tuple[str, int]] = []
    while True:
        walk = advance(plan, results)
        if not walk.due:
            return walk.verdict, ran
        if any(due.step.gate.program.writes for due in walk.due):
            assert len(walk.due) == 1  # what writes runs alone
        if plan.hook.strategy == "sequence":
            assert len(walk.due) == 1
        for due in walk.due:
            name = due.step.gate.name
            key = (name, due.generation)
            assert key not in results  # once per content
            # A fixer settles; one that does not is a circle for a check that leads to it.
            is_new = name not in {gate for gate, _ in ran}
            changed = ("f",) if is_new and name in changing and due.step.gate.program.writes else ()
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
        step.gate.actions.on_pass not in ("BLOCK", "STOP") for step in plan.steps
    ):
        assert verdict == ALLOW
    if plan.hook.strategy == "collect" and verdict < (BLOCK if plan.hook.fail_fast else STOP):
        assert {name for name, _ in ran} >= set(plan.listed)


def verdict_of(*gates: Gate, failing: set[str], listed: tuple[str, ...] = ("a",)) -> int:
    hook = Hook(name="manual", gates=listed)
    return run(make_plan(Config(gates=gates), hook, EVENT, {}), failing, set())[0]


def test_chains_of_any_depth() -> None:
    depth = 1_100  # longer than the interpreter's stack is deep
    gates = "".join(f"[gates.g{n}]\ncommand = 'x'\non_pass = 'g{n + 1}'\n" for n in range(depth))
    gates += f"[gates.g{depth}]\ncommand = 'x'\n[hooks.manual]\ngates = ['g0']\n"
    config = checked({"gitgates.toml": gates.encode()})
    assert config
    plan = make_plan(config, config.hooks[0], EVENT, {})
    names = [f"g{n}" for n in range(depth + 1)]
    results = {(name, 0): GateResult(gate=name, status="passed") for name in names}
    first, last = advance(plan, {}), advance(plan, results)
    assert [due.step.gate.name for due in first.due] == ["g0"]
    assert [visit.result.gate for visit in last.visits] == names
    assert (last.due, last.verdict) == ((), ALLOW)


def test_precedence() -> None:
    a = make_gate(name="a", command="x")
    b = make_gate(name="b", command="x", on_fail="STOP")
    warn = make_gate(name="a", command="x", on_fail="CONTINUE")
    assert verdict_of(a, failing=set()) == ALLOW
    assert verdict_of(warn, failing={"a"}) == WARN
    assert verdict_of(a, failing={"a"}) == BLOCK
    assert verdict_of(warn, b, failing={"a", "b"}, listed=("a", "b")) == STOP


def test_priority_then_listed_order() -> None:
    gates = tuple(
        make_gate(name=name, command="x", priority=priority)
        for name, priority in (
            ("n1", "normal"),
            ("low", "low"),
            ("top", "critical"),
            ("hi", "high"),
        )
    )
    hook = Hook(name="manual", gates=("n1", "low", "top", "n1", "hi"))
    plan = make_plan(Config(gates=gates), hook, EVENT, {})
    assert plan.listed == ("top", "hi", "n1", "n1", "low")


def ended(name: str, status: str, **fields: Any) -> dict[tuple[str, int], GateResult]:
    return {(name, 0): GateResult(gate=name, status=status, **fields)}  # type: ignore[arg-type]


def decided(
    *gates: Gate, results: dict[tuple[str, int], GateResult], strategy: str = "sequence"
) -> tuple[int, list[tuple[str, int, str, str]], tuple[str, ...], str]:
    """Return the verdict, each visit (gate, verdict, action, would), the notes and the reason."""
    names = tuple(gate.name for gate in gates if not gate.name.startswith("chained"))
    hook = Hook(name="manual", gates=names, strategy=strategy)  # type: ignore[arg-type]
    plan = make_plan(Config(gates=gates), hook, EVENT, {})
    walk = advance(plan, results)
    assert not walk.due
    decision = make_decision(plan, walk)
    visits = [(v.result.gate, int(v.verdict), v.action, v.would) for v in decision.visits]
    return decision.verdict, visits, decision.notes, decision.reason


FAILED_SO = "gate `a` only observes: it failed (exit status 1), which would have "


@pytest.mark.parametrize(
    ("actions", "status", "would", "notes"),
    [
        (("CONTINUE", "BLOCK"), "failed", "BLOCK", (FAILED_SO + "led to BLOCK",)),
        (("CONTINUE", "STOP"), "failed", "STOP", (FAILED_SO + "led to STOP",)),
        (("CONTINUE", "CONTINUE"), "failed", "CONTINUE", (FAILED_SO + "been a warning",)),
        (("CONTINUE", "chained"), "failed", "chained", (FAILED_SO + "led to gate `chained`",)),
        (("CONTINUE", "BLOCK"), "passed", "CONTINUE", ()),
        (
            ("BLOCK", "CONTINUE"),
            "passed",
            "BLOCK",
            ("gate `a` only observes: it passed, which would have led to BLOCK",),
        ),
        (
            ("CONTINUE", "BLOCK"),
            "not-run",
            "BLOCK",
            ("gate `a` only observes: it was not run (late), which would have led to BLOCK",),
        ),
    ],
)
def test_a_gate_that_only_observes_decides_nothing(
    actions: tuple[str, str], status: str, would: str, notes: tuple[str, ...]
) -> None:
    observing = make_gate(
        name="a", command="x", observe=True, on_pass=actions[0], on_fail=actions[1]
    )
    chained = make_gate(name="chained", command="x")
    exit_status = 1 if status == "failed" else None
    reason = "late" if status == "not-run" else ""
    one = ended("a", status, exit_status=exit_status, reason=reason)
    # What it would lead to does not run, and what comes after it does.
    found = decided(observing, chained, make_gate(name="b", command="x"), results=one | B_PASSED)
    assert found == (
        ALLOW,
        [("a", ALLOW, "CONTINUE", would), ("b", ALLOW, "CONTINUE", "")],
        notes,
        "",
    )


B_PASSED = ended("b", "passed")


def test_an_observing_gate_hides_no_other_failure() -> None:
    observing = make_gate(name="a", command="x", observe=True)
    both = ended("a", "failed", exit_status=1) | ended("b", "failed", exit_status=2)
    for strategy in ("sequence", "collect"):
        verdict, _visits, notes, reason = decided(
            observing, make_gate(name="b", command="x"), results=both, strategy=strategy
        )
        assert (verdict, reason) == (BLOCK, "gate `b` failed (exit status 2)")
        assert notes == (FAILED_SO + "led to BLOCK",)


def test_an_observing_gate_that_is_misconfigured_stops() -> None:
    found = decided(make_gate(name="a", observe=True), results={})
    assert (found[0], found[3]) == (STOP, "gate `a` has no command")


@pytest.mark.parametrize("on_fail", ["BLOCK", "STOP", "CONTINUE", "chained"])
def test_a_failure_that_is_excused_does_not_count(on_fail: str) -> None:
    gates = (
        make_gate(name="a", command="x", on_fail=on_fail),
        make_gate(name="chained", command="x"),
    )
    found = decided(
        *gates,
        make_gate(name="b", command="x"),
        results=ended("a", "failed", findings=Findings(excused="it existed before")) | B_PASSED,
    )
    assert found == (
        ALLOW,
        [("a", ALLOW, "CONTINUE", ""), ("b", ALLOW, "CONTINUE", "")],
        (),
        "",
    )


def test_what_did_not_run_is_no_pass() -> None:
    late = ended("a", "not-run", reason="late")
    said = "gate `a` was not run (late)"
    assert decided(make_gate(name="a", command="x"), results=late)[::3] == (BLOCK, said)
    warns = make_gate(name="a", command="x", on_fail="CONTINUE")
    assert decided(warns, results=late)[::3] == (WARN, said)
    passes = make_gate(name="a", command="x", on_pass="STOP", on_fail="CONTINUE")
    assert decided(passes, results=late)[::3] == (WARN, said)


def due_names(plan: Plan, *passed: str, failed: str = "") -> list[str]:
    results = {(name, 0): GateResult(gate=name, status="passed") for name in passed}
    if failed:
        results |= ended(failed, "failed")
    return [due.step.gate.name for due in advance(plan, results).due]


def plan_of(*gates: Gate, listed: str, strategy: str = "collect", **fields: Any) -> Plan:
    hook = Hook(name="manual", gates=(*listed,), strategy=strategy, **fields)  # type: ignore[arg-type]
    return make_plan(Config(gates=gates), hook, EVENT, {})


def gate(name: str, **fields: Any) -> Gate:
    return make_gate(name=name, command="x", **fields)


def test_a_gate_waits_for_those_that_it_is_after() -> None:
    gates = gate("a", after=("b", "d")), gate("b"), gate("c"), gate("d")
    plan = plan_of(*gates, listed="abc")
    assert plan.listed == ("b", "a", "c")
    assert due_names(plan) == ["b", "c"]
    assert due_names(plan, "b") == ["a", "c"]
    assert due_names(plan, "c", failed="b") == ["a"]  # which the strategy decides
    sequence = plan_of(*gates, listed="acb", strategy="sequence")
    assert sequence.listed == ("c", "b", "a")
    assert due_names(sequence, "c", failed="b") == []


def test_a_gate_waits_for_what_is_reached_by_actions() -> None:
    gates = gate("a", on_pass="b"), gate("b"), gate("c", after=("b",))
    plan = plan_of(*gates, listed="ca")
    assert due_names(plan) == ["a"]
    assert due_names(plan, "a") == ["b"]
    assert due_names(plan, "a", "b") == ["c"]
    assert due_names(plan, failed="a") == ["c"]  # then `b` does not run


def test_a_fixer_that_waits_lets_nothing_pass_it() -> None:
    plan = plan_of(gate("a"), gate("b", after=("a",), writes=True), gate("c"), listed="abc")
    assert due_names(plan) == ["a"]
    assert due_names(plan, "a") == ["b"]
    assert due_names(plan, "a", "b") == ["c"]


def test_a_name_to_wait_for_that_is_unknown_stops() -> None:
    found = decided(gate("a", after=("b",)), results={})
    assert (found[0], found[3]) == (STOP, "`after` of gate `a` names an unknown gate: `b`")


def test_fail_fast_ends_with_the_first_block() -> None:
    gates = gate("a"), gate("b", on_fail="CONTINUE"), gate("c"), gate("d")
    plan = plan_of(*gates, listed="abcd", fail_fast=True)
    assert due_names(plan, failed="b") == ["a", "c", "d"]  # only a warning
    blocked = ended("c", "failed", exit_status=1)
    assert advance(plan, blocked).not_run == ("a", "b", "d")
    cancelled = blocked | ended("a", "not-run", reason=CANCELLED) | ended("d", "failed")
    decision = make_decision(plan, advance(plan, cancelled))
    assert (decision.verdict, decision.not_run) == (BLOCK, ("b",))
    assert decision.reason == "gate `c` failed (exit status 1); gate `d` failed ()"
    assert [visit.result.gate for visit in decision.visits] == ["a", "c", "d"]


def test_stop_names_all_that_did_not_run() -> None:
    plan = plan_of(gate("a"), gate("b", on_fail="STOP"), gate("c"), listed="abc")
    assert advance(plan, ended("b", "failed")).not_run == ("a", "c")


FIXER = make_gate(name="fix", command="x", writes=True)
CHECK = make_gate(name="check", command="x")


def fixing_plan(*gates: Gate, paths: tuple[str, ...] = (), strategy: str = "sequence") -> Plan:
    hook = Hook(name="manual", gates=tuple(g.name for g in gates if g.name != "again"))
    hook = hook._replace(strategy=strategy)  # type: ignore[arg-type]
    plan = make_plan(Config(gates=gates, hooks=(hook,)), hook, EVENT, {})
    return plan._replace(steps=tuple(step._replace(paths=paths) for step in plan.steps))


def result_of(name: str, status: Any = "passed", changed: tuple[str, ...] = ()) -> GateResult:
    return GateResult(gate=name, status=status, changed_paths=changed)


@pytest.mark.parametrize("strategy", ["sequence", "collect"])
@pytest.mark.parametrize(("status", "verdict"), [("passed", ALLOW), ("failed", BLOCK)])
def test_a_check_runs_again_if_a_fixer_changes_what_it_has_seen(
    strategy: str, status: str, verdict: int
) -> None:
    plan = fixing_plan(CHECK, FIXER, strategy=strategy)
    results = {("check", 0): result_of("check"), ("fix", 0): result_of("fix", changed=("a.py",))}
    walk = advance(plan, results)
    assert [(due.step.gate.name, due.generation) for due in walk.due] == [("check", 1)]
    walk = advance(plan, {**results, ("check", 1): result_of("check", status)})
    assert (walk.due, walk.verdict) == ((), verdict)
    assert [visit.result.gate for visit in walk.visits] == ["check", "fix", "check"]


def test_a_check_of_other_files_does_not_run_again() -> None:
    plan = fixing_plan(CHECK, FIXER, paths=("b.py",))
    results = {("check", 0): result_of("check"), ("fix", 0): result_of("fix", changed=("a.py",))}
    assert (advance(plan, results).due, advance(plan, results).verdict) == ((), ALLOW)
    later = fixing_plan(FIXER, CHECK)
    passed = {("fix", 0): result_of("fix", changed=("a.py",)), ("check", 1): result_of("check")}
    assert (advance(later, passed).due, advance(later, passed).verdict) == ((), ALLOW)


def test_gates_that_keep_changing_what_they_check_are_an_error() -> None:
    check = CHECK.changed(on_fail="again")
    again = make_gate(name="again", command="x", writes=True)
    plan = fixing_plan(make_gate(name="other", command="x"), check, FIXER, again)
    results = {
        ("other", 0): result_of("other"),
        ("check", 0): result_of("check"),
        ("fix", 0): result_of("fix", changed=("a.py",)),
        ("other", 1): result_of("other"),
        ("check", 1): result_of("check", "failed"),
        ("again", 1): result_of("again", changed=("a.py",)),
    }
    walk = advance(plan, results)
    assert (walk.due, walk.verdict) == ((), BLOCK)
    reason = "`other` would have to run again: gates keep changing what it has checked"
    assert walk.visits[-1].result.reason == reason


def test_gates_that_are_checked_again_run_as_their_hook_says() -> None:
    """One after the other in a sequence; what writes, alone."""
    checks = (make_gate(name="a", command="x"), make_gate(name="b", command="x", on_fail="d"))
    fixers = (
        make_gate(name="c", command="x", writes=True),
        make_gate(name="d", command="x", writes=True),
    )
    for strategy, due in (("sequence", ["a"]), ("collect", ["a", "b"])):
        hook = Hook(name="manual", gates=("a", "b", "c"), strategy=strategy)  # type: ignore[arg-type]
        plan = make_plan(Config(gates=(*checks, *fixers)), hook, EVENT, {})
        results = {(name, 0): GateResult(gate=name, status="passed") for name in "ab"}
        results["c", 0] = GateResult(gate="c", status="passed", changed_paths=("f",))
        walk = advance(plan, results)
        assert [one.step.gate.name for one in walk.due] == due
        results["b", 1] = GateResult(gate="b", status="failed")
        assert [one.step.gate.name for one in advance(plan, results).due] == ["a"]
