"""What the person is told of reviews by the way, each thing once."""

from __future__ import annotations

from gitgates.agent.place import note
from gitgates.errors import StateError
from gitgates.policies.evidence import COMPLETE, ISSUES, SKIP
from gitgates.store.log import write_ledger
from gitgates.store.messages import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.policies.asking import Facts

_LONGEST = 500


def message_of(place: Place, message_id: str) -> str:
    """Return what was said with a decision, or with a marker; empty where that is gone."""
    try:
        message = find(place.repo.shared_state_abs, message_id) if message_id else None
    except StateError as error:
        note(place, str(error))
        return ""
    if message is None:
        return ""
    parts = [str(message.data.get(name, "")) for name in ("summary", "message_to_agent")]
    return "\n\n".join(part for part in dict.fromkeys(parts) if part) or message.text


def passed_text(place: Place, facts: Facts) -> str:
    """Return what the person is to know of an agent that may stop: why, in the reviewer's words."""
    if facts.strict and facts.decision_holds and facts.decision:
        if facts.decision.decision != COMPLETE or not _is_new(place, facts, facts.decision.message):
            return ""
        said = _short(message_of(place, facts.decision.message))
        others = [
            _short(message_of(place, one.message))
            for one in facts.evidence.decisions
            if one.counts and one.decision == ISSUES and one.point.tree == facts.decision.point.tree
        ]
        text = f"gitgates: review: COMPLETE: {said}"
        return text + "".join(f"\n  ISSUES of the same content, before: {one}" for one in others)
    holding = [one.marker for one in facts.standings if one.holds]
    if not holding or any(one.how != SKIP for one in holding):
        return ""
    if holding[0].by_person or not _is_new(place, facts, holding[0].message):
        return ""
    said = _short(message_of(place, holding[0].message))
    return f"gitgates: review: not reviewed; the agent says that none is needed: {said}"


def record(place: Place, what: str, fields: dict[str, object]) -> None:
    """Write into the ledger; say where that is not possible."""
    known = {"hook": place.payload.event, "root": place.repo.root_abs}
    try:
        write_ledger(place.repo.shared_state_abs, what, {**known, **fields})
    except OSError as error:
        note(place, f"the ledger cannot be written: {error.strerror}")


def _is_new(place: Place, facts: Facts, message_id: str) -> bool:
    """Tell whether the person has not been told yet; from now on they have."""
    if message_id in facts.evidence.reported:
        return False
    place.journal.append({"what": "reported", "message": message_id})
    return True


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
