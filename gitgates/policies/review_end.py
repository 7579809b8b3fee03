"""The end of work, as far as reviews go: what has changed, whether it was reviewed, what to say.

Two forms: the reminder wants evidence that this change was reviewed, by whatever review there is;
the strict one wants COMPLETE of the reviewer. Neither asks for ever.
"""

from __future__ import annotations

from gitgates.environ import skipped_gates
from gitgates.errors import GitError, StateError
from gitgates.git.diff import patch_id
from gitgates.policies.breaker import BLOCKED, BREAKER, PASSED, reached
from gitgates.policies.change import assess, evidence_of, is_strict_here, survey
from gitgates.policies.evidence import COMPLETE, ISSUES, SKIP
from gitgates.policies.review_config import GATE
from gitgates.policies.review_text import (
    NO_DECISION,
    NOT_REVIEWED,
    OPEN_ISSUES,
    STALE,
    Asked,
    installed,
    installed_reviewer,
    let_go,
    reminder,
    strict,
)
from gitgates.policies.transcript import may_have_acted
from gitgates.record import Record
from gitgates.store.log import write_ledger
from gitgates.store.messages import find
from gitgates.types import BLOCK, WARN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.call import Call
    from gitgates.policies.change import Assessment, Survey
    from gitgates.policies.evidence import Evidence, ReviewDecision, Standing
    from gitgates.policies.session import Fact


# Blocks of one review, in a prompt, without anything new being said of it.
MOST_BLOCKS = 3
# How often a reviewer that leaves without a decision is sent back.
MOST_SENT_BACK = 2

# Why one may stop whose change is significant and has no marker.
NOT_ACTED = "not-acted"


class Facts(Record):
    """What is known where an agent wants to stop."""

    strict: bool
    wanted: bool  # the change asks for a review; strict: anything that counts has changed
    standings: tuple[Standing, ...]  # the newest first
    decision: ReviewDecision | None  # the reviewer's last one
    decision_holds: bool
    evidence: Evidence
    prompt: str
    blocks: tuple[int, int]  # by all gates: in this prompt, and in the session
    limits: tuple[int, int]
    acted: bool = True  # the session may have changed something at all
    tree: str = ""  # what is there now

    @property
    def was_asked(self) -> bool:
        """Return whether this very content was asked about in an earlier prompt, and is over.

        A question afterwards, of whatever kind, is no reason to ask again. In the strict form only
        an agent that was let go is past it.
        """
        over = (BREAKER,) if self.strict else (BLOCKED, BREAKER)
        return any(
            prompt != self.prompt and tree == self.tree != "" and outcome in over
            for prompt, tree, outcome in self.evidence.asked
        )


class ReviewRuling(Record):
    """Whether an agent may stop, as far as reviews go, and why."""

    outcome: str  # passed, blocked, breaker
    why: str = ""  # of a block: what is missing; of a pass: one of the reasons above
    how: str = ""  # of an agent that is let go: why
    resets: bool = False  # the strict form that a prompt has asked for is over


def judge(facts: Facts) -> ReviewRuling:
    """Return whether the agent may stop."""
    satisfied = _is_complete(facts) if facts.strict else _has_evidence(facts)
    if satisfied:
        return ReviewRuling(PASSED, resets=facts.strict)
    if not facts.wanted:
        return ReviewRuling(PASSED)
    if facts.was_asked:
        return ReviewRuling(PASSED)
    if not (facts.acted or facts.strict):
        return ReviewRuling(PASSED, why=NOT_ACTED)
    how = _let_go(facts)
    if how:
        return ReviewRuling(BREAKER, why=_missing(facts), how=how)
    return ReviewRuling(BLOCKED, why=_missing(facts))


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
    """Return why the agent is let go, though a review is missing; empty if it is not."""
    if how := reached(facts.blocks, facts.limits):
        return how
    # In each prompt it is said once at least.
    here = dict(facts.evidence.blocks).get(facts.prompt, 0)
    if facts.strict and here and facts.evidence.undecided >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks, because no reviewer has ever posted a decision"
    if here >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks in this prompt, with nothing new said of the review"
    return ""


_LONGEST = 500


class Decided(Record):
    """Whether an agent may stop, and what that was decided by."""

    survey: Survey
    found: Assessment
    facts: Facts
    ruling: ReviewRuling


def judge_now(call: Call, seen: Survey) -> Decided:
    """Return whether the agent may stop, as far as reviews go. Nothing is written.

    Raises: GitError where git cannot compare.
    """
    evidence = seen.evidence
    found = assess(seen.scene, evidence, strict=seen.strict)
    wanted = found.change.counts if seen.strict else found.change.significant
    facts = Facts(
        strict=seen.strict,
        wanted=wanted,
        standings=found.standings,
        decision=found.decision,
        decision_holds=found.decision_holds,
        evidence=evidence,
        prompt=call.prompt,
        blocks=call.blocks,
        limits=call.config.breaker,
        acted=evidence.acted or (wanted and may_have_acted(call.payload.transcript_abs)),
        tree=seen.scene.now.tree,
    )
    return Decided(seen, found, facts, judge(facts))


def decide_end(call: Call) -> Verdict:
    """Return what is said of reviews at the end of work.

    Raises: GitError where git cannot compare.
    """
    skips = skipped_gates(call.env)
    if GATE in skips and not call.config.review.required:
        return _skipped(call, skips[GATE])
    seen = survey(call)
    if not seen.strict and call.config.review.mode == "off":
        return Verdict()
    if not (seen.scene.now.tree and seen.scene.base.tree):
        text = "gitgates: review: nothing was decided, because there is no snapshot"
        return Verdict(WARN, to_person=text)
    decided = judge_now(call, seen)
    if decided.ruling.outcome == PASSED:
        return _passed(call, decided)
    return _refuse(call, decided)


