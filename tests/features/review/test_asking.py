"""Whether an agent may stop, as far as reviews go: evidence in, verdict out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from each_case import each_case

from gitgates.core.agent_types import WorktreeState
from gitgates.features.review.change import MarkerStatus, SessionChange
from gitgates.features.review.end import ReviewRuling, make_ruling
from gitgates.features.review.facts import Evidence, Marker

HERE = WorktreeState(tree="t", head="h")
NEW = Evidence()


class Known(SessionChange):
    """A change of which everything is known."""

    def __init__(self, **known: Any) -> None:
        tree = known.pop("tree", "")
        strict = known.pop("strict", False)
        self.evidence = known.pop("evidence", NEW)
        self.is_strict, self.now = strict, WorktreeState(tree=tree)
        self.known = SimpleNamespace(**{"wanted": True, "decision_holds": False, **known})
        self.__dict__["standings"] = known.get("standings", ())
        if decision := known.get("decision"):
            self.evidence = self.evidence._replace(decisions=(decision,))

    @property
    def is_wanted(self) -> bool:
        return bool(self.known.wanted)

    def is_of_now(self, marker: Marker) -> bool:
        assert marker is self.decision
        return bool(self.known.decision_holds)


def ask(
    prompt: str = "1",
    blocks: tuple[int, int] = (0, 0),
    **known: Any,
) -> ReviewRuling:
    return make_ruling(Known(**known), prompt=prompt, blocks=blocks, limits=(10, 30))


def standing(how: str = "skill", *, holds: bool = True, by_person: bool = False) -> MarkerStatus:
    return MarkerStatus(Marker(how=how, point=HERE, by_person=by_person), holds, "why")


def decided(what: str) -> Marker:
    return Marker(how="decision", name=what, point=HERE)


def test_the_reminder_wants_evidence_that_holds() -> None:
    assert ask() == ReviewRuling("blocked", why="not-reviewed")
    assert ask(standings=(standing(holds=False),)).why == "not-reviewed"
    assert ask(standings=(standing(holds=False), standing())) == ReviewRuling("passed")
    assert ask(wanted=False) == ReviewRuling("passed")
    assert ask(standings=(standing("skip"),)) == ReviewRuling("passed")


def test_the_strict_form_wants_complete() -> None:
    strict: dict[str, Any] = {"strict": True}
    assert ask(**strict) == ReviewRuling("blocked", why="no-decision")
    missing = ReviewRuling("blocked", why="no-decision")
    assert ask(**strict, standings=(standing(),)) == missing
    done = decided("COMPLETE")
    passed = ask(**strict, decision=done, decision_holds=True)
    assert passed == ReviewRuling("passed")
    assert ask(**strict, decision=done) == ReviewRuling("blocked", why="stale")
    issues = decided("ISSUES")
    assert ask(**strict, decision=issues, decision_holds=True).why == "issues"
    assert ask(**strict, decision=issues).why == "stale"
    assert ask(**strict, wanted=False) == ReviewRuling("passed")


def test_in_the_strict_form_only_a_person_may_skip() -> None:
    skipped = standing("skip")
    assert ask(strict=True, standings=(skipped,)).outcome == "blocked"
    by_person = standing("skip", by_person=True)
    assert ask(strict=True, standings=(by_person,)) == ReviewRuling("passed")
    outlived = standing("skip", holds=False, by_person=True)
    assert ask(strict=True, standings=(outlived,)).outcome == "blocked"


@each_case(
    ("known", "how"),
    [
        (
            {"evidence": NEW._replace(blocks={"1": 3})},
            "after 3 blocks in this prompt without a new review decision",
        ),
        (
            {"strict": True, "evidence": NEW._replace(undecided=3, blocks={"1": 1})},
            "after 3 blocks, because no reviewer has posted a decision",
        ),
        ({"blocks": (10, 10)}, "after 10 blocks in this prompt, the maximum"),
        ({"blocks": (0, 30)}, "after 30 blocks in this session, the maximum"),
    ],
)
def test_each_breaker(known: dict[str, Any], how: str) -> None:
    why = "no-decision" if known.get("strict") else "not-reviewed"
    assert ask(**known) == ReviewRuling("breaker", why=why, how=how)


@each_case(
    "known",
    [
        {"evidence": NEW._replace(blocks={"1": 2, "2": 3})},
        {"strict": True, "evidence": NEW._replace(undecided=2, blocks={"1": 1})},
        {"strict": True, "evidence": NEW._replace(undecided=3)},  # in each prompt it is said once
        {"evidence": NEW._replace(undecided=3)},  # of the strict form, which is over
        {"blocks": (9, 29)},
    ],
)
def test_each_breaker_holds_one_short_of_its_limit(known: dict[str, Any]) -> None:
    assert ask(**known).outcome == "blocked"


def test_what_was_asked_about_in_an_earlier_prompt_is_not_asked_again() -> None:
    blocked = NEW._replace(rulings=(("0", "t", "blocked"),))
    assert ask(evidence=blocked, tree="t") == ReviewRuling("passed")
    assert ask(evidence=blocked, tree="u").outcome == "blocked"
    assert ask(evidence=blocked, tree="t", prompt="0").outcome == "blocked"
    assert ask(evidence=blocked, tree="t", strict=True).outcome == "blocked"
    let_go = NEW._replace(rulings=(("0", "t", "breaker"),))
    assert ask(evidence=let_go, tree="t", strict=True) == ReviewRuling("passed")
