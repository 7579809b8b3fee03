"""The state of the review, for a handoff."""

from __future__ import annotations

from gitgates.drivers.dry_call import ask_agent_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call
    from gitgates.drivers.caller import Caller


def state(call: Call, _caller: Caller) -> dict[str, str]:
    """Return what the review policy would answer to a stop now."""
    for answer in ask_agent_hook(call):
        if answer.policy == "review":
            return {"review": answer.to_agent or answer.to_person or "nothing is missing"}
    return {}
