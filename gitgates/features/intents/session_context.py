"""Give an agent the context of intents: at the start of a session, and after a compaction."""

from __future__ import annotations

from gitgates.core.policy import functions_of
from gitgates.core.types import WARN, Verdict
from gitgates.features.intents.approved import describe_unapproved, intents_in_force, is_unapproved
from gitgates.features.intents.context import context_text
from gitgates.features.intents.facts import IntentContextEntry
from gitgates.features.intents.gatekeeper import (
    NEEDED,
    OFFERED,
    holder_of_call,
    listed,
    renewed_leases,
    settings_of,
)
from gitgates.features.intents.lease import held_by
from gitgates.session.journal import of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.features.intents.intent import Intent
    from gitgates.git.repo import Repo
    from gitgates.session.call import Call
    from gitgates.session.journal import Fact

_MOST_RECENT = 10
_RECORDED = "intent-context"
_AGAIN = "You hold this intent; do not change anything outside its scope."


def tell(call: Call) -> Verdict:
    """Record the context of the held intent before a compaction, and return it afterwards.

    Whoever holds none is told of the intents; the person, of a file that does not count.
    """
    leases, holder = renewed_leases(call), holder_of_call(call)
    own = held_by(leases, holder)
    is_recorded = call.kind == "before-compact"
    if is_recorded and own is None:
        return Verdict()
    intents, settings = intents_in_force(call), settings_of(call)
    told = Verdict()
    if call.kind == "session-start" and is_unapproved(call.repo, call.config, intents):
        told = Verdict(WARN, to_person=describe_unapproved(intents.file))
    intent = intents.get(own.intent) if own else None
    if own is None or intent is None or not intent.is_active:
        if is_recorded or not (settings.required or intents.active):
            return told
        head = NEEDED if settings.required else OFFERED
        return told._replace(to_agent=f"gitgates: {head}\n{listed(intents, leases, holder)}")
    if is_recorded:
        text = context_of(call.repo, call.config, intent, settings.context_bytes)
        return Verdict(entries=(IntentContextEntry(holder.agent, intent.id, text),))
    text = _recorded(call, intent.id) or context_of(
        call.repo, call.config, intent, settings.context_bytes
    )
    return told._replace(to_agent=f"{text}{_AGAIN}")


def context_of(repo: Repo, config: Config, intent: Intent, budget: int) -> str:
    """Return the context of an intent for an agent, with the latest work on it.

    `budget`: the most characters.
    """
    try:
        recent = functions_of(config, "recent_work", "after-tool")
        last = [line for of in recent for line in of(repo, {"intent": intent.id}, _MOST_RECENT)]
    except OSError:
        last = []  # it is a help, and no more
    return context_text(intent, last, budget)


def _recorded(call: Call, intent: str) -> str:
    """Return the context as it was before the last compaction; empty if there was none."""
    if call.payload.source != "compact":
        return ""
    agent, entries = call.payload.agent_id, of_kind(call.entries, IntentContextEntry)
    last: Fact = next((one for one in reversed(entries) if one.get("agent") == agent), {})
    return str(last.get("text", "")) if last.get("intent") == intent else ""
