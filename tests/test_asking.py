"""Whether an agent may stop, as far as reviews go: evidence in, verdict out."""

from __future__ import annotations

from typing import Any

import pytest

from gitgates.agent_types import Point
from gitgates.policies.evidence import Evidence, Marker, ReviewDecision, Standing
from gitgates.policies.review_end import Facts, ReviewRuling, judge

HERE = Point(tree="t", head="h")
NEW = Evidence()


def facts(**fields: Any) -> Facts:
    known: dict[str, Any] = {
        "strict": False,
        "wanted": True,
        "standings": (),
        "decision": None,
        "decision_holds": False,
        "evidence": NEW,
        "prompt": "1",
        "blocks": (0, 0),
        "limits": (10, 30),
    }
    return Facts(**{**known, **fields})


def standing(how: str = "skill", *, holds: bool = True, by_person: bool = False) -> Standing:
    return Standing(Marker(how=how, point=HERE, by_person=by_person), holds, "why")


def decided(what: str) -> ReviewDecision:
    return ReviewDecision(decision=what, point=HERE, counts=True)


def test_the_reminder_wants_evidence_that_holds() -> None:
    assert judge(facts()) == ReviewRuling("blocked", why="not-reviewed")
    assert judge(facts(standings=(standing(holds=False),))).why == "not-reviewed"
    assert judge(facts(standings=(standing(holds=False), standing()))) == ReviewRuling("passed")
    assert judge(facts(wanted=False)) == ReviewRuling("passed")
    assert judge(facts(standings=(standing("skip"),))) == ReviewRuling("passed")


def test_the_strict_form_wants_complete() -> None:
    strict: dict[str, Any] = {"strict": True}
    assert judge(facts(**strict)) == ReviewRuling("blocked", why="no-decision")
    missing = ReviewRuling("blocked", why="no-decision")
    assert judge(facts(**strict, standings=(standing(),))) == missing
    done = decided("COMPLETE")
    passed = judge(facts(**strict, decision=done, decision_holds=True))
    assert passed == ReviewRuling("passed", resets=True)
    assert judge(facts(**strict, decision=done)) == ReviewRuling("blocked", why="stale")
    issues = decided("ISSUES")
    assert judge(facts(**strict, decision=issues, decision_holds=True)).why == "issues"
    assert judge(facts(**strict, decision=issues)).why == "stale"
    assert judge(facts(**strict, wanted=False)) == ReviewRuling("passed")


def test_in_the_strict_form_only_a_person_may_skip() -> None:
    skipped = standing("skip")
    assert judge(facts(strict=True, standings=(skipped,))).outcome == "blocked"
    by_person = standing("skip", by_person=True)
    assert judge(facts(strict=True, standings=(by_person,))) == ReviewRuling("passed", resets=True)
    outlived = standing("skip", holds=False, by_person=True)
    assert judge(facts(strict=True, standings=(outlived,))).outcome == "blocked"


@pytest.mark.parametrize(
    ("known", "how"),
    [
        (
            {"evidence": NEW._replace(blocks=(("1", 3),))},
            "after 3 blocks in this prompt, with nothing new said of the review",
        ),
        (
            {"strict": True, "evidence": NEW._replace(undecided=3, blocks=(("1", 1),))},
            "after 3 blocks, because no reviewer has ever posted a decision",
        ),
        ({"blocks": (10, 10)}, "after 10 blocks in this prompt, the most there may be"),
        ({"blocks": (0, 30)}, "after 30 blocks in this session, the most there may be"),
    ],
)
def test_each_breaker(known: dict[str, Any], how: str) -> None:
    why = "no-decision" if known.get("strict") else "not-reviewed"
    assert judge(facts(**known)) == ReviewRuling("breaker", why=why, how=how)


@pytest.mark.parametrize(
    "known",
    [
        {"evidence": NEW._replace(blocks=(("1", 2), ("2", 3)))},
        {"strict": True, "evidence": NEW._replace(undecided=2, blocks=(("1", 1),))},
        {"strict": True, "evidence": NEW._replace(undecided=3)},  # in each prompt it is said once
        {"evidence": NEW._replace(undecided=3)},  # of the strict form, which is over
        {"blocks": (9, 29)},
    ],
)
def test_each_breaker_holds_one_short_of_its_limit(known: dict[str, Any]) -> None:
    assert judge(facts(**known)).outcome == "blocked"


def test_what_was_asked_about_in_an_earlier_prompt_is_not_asked_again() -> None:
    blocked = NEW._replace(asked=(("0", "t", "blocked"),))
    assert judge(facts(evidence=blocked, tree="t")) == ReviewRuling("passed")
    assert judge(facts(evidence=blocked, tree="u")).outcome == "blocked"
    assert judge(facts(evidence=blocked, tree="t", prompt="0")).outcome == "blocked"
    assert judge(facts(evidence=blocked, tree="t", strict=True)).outcome == "blocked"
    let_go = NEW._replace(asked=(("0", "t", "breaker"),))
    assert judge(facts(evidence=let_go, tree="t", strict=True)) == ReviewRuling("passed")


def test_a_session_that_has_only_read_is_not_asked() -> None:
    assert judge(facts(acted=False)) == ReviewRuling("passed", why="not-acted")
    assert judge(facts(acted=False, strict=True)).outcome == "blocked"
