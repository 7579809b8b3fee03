"""The policy that records what gates have written, and what the end of a turn finds.

What gates write is undone with the work of the agent.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.core.types import WARN, Verdict
from gitgates.features.undo.settings import file_limits, settings_of
from gitgates.files.prune import prune
from gitgates.session import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.session.call import Call

__all__ = ["decide", "file_limits"]


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
    if gates:
        recorder.record_gates(call, gates)
    if call.kind != "turn-end":
        return ""
    recorder.observe(call, always=True)
    settings = settings_of(call.config)
    return prune(call.repo, time.time(), keep_s=settings.keep_s, max_size=settings.max_size_bytes)
