"""An intent's context for an agent: its text, and the events at which the agent gets it."""

from __future__ import annotations

from gitgates.core.policy import functions_of
from gitgates.core.types import WARN, Verdict
from gitgates.features.intents.approved import describe_unapproved, intents_in_force, is_unapproved
from gitgates.features.intents.facts import IntentContextEntry
from gitgates.features.intents.gatekeeper import (
    NEEDED,
    OFFERED,
    describe_active,
    holder_of_call,
    renewed_leases,
)
from gitgates.features.intents.intent import settings_of
from gitgates.features.intents.lease import held_by
from gitgates.journal.journal import of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.features.intents.intent import Intent
    from gitgates.git.repo import Repo

SMALLEST = 512  # characters; enough for id, title and the line on omissions
_TAG = "intent_context"
_MOST_RECENT = 10
_MANY = 9999
_AGAIN = "You hold this intent; do not change anything outside its scope."


def decide_context(call: Call) -> Verdict:
    """Record the context of the held intent before a compaction, and return it afterwards.

    An agent without an intent gets the list of intents; the person is told if the file does not
    apply.
    """
    leases, holder = renewed_leases(call), holder_of_call(call)
    lease = held_by(leases, holder)
    is_recorded = call.kind == "before-compact"
    if is_recorded and lease is None:
        return Verdict()
    intents, settings = intents_in_force(call), settings_of(call.config)
    verdict = Verdict()
    if call.kind == "session-start" and is_unapproved(call.repo, call.config, intents):
        verdict = Verdict(WARN, to_person=describe_unapproved(intents.file))
    intent = intents.get(lease.intent) if lease else None
    if intent is None or not intent.is_active:
        if is_recorded or not (settings.required or intents.active):
            return verdict
        head = NEEDED if settings.required else OFFERED
        text = f"gitgates: {head}\n{describe_active(intents, leases, holder)}"
        return verdict._replace(to_agent=text)
    if not is_recorded and (text := _recorded(call, intent.id)):
        return verdict._replace(to_agent=f"{text}{_AGAIN}")
    text = context_of(call.repo, call.config, intent, settings.context_bytes)
    if is_recorded:
        return Verdict(entries=(IntentContextEntry(holder.agent, intent.id, text),))
    return verdict._replace(to_agent=f"{text}{_AGAIN}")


def _recorded(call: Call, intent: str) -> str:
    """Return the context from before the last compaction; empty if there was none."""
    agent, text = call.payload.agent.id, ""
    for fact in of_kind(call.entries, IntentContextEntry):
        if fact.get("agent") == agent:
            text = str(fact.get("text", "")) if fact.get("intent") == intent else ""
    return text if call.payload.prompt.source == "compact" else ""


def context_of(repo: Repo, config: Config, intent: Intent, budget: int) -> str:
    """Return an intent's context for an agent, with the latest work on it.

    `budget`: the maximum number of characters.
    """
    try:
        recent = functions_of(config, "recent_work", "after-tool")
        last = [line for of in recent for line in of(repo, {"intent": intent.id}, _MOST_RECENT)]
    except OSError:
        last = []  # recent work is optional
    return context_text(intent, last, budget)


def context_text(intent: Intent, recent: Sequence[str], budget: int) -> str:
    """Return an intent's `<intent_context>` block of at most `budget` characters. Pure.

    A budget below SMALLEST counts as SMALLEST. If not everything fits, whole lines are left out,
    the least important first: recent changes, notes, scope, constraints, acceptance criteria.
    `recent` is the intent's latest work, newest first.
    """
    sections = {
        "Acceptance criteria": intent.acceptance_criteria,
        "Constraints": intent.constraints,
        "Owned scope (change nothing else)": intent.owned_scope,
        "Notes": tuple(line for line in intent.notes.splitlines() if line.strip()),
        "Recent changes": tuple(recent),
    }
    head = f"<{_TAG}>\n{intent.id}: {_neutralised(intent.title)}\nPriority: {intent.priority}\n"
    end = f"</{_TAG}>\n"
    room = max(budget, SMALLEST) - len(head) - len(end)
    text, omitted = _fitting(sections, room)
    if omitted:
        most = len(_omission(intent, dict.fromkeys(sections, _MANY)))
        text, omitted = _fitting(sections, room - most)
        text += _omission(intent, omitted)
    return head + text + end


def _fitting(sections: Mapping[str, Sequence[str]], room: int) -> tuple[str, dict[str, int]]:
    """Return the text that fits, and section → the number of lines that do not."""
    text, omitted = "", dict[str, int]()
    for title, items in sections.items():
        block = f"{title}:\n"
        for number, item in enumerate(items):
            lines = "\n  ".join(map(_neutralised, item.strip().splitlines()))
            if len(text) + len(block) + len(lines) + len("- \n") > room:
                omitted[title] = len(items) - number
                break
            block += f"- {lines}\n"
        if items and omitted.get(title) != len(items):
            text += block
    return text, omitted


def _omission(intent: Intent, omitted: Mapping[str, int]) -> str:
    what = ", ".join(f"{title.partition(' (')[0].lower()} ({n})" for title, n in omitted.items())
    return f"Omitted to fit: {what}. In full: gitgates intent show {intent.id}\n"


def _neutralised(text: str) -> str:
    """Return text with anything neutralised that would end the block."""
    return text.replace(f"</{_TAG}", f"<\\/{_TAG}")
