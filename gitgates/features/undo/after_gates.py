"""The policy that records what gates have written, and what the end of a turn finds.

What gates write is undone with the work of the agent.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.core.types import WARN, Verdict
from gitgates.features.undo.points import AGENT, Author, close_calls, latest_call, prune, record
from gitgates.features.undo.settings import settings_of
from gitgates.features.undo.tool_call import record_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.session.call import Call


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record a save point after gates that write, and at the end of a turn."""
    names = [
        gate.name for gate in call.config.gates if gate.writes and gate.name in call.hook.gates
    ]
    if call.is_dry or not (names or call.kind == "turn-end"):
        return so_far
    try:
        said = _record(call, names)
    except GitgatesError as error:
        said = f"no save point: {error}"
    return so_far.joined(Verdict(WARN, to_person=f"gitgates: {said}")) if said else so_far


def _record(call: Call, gates: list[str]) -> str:
    """Record what has changed; at the end of a turn, return what is to be said of old points."""
    settings, session = settings_of(call.config), call.payload.session
    author = latest_call(call.repo)
    if gates:
        author = Author(
            by=AGENT,
            session=session,
            agent=call.payload.agent_type or call.payload.agent_id,
            prompt=int(call.prompt) if call.prompt.isdecimal() else 0,
            tool=call.hook.name,
            what=", ".join(gates),
        )
    record(call.repo, settings, author)
    if call.kind != "turn-end":
        return ""
    for noted in close_calls(call.repo, lambda _key, author: author.session == session):
        record_elsewhere(call, noted, Author(by=AGENT, session=session))
    return prune(call.repo, settings, time.time())
