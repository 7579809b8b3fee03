"""What a session's journal says of its beginning, its requests, and what others wrote meanwhile."""

from __future__ import annotations

from typing import Any

from gitgates.core.agent_types import Point, Write
from gitgates.session.facts import TIMELINE, IdleSpan, Timeline


def told(*facts: dict[str, Any]) -> Timeline:
    return TIMELINE.fold(
        {"v": 1, "t": float(number), **fact} for number, fact in enumerate(facts, 1)
    )


def test_the_base_is_the_first_snapshot_with_a_tree() -> None:
    found = told(
        {"what": "snapshot", "tree": "", "why": "unreadable"},
        {"what": "snapshot", "tree": "a", "head": "h"},
        {"what": "snapshot", "tree": "b", "head": "i"},
    )
    assert found.base == Point("a", "h", 2.0)


def test_requests_are_the_persons_prompts_each_once() -> None:
    found = told(
        {"what": "prompt", "prompt_id": "p", "text": "do it"},
        {"what": "prompt", "prompt_id": "p", "text": "do it"},
        {"what": "pseudo-prompt", "prompt_id": "q", "text": "<task-notification>"},
        {"what": "prompt", "text": "and that"},
        {"what": "prompt", "text": "and that"},
    )
    assert found.requests == ("do it", "and that", "and that")


def test_a_span_is_idle_where_the_snapshot_after_it_names_the_sessions_own_files() -> None:
    found = told(
        {"what": "snapshot", "tree": "a"},
        {"what": "rest", "tree": "b"},
        {"what": "snapshot", "tree": "c", "own": ["x"]},
        {"what": "snapshot", "tree": "d", "own": None},
    )
    assert found.quiet == (IdleSpan(2.0, 3.0, "b", "c", ("x",)),)
    assert found.point == Point("d", "", 4.0)


def test_what_gates_wrote_is_kept_with_its_time() -> None:
    found = told(
        {"what": "gates-wrote", "paths": ["x"], "writes": [["x", "1", "2"]]},
        {"what": "gates-wrote", "paths": ["y"], "writes": [["y", "3", "4"]]},
        {"what": "gates-wrote", "writes": ["damaged"]},
    )
    assert found.others_writes == (Write(1.0, "x", "1", "2"), Write(2.0, "y", "3", "4"))
