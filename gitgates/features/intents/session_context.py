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
    describe_active,
    holder_of_call,
    intent_settings,
    renewed_leases,
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
_AGAIN = "You hold this intent; do not change anything outside its scope."


def decide_context(call: Call) -> Verdict:
    """Record the context of the held intent before a compaction, and return it afterwards.

    An agent without an intent gets the list of intents; the person, a note on a file that does not
    apply.
    """
    leases, holder = renewed_leases(call), holder_of_call(call)
    lease = held_by(leases, holder)
    is_recorded = call.kind == "before-compact"
    if is_recorded and lease is None:
        return Verdict()
    intents, settings = intents_in_force(call), intent_settings(call)
    verdict = Verdict()
    if call.kind == "session-start" and is_unapproved(call.repo, call.config, intents):
        verdict = Verdict(WARN, to_person=describe_unapproved(intents.file))
    intent = intents.get(lease.intent) if lease else None
    if lease is None or intent is None or not intent.is_active:
        if is_recorded or not (settings.required or intents.active):
            return verdict
        head = NEEDED if settings.required else OFFERED
        return verdict._replace(
            to_agent=f"gitgates: {head}\n{describe_active(intents, leases, holder)}"
        )
    if is_recorded:
        text = context_of(call.repo, call.config, intent, settings.context_bytes)
        return Verdict(entries=(IntentContextEntry(holder.agent, intent.id, text),))
    text = _recorded(call, intent.id) or context_of(
        call.repo, call.config, intent, settings.context_bytes
    )
    return verdict._replace(to_agent=f"{text}{_AGAIN}")


def context_of(repo: Repo, config: Config, intent: Intent, budget: int) -> str:
    """Return the context of an intent for an agent, with the latest work on it.

    `budget`: the most characters.
    """
    try:
        recent = functions_of(config, "recent_work", "after-tool")
        last = [line for of in recent for line in of(repo, {"intent": intent.id}, _MOST_RECENT)]
    except OSError:
        last = []  # recent work is optional
    return context_text(intent, last, budget)


def _recorded(call: Call, intent: str) -> str:
    """Return the context as it was before the last compaction; empty if there was none."""
    if call.payload.source != "compact":
        return ""
    agent, entries = call.payload.agent_id, of_kind(call.entries, IntentContextEntry)
    last: Fact = next((entry for entry in reversed(entries) if entry.get("agent") == agent), {})
    return str(last.get("text", "")) if last.get("intent") == intent else ""
