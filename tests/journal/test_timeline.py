"""What a session's journal says of its beginning, and of its requests."""

from __future__ import annotations

from typing import Any

from gitgates.core.agent_types import WorktreeState
from gitgates.journal.entries import TIMELINE, Timeline


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
    assert found.base == WorktreeState("a", "h", 2.0)


def test_requests_are_the_persons_prompts_each_once() -> None:
    found = told(
        {"what": "prompt", "prompt_id": "p", "text": "do it"},
        {"what": "prompt", "prompt_id": "p", "text": "do it"},
        {"what": "prompt", "prompt_id": "q", "text": "<task-notification>", "automatic": True},
        {"what": "prompt", "text": "and that"},
        {"what": "prompt", "text": "and that"},
    )
    assert found.requests == ("do it", "and that", "and that")
