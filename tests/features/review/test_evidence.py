"""What a session's journal says of reviews."""

from __future__ import annotations

from typing import Any

from gitgates.core.agent_types import WorktreeState
from gitgates.features.review.facts import Evidence, Marker, fold


def told(*facts: dict[str, Any]) -> Evidence:
    return fold({"v": 1, "t": float(number), **fact} for number, fact in enumerate(facts, 1))


def block(prompt: str = "1", **fields: Any) -> dict[str, Any]:
    return {"what": "round", "gates": "review", "outcome": "blocked", "prompt": prompt, **fields}


MARKER = {"what": "marker", "how": "skill", "name": "code-review", "tree": "t", "head": "h"}
DECISION = {"what": "decision", "decision": "ISSUES", "tree": "t", "counts": True}


def test_an_empty_journal() -> None:
    assert told() == Evidence()


def test_the_strict_form_is_what_was_asked_last() -> None:
    on, off = {"what": "review-on"}, {"what": "review-off"}
    assert (told(on).strict, told(on, off).strict, told(on, off, on).strict) == (True, False, True)


def test_markers_are_kept_once_for_each_event() -> None:
    found = told({**MARKER, "key": "k"}, {**MARKER, "key": "k"}, MARKER, {**MARKER, "key": "l"})
    assert len(found.markers) == 3
    assert found.markers[0] == Marker("skill", WorktreeState("t", "h", 1.0), "code-review")


def test_blocks_count_since_the_last_marker_or_decision() -> None:
    assert told(block(), block(), block("2")).blocks == {"1": 2, "2": 1}
    assert told(block(), block(), MARKER, block()).blocks == {"1": 1}
    assert told(block(), DECISION, block(), block()).blocks == {"1": 2}
    other = {**block(), "gates": "check, review"}
    passed = {**block(), "outcome": "passed"}
    assert told(other, passed, block()).blocks == {"1": 1}


def test_a_claim_restarts_no_count() -> None:
    claim = {**DECISION, "counts": False}
    found = told({"what": "review-on"}, block(strict=True), claim, block(strict=True))
    assert (found.blocks, found.undecided, len(found.decisions)) == ({"1": 2}, 2, 1)
    assert found.markers == ()


def test_blocks_without_any_decision_are_counted_over_prompts() -> None:
    strict = block(strict=True), block("2", strict=True), block("3", strict=True)
    assert told(*strict).undecided == 3
    assert told(*strict, DECISION).undecided == 0
    assert told(DECISION, *strict).undecided == 0
    assert told(*strict, {"what": "review-on"}).undecided == 0
    assert told(block(), block()).undecided == 0


def test_a_decision_is_a_marker_and_uses_up_its_token() -> None:
    token = {"what": "token", "agent": "a", "digest": "d"}
    found = told(token, {**token, "digest": "e"}, {**DECISION, "digest": "d", "agent": "a"})
    assert (found.tokens, found.used) == ({"d": "a", "e": "a"}, frozenset("d"))
    assert [(one.how, one.name) for one in found.markers] == [("decision", "ISSUES")]


def test_a_claim_uses_up_no_token() -> None:
    token = {"what": "token", "agent": "a", "digest": "d"}
    claim = {**DECISION, "counts": False, "digest": "d"}
    found = told(token, claim)
    assert (found.tokens, found.used) == ({"d": "a"}, frozenset())


def test_a_sub_agent_saw_what_was_there_when_it_began_or_was_sent_back_last() -> None:
    began = {"what": "review-began", "agent": "a", "tree": "t"}
    assert told(began, {**began, "tree": "u"}).starting_points == {"a": WorktreeState("u", "", 2.0)}
    back = {**block(""), "gates": "reviewer", "agent": "a", "tree": "v"}
    assert told(began, back).starting_points == {"a": WorktreeState("v", "", 2.0)}


def test_reviewers_that_were_sent_back() -> None:
    back = {**block(""), "gates": "reviewer", "agent": "a"}
    found = told(back, back, {**back, "agent": "b"})
    assert (found.sent_back, found.blocks) == ({"a": 2, "b": 1}, {})


def test_what_is_damaged_is_passed_over() -> None:
    damaged: list[dict[str, Any]] = [
        {"what": "marker"},
        {"what": "marker", "how": "skill", "tree": "t", "t": "x"},
        {"what": "decision"},
        {"what": "round", "gates": "review"},
        {"what": "snapshot"},
        {"what": ["x"]},
        {},
    ]
    assert told(*damaged) == Evidence()
    assert told({"what": "reported", "message": "m"}, *damaged).reported == {"m"}
