"""Which tools and agents a hook answers to."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payload_support import payload_with

from gitgates.core.types import Hook
from gitgates.engine.plan.hooks import matches_agent, matches_glob, matches_hook, matches_tool
from gitgates.hosts.agents.claude import HOST

TOOLS: list[tuple[tuple[str, ...] | None, str, bool]] = [
    (None, "Edit", True),
    (None, "", True),
    ((), "Edit", False),
    ((), "", False),
    (("Edit",), "Edit", True),
    (("Edit",), "MultiEdit", False),
    (("Edit",), "edit", False),
    (("Edit",), "", False),
    (("Write", "Edit"), "Edit", True),
    (("Edit|Write",), "Write", True),
    (("Edit | Write",), "Write", True),
    (("Edit||",), "", False),
    (("|",), "Edit", False),
    (("mcp__*",), "mcp__memory__read", True),
    (("mcp__*",), "Edit", False),
    (("mcp__?__x",), "mcp__a__x", True),
    (("*Edit",), "NotebookEdit", True),
    (("*",), "Edit", True),
    (("Task",), "Agent", True),
    (("Task|Edit",), "Agent", True),
    (("Agent",), "Agent", True),
    (("Agent",), "Task", False),  # the client says Agent, whoever asks
    (("Task",), "Task", True),
    (("Ed[i]t",), "Edit", False),  # no other sign means anything
    (("Edit.*",), "Edit", False),
]


def test_tools() -> None:
    wrong = [
        (patterns, tool)
        for patterns, tool, expected in TOOLS
        if matches_tool(patterns, tool, HOST.other_names_of(tool)) is not expected
    ]
    assert wrong == []


AGENTS: list[tuple[tuple[str, ...] | None, str, bool]] = [
    (None, "reviewer", True),
    (None, "", True),
    ((), "reviewer", False),
    (("reviewer",), "reviewer", True),
    (("reviewer",), "plugin:reviewer", True),
    (("reviewer",), "other:plugin:reviewer", True),
    (("plugin:reviewer",), "plugin:reviewer", True),
    (("plugin:reviewer",), "reviewer", False),
    (("plugin:reviewer",), "other:reviewer", False),
    (("plugin:*",), "plugin:reviewer", True),
    (("rust-*|go-*",), "go-engineer", True),
    (("rust-*|go-*",), "plugin:go-engineer", True),
    (("reviewer",), "", False),
    (("Reviewer",), "reviewer", False),
]


def test_agents() -> None:
    wrong = [
        (patterns, agent)
        for patterns, agent, expected in AGENTS
        if matches_agent(patterns, agent) is not expected
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("tools", "agents", "expected"),
    [
        (None, None, True),
        (("Edit",), ("reviewer",), True),
        (("Write",), ("reviewer",), False),
        (("Edit",), ("other",), False),
        ((), None, False),
        (None, (), False),
    ],
)
def test_a_hook_answers_to_both(
    tools: tuple[str, ...] | None,
    agents: tuple[str, ...] | None,
    expected: bool,  # noqa: FBT001 - a case of the table
) -> None:
    hook = Hook(name="PostToolUse", enabled_tools=tools, enabled_agents=agents)
    payload = payload_with(event="PostToolUse", tool="Edit", agent_type="reviewer")
    assert matches_hook(hook, payload) is expected


_SIGNS = st.text("ab*?\n", max_size=9)


@given(pattern=_SIGNS, name=_SIGNS)
def test_fits_is_what_the_library_says(pattern: str, name: str) -> None:
    assert matches_glob(pattern, name) is fnmatchcase(name, pattern)


def test_a_pattern_that_is_slow_elsewhere() -> None:
    assert not matches_glob("*a" * 200, "a" * 199 + "b" * 800)