def _skipped(call: Call, by: str) -> Verdict:
    _record(call, "skip", {"gates": [GATE], "by": by})
    if not is_strict_here(call):
        return Verdict()
    return Verdict(
        WARN, to_person=f"gitgates: review: a reviewer was asked for, and {by} has skipped that"
    )


def _passed(call: Call, decided: Decided) -> Verdict:
    """Return what the person is to know of an agent that may stop, each thing once."""
    entries: list[Fact] = []
    if decided.ruling.resets and call.config.review.mode != "require":
        entries.append({"what": "review-off", "why": "COMPLETE"})
    text, message = _told_of(call, decided.facts)
    if not text:
        return Verdict(entries=tuple(entries))
    entries.append({"what": "reported", "message": message})
    return Verdict(WARN, to_person=text, entries=tuple(entries))


def _told_of(call: Call, facts: Facts) -> tuple[str, str]:
    """Return why an agent may stop, in the reviewer's words, and the message that says so."""
    decision, told = facts.decision, facts.evidence.reported
    if facts.strict and facts.decision_holds and decision:
        if decision.decision != COMPLETE or decision.message in told:
            return "", ""
        text = f"gitgates: review: COMPLETE: {_short(message_of(call, decision.message))}"
        others = [
            _short(message_of(call, one.message))
            for one in facts.evidence.decisions
            if one.counts and one.decision == ISSUES and one.point.tree == decision.point.tree
        ]
        more = (f"\n  ISSUES of the same content, before: {one}" for one in others)
        return text + "".join(more), decision.message
    holding = [one.marker for one in facts.standings if one.holds]
    if not holding or any(one.how != SKIP for one in holding):
        return "", ""
    if holding[0].by_person or holding[0].message in told:
        return "", ""
    said = _short(message_of(call, holding[0].message))
    text = f"gitgates: review: not reviewed; the agent says that none is needed: {said}"
    return text, holding[0].message


def message_of(call: Call, message_id: str) -> str:
    """Return what was said with a decision, or with a marker; empty if that is gone."""
    try:
        message = find(call.repo.shared_state_abs, message_id) if message_id else None
    except StateError as error:
        call.note(str(error))
        return ""
    if message is None:
        return ""
    parts = [str(message.data.get(name, "")) for name in ("summary", "message_to_agent")]
    return "\n\n".join(part for part in dict.fromkeys(parts) if part) or message.text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _refuse(call: Call, decided: Decided) -> Verdict:
    ruling, payload = decided.ruling, call.payload
    asked = _asked(call, decided)
    entry = {
        "what": "round",
        "hook": payload.event,
        "agent": payload.agent_id,
        "prompt": call.prompt,
        "gates": GATE,
        "outcome": ruling.outcome,
        "strict": decided.facts.strict,
        "why": ruling.why,
        "how": ruling.how,
        "tree": decided.facts.tree,
    }
    if ruling.outcome == BREAKER:
        _record(call, "review-breaker", {"session": payload.session, "how": ruling.how})
        return Verdict(WARN, to_person=let_go(asked, ruling.how), entries=(entry,))
    text = strict(asked) if decided.facts.strict else reminder(asked)
    return Verdict(BLOCK, to_agent=text, entries=(entry,))


def _asked(call: Call, decided: Decided) -> Asked:
    found, review, root_abs = decided.found, call.config.review, call.repo.root_abs
    decision, note = found.decision, decided.survey.began_note
    agents, skills = installed(review, root_abs, call.env)
    return Asked(
        review=review,
        change=found.change,
        why=decided.ruling.why,
        by_prompt=review.mode != "require",
        standings=found.standings,
        decision=decision.decision if decision else "",
        message=message_of(call, decision.message) if decision else "",
        root_abs=root_abs if call.is_elsewhere else "",
        notes=(note,) if note else (),
        agents=agents,
        skills=skills,
        reviewer=installed_reviewer(review, root_abs, call.env),
        number=dict(decided.facts.evidence.blocks).get(call.prompt, 0) + 1,
        most=MOST_BLOCKS,
    )


def _record(call: Call, what: str, fields: dict[str, object]) -> None:
    """Write into the ledger; say where that is not possible."""
    known = {"hook": call.payload.event, "root": call.repo.root_abs}
    try:
        write_ledger(call.repo.shared_state_abs, what, {**known, **fields})
    except OSError as error:
        call.note(f"the ledger cannot be written: {error.strerror}")


def marker_now(call: Call, how: str, name: str) -> Fact | None:
    """Return the entry that a review ran: how, by which name, and on what. None: not known.

    A sub-agent saw what there was when it started, whatever others have done since.
    """
    payload = call.payload
    try:
        began = dict(evidence_of(call).began).get(payload.agent_id) if how == "agent" else None
        scene = survey(call, began).scene
    except GitError as error:
        call.say(error.message)
        return None
    patch = ""
    if scene.now.tree:
        try:
            patch = patch_id(scene.since(scene.base))
        except GitError as error:
            call.say(error.message)
    fields = {"tree": scene.now.tree, "head": scene.now.head, "patch": patch, "key": call.key}
    who = {"agent": payload.agent_id, "prompt_id": payload.prompt_id}
    return {"what": "marker", "how": how, "name": name, **who, **fields}
