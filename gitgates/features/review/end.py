"""Decide at a turn's end whether the change was reviewed, and whether the agent may stop.

There are two forms: the reminder accepts evidence of any review of this change; the strict form
requires COMPLETE from the reviewer. Neither blocks forever. Changes that weaken the checks are
reported, no matter how small.
"""

from __future__ import annotations

import zlib

from gitgates.core.environ import skipped_gates
from gitgates.core.errors import GitError, StateError
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers.breaker import BLOCKED, BREAKER, PASSED, reached
from gitgates.drivers.writers import unheard
from gitgates.features.review import text as review_text
from gitgates.features.review.change import SessionChange, change_of
from gitgates.features.review.config import GATE, settings_of
from gitgates.features.review.facts import (
    COMPLETE,
    DECISION,
    ISSUES,
    SKIP,
    MarkerEntry,
    ReportedEntry,
    ReviewOffEntry,
    WeakenedEntry,
    is_strict,
)
from gitgates.features.review.text import MOST_BLOCKS, ReviewRequest
from gitgates.journal.entries import ANY
from gitgates.store.log import write_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call
    from gitgates.features.review.facts import Marker

OFF = "off"  # no review is required at all
_WEAKENED = "weakened"  # names a round that only reports weakened checks
_LONGEST = 500


class ReviewRuling(Record):
    """Whether an agent may stop without a further review, and why."""

    outcome: str  # passed, blocked, breaker, off
    why: str = ""  # for a block: what is missing; for `off`: the reason
    how: str = ""  # why the agent may stop without a review


def decide_end(call: Call) -> Verdict:
    """Return the verdict on reviews at the end of work; the ruling is put in `call.explanations`.

    Raises: GitError if git cannot compare.
    """
    review, skips = settings_of(call.config), skipped_gates(call.env)
    if GATE in skips and not review.required:
        call.explanations[GATE] = ReviewRuling(OFF, why=f"{skips[GATE]} skips it here")
        return _skipped(call, skips[GATE])
    is_off = review.mode == "off" and not is_strict(call)
    if is_off and review.weakened == "off":
        call.explanations[GATE] = ReviewRuling(OFF, why="the mode is off")
        return Verdict()
    change = change_of(call)
    if not (change.now.tree and change.base.tree):
        text = "gitgates: review: no decision was made, because no snapshot was found"
        return Verdict(WARN, to_person=text)
    if is_off and review.weakened != "block":
        ruling = ReviewRuling(OFF, why="the mode is off")
    else:
        ruling = make_ruling(
            change, prompt=call.prompt, blocks=call.blocks, limits=call.config.breaker
        )
        if ruling.outcome == BLOCKED and call.session.reasons_not_to_fix(call.prompt).get(ANY):
            ruling = ruling._replace(outcome=BREAKER, how="because it has a question")
    call.explanations[GATE] = ruling
    verdict = Verdict()
    if ruling.outcome in (BLOCKED, BREAKER):
        verdict = _refuse(call, change, ruling)
    elif change.is_wanted and change.is_reviewed:
        verdict = _reported(call, change)
    return _report_weakened(call, change, is_blocked=verdict.level == BLOCK).joined(verdict)


def make_ruling(
    change: SessionChange, *, prompt: str, blocks: tuple[int, int], limits: tuple[int, int]
) -> ReviewRuling:
    """Return whether the agent may stop.

    `blocks`: how often gates have blocked it, in this prompt and in the session; `limits`: the
    maximum of both.
    """
    if not change.is_wanted or change.is_reviewed or _was_requested(change, prompt):
        return ReviewRuling(PASSED)
    how = reached(blocks, limits) or _why_allowed(change, prompt)
    return ReviewRuling(BREAKER if how else BLOCKED, why=_missing(change), how=how)


def _was_requested(change: SessionChange, prompt: str) -> bool:
    """Return whether a review of this content was requested in an earlier prompt.

    A later prompt, such as a question, is no reason to request it again; in the strict form it is,
    unless the agent was allowed to stop.
    """
    over = (BREAKER,) if change.is_strict else (BLOCKED, BREAKER)
    return any(
        before != prompt and tree == change.now.tree != "" and outcome in over
        for before, tree, outcome in change.evidence.rulings
    )


def _why_allowed(change: SessionChange, prompt: str) -> str:
    """Return why the agent may stop although a review is missing; empty if it may not."""
    # Each prompt is blocked at least once.
    blocks = change.evidence.blocks.get(prompt, 0)
    if change.is_strict and blocks and change.evidence.undecided >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks, because no reviewer has posted a decision"
    if blocks >= MOST_BLOCKS:
        return f"after {MOST_BLOCKS} blocks in this prompt without a new review decision"
    return ""


def _missing(change: SessionChange) -> str:
    if not change.is_strict:
        return review_text.NOT_REVIEWED
    if change.decision is None:
        return review_text.NO_DECISION
    if change.decision.name == COMPLETE or not change.decision_holds:
        return review_text.STALE
    return review_text.OPEN_ISSUES


def _report_weakened(call: Call, change: SessionChange, *, is_blocked: bool) -> Verdict:
    """Tell the agent and the person what weakens the checks, each finding once.

    At a turn's end, a host can tell an agent something only by a block, so an agent that nothing
    else blocks is blocked once. `is_blocked`: something else blocks it.
    """
    if change.review.weakened == "off":
        return Verdict()
    findings = {_digest(finding): finding for finding in change.weakened}
    new_digests = [digest for digest in findings if digest not in change.evidence.weakened]
    if not new_digests:
        return Verdict()
    from gitgates.features.review.weakened import in_one_line  # rarely needed

    line = in_one_line(findings[digest] for digest in new_digests)
    to_person = f"gitgates: review: the agent's changes weaken the checks: {line}"
    warning = Verdict(WARN, to_person=to_person, entries=(WeakenedEntry(new_digests),))
    if not is_blocked and reached(call.blocks, call.config.breaker):
        return warning
    entries = warning.entries
    if not is_blocked:
        entries += (call.round(_WEAKENED, BLOCKED, tree=change.now.tree),)
    return warning._replace(level=BLOCK, to_agent=review_text.weakened(line), entries=entries)


