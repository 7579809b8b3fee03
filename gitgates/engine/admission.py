"""Whether a gate may start now: its pass is reused, another run is computing it, no slot is free.

A gate that has to wait is asked about again; what it would see may be other content by then, so
that is looked at again as well.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.engine.command import ACTIVE
from gitgates.engine.plan import is_reusable
from gitgates.proc.pool import open_pool, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import Command, Config, GateResult, Step
    from gitgates.engine.reuse import Candidate, Reuse


class Admission(Record):
    """A gate that need not wait."""

    step: Step | None  # what is to run; None: nothing, all is reused
    candidate: Candidate | None = None  # for the reuse of its pass
    slots: tuple[int, ...] = ()  # locked for it

    @property
    def reused(self) -> str:
        """Where the passes come from that are reused; empty if none is."""
        return self.candidate.reused if self.candidate else ""


class Admissions:
    """The gates of one run that may start."""

    def __init__(
        self, config: Config, env: Mapping[str, str], reuse: Reuse | None, *, is_urgent: bool
    ) -> None:
        self.slots = config.jobs or os.cpu_count() or 1
        self._reuse = reuse
        # Whoever waits for this run has a slot already, and would not give it up.
        is_nested = bool(env.get(ACTIVE))
        self._pool = None if is_nested else open_pool(env, self.slots, is_urgent=is_urgent)
        self._waiting: dict[str, Candidate | None] = {}  # gate → its candidate, without a slot

    def ask(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Admission | None:
        """Return how a gate may start now; None if it has to wait."""
        gate = step.gate.name
        if self._reuse and step.gate.writes:
            self._reuse.record()  # of those before it, as long as the content is theirs
        has_waited = gate in self._waiting
        candidate = self._waiting.pop(gate) if has_waited else self._look_up(step, make_commands)
        if candidate and (candidate.rest is None or candidate.waits):
            return None if candidate.waits else Admission(step=None, candidate=candidate)
        slots = self._pool.take(1) if self._pool else []
        if slots is None:
            self._waiting[gate] = candidate
            return None
        if has_waited and candidate and self._reuse:
            self._reuse.give_up(candidate)
            candidate = self._look_up(step, make_commands)
            if candidate and (candidate.rest is None or candidate.waits):
                release(slots)
                return None if candidate.waits else Admission(step=None, candidate=candidate)
        rest = candidate.rest if candidate else step
        return Admission(step=rest, candidate=candidate, slots=tuple(slots))

    def ended(self, admission: Admission, result: GateResult) -> None:
        """Record what a gate that has run has proved, and let others run."""
        if self._reuse:
            self._reuse.ended(admission.candidate, result)
        if self._pool:
            self._pool.give_back([*admission.slots])

    def close(self) -> None:
        """Give up what is waited for."""
        if self._pool:
            self._pool.close()
        for candidate in self._waiting.values():
            if candidate and self._reuse:
                self._reuse.give_up(candidate)
        if self._reuse:
            self._reuse.record()

    def _look_up(
        self, step: Step, make_commands: Callable[[Step], list[Command]]
    ) -> Candidate | None:
        if self._reuse and is_reusable(step.gate):
            return self._reuse.look_up(step, make_commands)
        return None
