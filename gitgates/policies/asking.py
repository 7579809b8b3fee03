"""Whether an agent may stop, as far as reviews go: evidence in, verdict out. Pure.

Two forms: the reminder wants evidence that this change was reviewed, by whatever review there is;
the strict one wants COMPLETE of the reviewer. Neither asks for ever.
"""

from __future__ import annotations

from gitgates.policies.evidence import COMPLETE, SKIP
from gitgates.policies.retry import BLOCKED, BREAKER, PASSED
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.evidence import Decision, Evidence, Marker

# Blocks of one review, in a prompt, without anything new being said of it.
MOST_BLOCKS = 3
# How often a reviewer that leaves without a decision is sent back.
MOST_SENT_BACK = 2

# What an agent that is kept is to hear of.
NOT_REVIEWED = "not-reviewed"
NO_DECISION = "no-decision"
STALE = "stale"
OPEN_ISSUES = "issues"

# Why one may stop whose change is significant and has no marker.
NOT_ACTED = "not-acted"
IN_TRANSCRIPT = "transcript"


class Standing(Record):
    """A marker, and whether it still holds for what is there now."""

    marker: Marker
    holds: bool
    why: str  # in words


class Facts(Record):
    """What is known where an agent wants to stop."""

    strict: bool
    wanted: bool  # the change asks for a review; strict: anything that counts has changed
    standings: tuple[Standing, ...]  # the newest first
    decision: Decision | None  # the reviewer's last one
    decision_holds: bool
    evidence: Evidence
    prompt: str
    blocks: tuple[int, int]  # by all gates: in this prompt, and in the session
    limits: tuple[int, int]
    acted: bool = True  # the session may have changed something at all
    tree: str = ""  # what is there now

    @property
    def was_asked(self) -> bool:
        """Tell whether this very content was asked about in an earlier prompt, and is over.

        A question afterwards, of whatever kind, is no reason to ask again. In the strict form only
        an agent that was let go is past it.
        """
        over = (BREAKER,) if self.strict else (BLOCKED, BREAKER)
        return any(
            prompt != self.prompt and tree == self.tree != "" and outcome in over
            for prompt, tree, outcome in self.evidence.asked
        )


class Ruling(Record):
    """What becomes of it."""

    outcome: str  # passed, blocked, breaker
    why: str = ""  # of a block: what is missing; of a pass: one of the reasons above
    how: str = ""  # of an agent that is let go: why
    resets: bool = False  # the strict form that a prompt has asked for is over


def judge(facts: Facts) -> Ruling:
    """Return whether the agent may stop."""
    satisfied = _is_complete(facts) if facts.strict else _has_evidence(facts)
    if satisfied:
        return Ruling(PASSED, resets=facts.strict)
    if not facts.wanted:
        return Ruling(PASSED)
    if facts.was_asked:
        return Ruling(PASSED)
    if not (facts.acted or facts.strict):
        return Ruling(PASSED, why=NOT_ACTED)
    how = _let_go(facts)
    if how:
        return Ruling(BREAKER, why=_missing(facts), how=how)
    return Ruling(BLOCKED, why=_missing(facts))


def _has_evidence(facts: Facts) -> bool:
    return any(one.holds for one in facts.standings)


def _is_complete(facts: Facts) -> bool:
    decided = facts.decision
    if decided and facts.decision_holds and decided.decision == COMPLETE:
        return True
    return any(
        one.holds and one.marker.how == SKIP and one.marker.by_person for one in facts.standings
    )


def _missing(facts: Facts) -> str:
    if not facts.strict:
        return NOT_REVIEWED
    if facts.decision is None:
        return NO_DECISION
    if facts.decision.decision == COMPLETE or not facts.decision_holds:
        return STALE
    return OPEN_ISSUES


def _let_go(facts: Facts) -> str:
    """Return why the agent is let go, though a review is missing; empty where it is not."""
    in_prompt, in_session = facts.blocks
    of_prompt, of_session = facts.limits
    if in_prompt >= of_prompt:
        return f"after {of_prompt} blocks in this prompt, the most there may be"
    if in_session >= of_session:
        return f"after {of_session} blocks in this session, the most there may be"
    # In each prompt it is said once at least.
    here = dict(facts.evidence.blocks).get(facts.prompt, 0)
    if facts.strict and here and facts.evidence.undecided >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks, because no reviewer has ever posted a decision"
    if here >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks in this prompt, with nothing new said of the review"
    return ""
