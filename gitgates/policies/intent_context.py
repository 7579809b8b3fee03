"""Tell an agent of intents: at the start of a session, and again after a compaction."""

from __future__ import annotations

from gitgates.intents.context import context_text
from gitgates.intents.file import load
from gitgates.intents.lease import held_by
from gitgates.policies.gatekeeper import (
    NEEDED,
    OFFERED,
    holder_of_call,
    listed,
    renewed_leases,
    settings_of,
)
from gitgates.trace.ledger import recent
from gitgates.types import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.intents.intent import Intent
    from gitgates.policies.call import Call
    from gitgates.policies.session import Fact
    from gitgates.types import IntentSettings

_MOST_RECENT = 10
_RECORDED = "intent-context"
_AGAIN = "You hold this intent; nothing is to be changed outside of its scope."


def tell(call: Call) -> Verdict:
    """Record the context of the held intent before a compaction, and hand it out after that.

    Whoever holds none is told of the intents.
    """
    leases, holder = renewed_leases(call), holder_of_call(call)
    own = held_by(leases, holder)
    is_recorded = call.kind == "before-compact"
    if is_recorded and own is None:
        return Verdict()
    intents, settings = load(call.repo, call.config), settings_of(call)
    intent = intents.get(own.intent) if own else None
    if own is None or intent is None or not intent.is_active:
        if is_recorded or not (settings.required or intents.active):
            return Verdict()
        head = NEEDED if settings.required else OFFERED
        return Verdict(to_agent=f"gitgates: {head}\n{listed(intents, leases, holder)}")
    if is_recorded:
        text = context_of(call.repo, settings, intent)
        fields = {"agent": holder.agent, "intent": intent.id, "text": text}
        return Verdict(entries=({"what": _RECORDED, **fields},))
    text = _recorded(call, intent.id) or context_of(call.repo, settings, intent)
    return Verdict(to_agent=f"{text}{_AGAIN}")


def context_of(repo: Repo, settings: IntentSettings, intent: Intent) -> str:
    """Return what an agent is told of an intent, and of what was last done for it."""
    try:
        last = recent(repo.common_dir_abs, intent.id, _MOST_RECENT)
    except OSError:
        last = []  # it is a help, and no more
    return context_text(intent, last, settings.context_bytes)


def _recorded(call: Call, intent: str) -> str:
    """Return the context as it was before the last compaction; empty if there was none."""
    if call.payload.source != "compact":
        return ""
    agent = call.payload.agent_id

    def is_meant(fact: Fact) -> bool:
        return (fact.get("what"), fact.get("agent")) == (_RECORDED, agent)

    last = next(filter(is_meant, reversed(call.entries)), {})
    return str(last.get("text", "")) if last.get("intent") == intent else ""