def _digest(finding: tuple[object, ...]) -> str:
    path, what, detail, *_line = finding
    return f"{zlib.crc32(f'{path}: {what}: {detail}'.encode('utf-8', 'replace')):08x}"


def _skipped(call: Call, by: str) -> Verdict:
    _write_ledger(call, "skip", {"gates": [GATE], "by": by})
    if not is_strict(call):
        return Verdict()
    return Verdict(
        WARN, to_person=f"gitgates: review: an independent review was required, but {by} skipped it"
    )


def _reported(call: Call, change: SessionChange) -> Verdict:
    """Return the messages to the person about an agent that may stop, each only once."""
    verdict = Verdict()
    if change.is_strict and change.review.mode != "require":
        verdict = Verdict(entries=(ReviewOffEntry("COMPLETE"),))
    text, message = _complete(call, change) if change.is_strict else _skip_reason(call, change)
    if not text or message in change.evidence.reported:
        return verdict
    return verdict.joined(Verdict(WARN, to_person=text, entries=(ReportedEntry(message),)))


def _complete(call: Call, change: SessionChange) -> tuple[str, str]:
    """Return the message with the reviewer's COMPLETE and its summary, and the message's id."""
    decision = change.decision
    if not (decision and decision.name == COMPLETE and change.decision_holds):
        return "", ""  # a person has skipped it
    others = [
        f"\n  Earlier ISSUES on the same content: {_marker_line(call, other)}"
        for other in change.evidence.decisions
        if (other.how, other.name) == (DECISION, ISSUES) and other.point.tree == decision.point.tree
    ]
    text = f"gitgates: review: COMPLETE: {_marker_line(call, decision)}{''.join(others)}"
    return text, decision.message


def _skip_reason(call: Call, change: SessionChange) -> tuple[str, str]:
    """Return the message with the agent's reason to skip the review, and its id."""
    holding = [status.marker for status in change.standings if status.holds]
    if holding[0].by_person or any(marker.how != SKIP for marker in holding):
        return "", ""
    text = "gitgates: review: not reviewed; the agent reports that none is needed: "
    return text + _marker_line(call, holding[0]), holding[0].message


def _marker_line(call: Call, marker: Marker) -> str:
    """Return a marker's text, on one line."""
    line = " ".join(message_of(call, marker.message).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def message_of(call: Call, message_id: str) -> str:
    """Return the text of a decision or marker; empty if its message is gone."""
    if not message_id:
        return ""
    from gitgates.store.messages import find  # rarely needed

    try:
        message = find(call.repo.shared_state_abs, message_id)
    except StateError as error:
        call.note(str(error))
        return ""
    if message is None:
        return ""
    parts = [str(message.data.get(name, "")) for name in ("summary", "message_to_agent")]
    return "\n\n".join(part for part in dict.fromkeys(parts) if part) or message.text


def _refuse(call: Call, change: SessionChange, ruling: ReviewRuling) -> Verdict:
    decision = change.decision
    agents, skills = review_text.installed(
        change.review, call.repo.root_abs, call.env, call.payload.host
    )
    request = ReviewRequest(
        change=change,
        why=ruling.why,
        message=message_of(call, decision.message) if decision else "",
        root_abs=call.repo.root_abs if call.is_elsewhere else "",
        agents=agents,
        skills=skills,
        number=change.evidence.blocks.get(call.prompt, 0) + 1,
    )
    entry = call.round(
        GATE,
        ruling.outcome,
        strict=change.is_strict,
        why=ruling.why,
        how=ruling.how,
        tree=change.now.tree,
    )
    if ruling.outcome == BREAKER:
        _write_ledger(call, "review-breaker", {"session": call.payload.session, "how": ruling.how})
        text = review_text.stop_allowed(request, ruling.how)
        return Verdict(WARN, to_person=text, entries=(entry,))
    make_text = review_text.strict if change.is_strict else review_text.reminder
    notes = unheard(call)
    to_agent = "\n\n".join(filter(None, (make_text(request), notes)))
    return Verdict(BLOCK, to_agent=to_agent, to_person=notes, entries=(entry,))


def _write_ledger(call: Call, what: str, fields: dict[str, object]) -> None:
    """Write to the ledger, unless only a verb asks; report an error."""
    common = {"hook": call.payload.event, "root": call.repo.root_abs}
    try:
        if not call.is_dry:
            write_ledger(call.repo.shared_state_abs, what, {**common, **fields})
    except OSError as error:
        call.note(f"the ledger cannot be written: {error.strerror}")


def marker_now(call: Call, how: str, name: str) -> MarkerEntry | None:
    """Return a marker's journal entry; None if the content is unknown.

    A sub-agent has reviewed the content as it was when it started.
    """
    payload, patch = call.payload, ""
    try:
        change = SessionChange(call)
        if how == "agent":
            change.now = change.evidence.starting_points.get(payload.agent.id, change.now)
        patch = change.patch if change.now.tree else ""
    except GitError as error:
        call.say(error.message)
        return None
    return MarkerEntry(
        how=how,
        name=name,
        agent=payload.agent.id,
        prompt_id=payload.prompt.id,
        tree=change.now.tree,
        head=change.now.head,
        patch=patch,
        key=call.key,
        seen=change.now.stamp,
    )
