"""The held intent, for a handoff."""

from __future__ import annotations

from gitgates.features.intents.intent import find_settings
from gitgates.features.intents.lease import held_by, holder_of, read_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call
    from gitgates.drivers.caller import Caller


def state(call: Call, caller: Caller) -> dict[str, str]:
    """Return the intent held by the caller."""
    if find_settings(call.config) is None:
        return {}
    leases = read_leases(call.repo.shared_state_abs)
    lease = held_by(leases, holder_of(caller.session, caller.agent))
    return {"intent": lease.intent} if lease else {}
