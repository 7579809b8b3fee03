"""Which events of an agent a configuration needs to hear of: those, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from config_support import table, with_tables, without_guard, without_undo
from each_case import each_case

from gitgates.core.lifecycle import AGENT_HOOKS, HOOK_OF
from gitgates.core.policy import POLICIES, Need, module_of, needs_of
from gitgates.core.types import Config, Gate, Hook, make_gate
from gitgates.drivers.needs import needed_events
from gitgates.features.review.config import Review
from gitgates.setup.install.agent_needs import tools_of

CHECK = make_gate(name="check", command="x")
BEGINNINGS = (Need(kind="session-start"), Need(kind="prompt"))
SUBAGENTS = Need(kind="subagent-start")


def needed(*hooks: Hook, gates: tuple[Gate, ...] = (CHECK,)) -> tuple[Need, ...]:
    """Return what is needed, the guard aside."""
    return needed_events(without_guard(Config(gates=gates, hooks=hooks)))


def on(name: str, tools: tuple[str, ...] | None = None, listed: str = "check") -> Hook:
    return Hook(name=name, gates=(listed,), enabled_tools=tools)


@each_case(
    "hooks",
    [
        (),
        (on("pre-commit"), on("manual"), on("headless"), on("pre-push")),
        (Hook(name="Stop"), Hook(name="SubagentStop", on_exhausted="stop")),
        (on("PostToolUse", tools=()),),  # answers to no tool
        (Hook(name="SubagentStop", gates=("nope",), enabled_agents=()),),
    ],
)
def test_nothing_is_needed(hooks: tuple[Hook, ...]) -> None:
    assert needed(*hooks) == ()


def test_a_stop_needs_the_beginnings() -> None:
    assert needed(on("Stop")) == (*BEGINNINGS, SUBAGENTS, Need(kind="turn-end"))


def test_the_guard_hears_of_tools_that_write() -> None:
    config = without_undo(Config(gates=(CHECK,), hooks=(on("Stop"),)))
    assert needed_events(config) == (
        *BEGINNINGS,
        Need(kind="before-tool", tools=(), tool_kinds=("writes", "shell")),
        SUBAGENTS,
        Need(kind="turn-end"),
    )


def test_filters_are_kept() -> None:
    tools = ("Edit", "Write")
    agents = ("reviewer",)
    hook = Hook(name="PreToolUse", gates=("check",), enabled_tools=tools, enabled_agents=agents)
    assert needed(hook) == (
        *BEGINNINGS,
        Need(kind="before-tool", tools=tools, agents=agents),
        SUBAGENTS,
    )


def test_a_beginning_that_is_gated_is_heard_of_once_and_whole() -> None:
    assert needed(on("UserPromptSubmit"), on("SessionStart")) == (*BEGINNINGS, SUBAGENTS)


def test_each_event_once_in_the_order_of_a_session() -> None:
    names = ("SessionEnd", "Stop", "PreCompact", "PostToolUse", "StopFailure", "SubagentStart")
    assert [HOOK_OF[need.kind] for need in needed(*(on(name) for name in names))] == [
        *("SessionStart", "UserPromptSubmit", "PostToolUse", "SubagentStart", "Stop"),
        *("StopFailure", "PreCompact", "SessionEnd"),
    ]


STOPS = make_gate(name="check", command="x", on_fail="STOP")
PASS_STOPS = make_gate(name="check", command="x", on_pass="STOP")
LEADS_ON = make_gate(name="check", command="x", on_pass="a", on_fail="b")
A = make_gate(name="a", command="x", on_fail="c")
B = make_gate(name="b", command="x", on_fail="CONTINUE")
C = make_gate(name="c", command="x", on_fail="STOP")


@pytest.mark.parametrize(
    ("gates", "listed", "on_exhausted", "stops"),
    [
        pytest.param((CHECK,), "check", "allow", False, id="blocks only"),
        pytest.param((CHECK,), "check", "stop", True, id="stops in the end"),
        pytest.param((STOPS,), "check", "allow", True, id="on_fail stops"),
        pytest.param((PASS_STOPS,), "check", "allow", True, id="on_pass stops"),
        pytest.param((LEADS_ON, A, B, C), "check", "allow", True, id="a chain ends in a stop"),
        pytest.param((), "gone", "allow", True, id="a gate that is not defined"),
    ],
)
def test_the_main_thread_is_heard_of_where_a_sub_agent_may_be_stopped(
    gates: tuple[Gate, ...],
    listed: str,
    on_exhausted: str,
    stops: bool,  # noqa: FBT001 - a case of the table
) -> None:
    hook = Hook(name="SubagentStop", gates=(listed,), on_exhausted=on_exhausted)
    more = (Need(kind="turn-end"),) if stops else ()
    launcher = (Need(kind="after-tool", tools=(), tool_kinds=("agent",)),) if stops else ()
    assert needed(hook, gates=gates) == (
        *BEGINNINGS,
        *launcher,
        SUBAGENTS,
        Need(kind="subagent-end"),
        *more,
    )


@each_case(
    ("tools", "merged"),
    [
        (None, None),
        (("Edit",), ("Edit", "Agent")),
        (("Agent", "Edit"), ("Agent", "Edit")),
        ((), ("Agent",)),
    ],
)
def test_tools_of_two_needs_are_joined(
    tools: tuple[str, ...] | None, merged: tuple[str, ...] | None
) -> None:
    found = needed(on("PostToolUse", tools), on("SubagentStop"), gates=(STOPS,))
    assert tools_of(of(found, "after-tool"), "claude") == merged


# The gate `review`

BUT_READING = ("!Read", "!Grep", "!Glob")
REVIEWERS = ("code-reviewer", "reviewer")
STOP = Hook(name="Stop", gates=("check", "review"))


def reviewed(*hooks: Hook, **review: Any) -> tuple[Need, ...]:
    config = Config(gates=(CHECK,), hooks=hooks)
    return needed_events(without_guard(with_tables(config, table(Review, **review))))


def of(found: tuple[Need, ...], kind: str) -> Need:
    return next(need for need in found if need.kind == kind)


@each_case("hook", [STOP, on("Stop", listed="review")])
def test_a_review_hears_of_tools_that_may_write_and_of_reviews(hook: Hook) -> None:
    assert reviewed(hook) == (
        *BEGINNINGS,
        Need(kind="prompt-expansion", more_s=25.0),
        Need(kind="before-tool", tools=(), but_reads=True, more_s=15.0),
        Need(kind="after-tool", tools=(), but_reads=True, more_s=15.0),
        Need(kind="tool-failed", tools=(), but_reads=True, more_s=15.0),
        Need(kind="subagent-start", more_s=25.0),
        Need(kind="subagent-end", agents=REVIEWERS, more_s=45.0),
        Need(kind="turn-end", more_s=45.0),
    )


@each_case(
    ("review", "tools"),
    [
        ({"prefix": ""}, BUT_READING),
        ({"mode": "off"}, BUT_READING),
        ({"mode": "off", "prefix": ""}, BUT_READING),
        ({"mode": "off", "prefix": "", "weakened": "off"}, None),
    ],
)
def test_where_no_review_is_possible_no_tools_are_heard(
    review: dict[str, Any], tools: tuple[str, ...] | None
) -> None:
    found = [
        tools_of(need, "claude") for need in reviewed(STOP, **review) if need.kind == "before-tool"
    ]
    assert found == ([tools] if tools else [])


def test_a_review_elsewhere_than_at_an_end_is_none() -> None:
    assert reviewed(on("PreToolUse", listed="review")) == needed(on("PreToolUse"))


def test_a_review_that_never_asks_needs_nothing() -> None:
    assert reviewed(STOP, mode="off", prefix="", weakened="off") == needed(on("Stop"))


def test_a_hook_that_answers_to_no_agent_asks_for_no_review() -> None:
    assert reviewed(Hook(name="SubagentStop", gates=("review",), enabled_agents=())) == ()


def test_all_sub_agents_are_heard_of_where_they_have_gates() -> None:
    found = reviewed(STOP, on("SubagentStop"))
    assert of(found, "subagent-end") == Need(kind="subagent-end", more_s=45.0)
    some = Hook(name="SubagentStop", gates=("review",), enabled_agents=("rust",))
    assert of(reviewed(some), "subagent-end").agents == ("rust", *REVIEWERS)
    assert of(reviewed(some), "turn-end") == Need(kind="turn-end", more_s=45.0)


def test_the_reviewer_is_heard_of_whatever_counts_as_a_review() -> None:
    found = reviewed(STOP, agents=(), reviewer="kit:checker")
    assert of(found, "subagent-end").agents == ("kit:checker",)


def test_the_gate_stops_no_sub_agent() -> None:
    found = reviewed(on("SubagentStop", listed="review"))
    assert tools_of(of(found, "after-tool"), "claude") == BUT_READING


@each_case(
    ("tools", "merged"),
    [
        (None, None),
        (("Edit", "Read"), ("Edit", "Read", *BUT_READING)),
        (("Edit|!Bash", "!Write"), ("Edit", *BUT_READING)),
    ],
)
def test_a_hook_of_ones_own_before_tools_is_joined(
    tools: tuple[str, ...] | None, merged: tuple[str, ...] | None
) -> None:
    """`!` in a hook's own filter means nothing, and must not take tools from the review."""
    assert tools_of(of(reviewed(STOP, on("PreToolUse", tools)), "before-tool"), "claude") == merged


def test_some_policy_is_asked_at_each_event_that_is_needed() -> None:
    # A kind that no row names would be installed, and nobody asked.
    hooks = [Hook(name=point.name, gates=("check", "review")) for point in AGENT_HOOKS]
    config = Config(gates=(CHECK,), hooks=tuple(hooks))
    config = with_tables(config, table(Review, mode="require"))
    for gate in {row.gate for row in POLICIES if row.kinds}:
        rows = [row for row in POLICIES if row.gate == gate and row.kinds]
        wanted = {need.kind for row in rows for need in needs_of(module_of(row), config)}
        assert wanted <= {kind for row in rows for kind in row.kinds}
