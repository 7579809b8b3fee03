"""The breaker: the most blocks that there may be, in one prompt and in one session.

Policies that tell the agent how often it was kept ask `reached` themselves, and write their own
`round`. What blocks without one is counted here, and let go of here.
"""

from __future__ import annotations

from gitgates.types import BLOCK, WARN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.call import Call
    from gitgates.policy import Need
    from gitgates.types import Config

# Outcomes of a round, for the journal and for artifacts.
PASSED = "passed"
BLOCKED = "blocked"
BREAKER = "breaker"


def needs(_config: Config) -> tuple[Need, ...]:
    """Return nothing: the policy is passive."""
    return ()


def reached(blocks: tuple[int, int], limits: tuple[int, int]) -> str:
    """Return why the agent is to be let go, in words; empty if it may be kept.

    Both in one prompt, and in the session.
    """
    for count, limit, where in zip(blocks, limits, ("prompt", "session"), strict=True):
        if count >= limit:
            return f"after {limit} blocks in this {where}, the most there may be"
    return ""


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Count a block that nobody has counted yet; let the agent go where there were too many."""
    if so_far.level != BLOCK or any(one["what"] == "round" for one in so_far.entries):
        return so_far
    how = reached(call.blocks, call.config.breaker)
    payload = call.payload
    entry = {
        "what": "round",
        "hook": payload.event,
        "agent": payload.agent_id,
        "prompt": call.prompt,
        "gates": ", ".join(so_far.blocked_by),
        "outcome": BREAKER if how else BLOCKED,
        "tree": call.tree,
    }
    entries = (*so_far.entries, entry)
    if not how:
        return so_far._replace(entries=entries)
    text = f"gitgates let the agent go {how}. {so_far.to_agent}"
    persons = "\n".join(one for one in (so_far.to_person, text) if one)
    return Verdict(WARN, to_person=persons, entries=entries)
