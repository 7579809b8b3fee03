"""Decide which gates of a run go to a server, and which of those run here after all. Cold.

A gate runs here if there is room. If there is none, it may take one of the server's jobs, whose
number all runs of a user share, as they share the machine's slots.
"""

from __future__ import annotations

import contextlib
import time

from gitgates.core.record import Record
from gitgates.core.types import Ending
from gitgates.engine.plan.plan import REMOTE
from gitgates.engine.run.job import Job
from gitgates.proc.pool import open_pool, release
from gitgates.store.proofs import digest, remote_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gitgates.core.types import Command, GateResult
    from gitgates.engine.plan.walk import Due
    from gitgates.engine.run.change_detector import GateChanges
    from gitgates.engine.run.job import Admission, RunContext


_UNKNOWN = "its time ran out, and nothing shows that it started there"


class RemoteAttempt(Record):
    """An attempt that gave no result: the gate runs here."""

    spent_s: float = 0.0
    reason: str = ""


class RemoteJob(Job):
    """A gate that runs on a server: a child here has each command run there."""

    is_remote = True

    def __init__(
        self,
        due: Due,
        admission: Admission,
        changes: GateChanges,
        context: RunContext,
        *,
        server: RemoteRun,
    ) -> None:
        self._server = server
        self._asks: Command | None = None  # the child here
        self._before = b""  # the output of the commands before it
        self._action_digest = ""  # of what has run there
        super().__init__(due, admission, changes, context)

    def _prepared(self, command: Command, left_s: float) -> tuple[Command, str]:
        context = self._context
        self._asks = self._server.gates.command(
            *(self.step, command),
            root_abs=context.root_abs,
            run_abs=context.run_abs,
            within_s=left_s,
        )
        self._before = self.capture.captured()[0]
        return self._asks, ""

    def _take(self, ending: Ending) -> bool:
        server, spent_s = self._server, time.monotonic() - self.began
        self.reused = self._action_digest = ""
        end = server.gates.end_of(self._asks, ending)
        for note in end.notes:
            server.say(f"{self.gate.name}: {note}")
        has_started = end.has_started or len(self.capture.captured()[0]) > len(self._before)
        if ending.ended_by_us or (ending.timed_out and has_started):
            return super()._take(ending)
        is_sound = (end.status, end.exit_status == 0) in (("passed", True), ("failed", False))
        if is_sound and ending.exit_status == 0:
            self.reused = "the server's cache" if end.is_cached else ""
            self._action_digest = end.action_digest
            if end.output is not None:  # what was written must be forgotten
                self.capture.replace(self._before + end.output)
            return super()._take(Ending(exit_status=end.exit_status))
        if ending.timed_out:
            end = end._replace(reason=_UNKNOWN, is_down=False)
            spent_s = min(spent_s, self.gate.schedule.timeout_s / 2)
        reason = server.note_failure(self.due, end, spent_s)
        return not server.gates.falls_back and super()._take(Ending(not_started=reason))

    def result(self) -> GateResult:
        """Return the result of the run there, before it is judged."""
        where = "" if self.endings[-1].not_started else self._server.place
        return super().result().from_origin(where=where, action_digest=self._action_digest)


class RemoteRun:
    """The server, as one run sees it.

    `gates` starts gates there: see `remote_execution` in the table of policies.
    """

    def __init__(
        self,
        gates: Any,  # noqa: ANN401 - of a feature, which is above
        env: Mapping[str, str],
        say: Callable[[str], None],
        *,
        is_urgent: bool,
    ) -> None:
        self.gates, self.say = gates, say
        self.place: str = gates.place
        name = f"remote-{digest(gates.place)}"
        self._pool = open_pool(env, gates.jobs, is_urgent=is_urgent, name=name)
        self.is_first = gates.jobs > 0 and env.get(REMOTE) == "1"  # also if there is room here
        self._jobs = 0  # of this run
        # (gate, generation) → its attempt, if it could not run there
        self._attempts: dict[tuple[str, int], RemoteAttempt] = {}
        self._is_down = False
        self._is_full = False  # other runs have all jobs; reset by `settle`
        self._has_waited = False  # and had all when a job was last asked for
        self.poll_s = 0.0  # after which to ask again; 0: nothing is waited for
        self.wake_fd = -1  # or when this can be read

    def candidates(self, due: Iterable[Due], took_s: Mapping[str, float]) -> list[Due]:
        """Return the gates that may go there, first those that cost least to upload and wait for.

        Of those that cost the same, the longest comes first.
        """
        if self._is_down and not self._must_go:
            return []
        may = [
            each
            for each in due
            if (each.step.gate.name, each.generation) not in self._attempts
            and self.gates.may_run(each.step)
        ]

        def order(each: Due) -> tuple[float, float]:
            here_s = took_s.get(each.step.gate.name, 0.0)
            return took_s.get(remote_name(each.step.gate.name), here_s) - here_s, -here_s

        return sorted(may, key=order)

    @property
    def _must_go(self) -> bool:
        """Whether a gate that may run there never runs here."""
        return self.is_first and not self.gates.falls_back

    @property
    def has_job(self) -> bool:
        """Whether it makes sense to ask for a job."""
        return not self._is_full and self._jobs < self.gates.jobs

    def take(self, for_s: float) -> list[int] | None:
        """Return what holds a job until it is given back; None if other runs hold all."""
        slots: list[int] | None = []
        if self._pool:
            try:
                slots = self._pool.take(1, 1, for_s)
            except OSError as error:
                self.say(f"jobs of {self.place} are not counted with those of other runs: {error}")
                self._pool.close()
                self._pool = None
        self._is_full = slots is None
        self._jobs += not self._is_full
        if self._is_full and self._has_waited:  # not at once: others start theirs then
            with contextlib.suppress(OSError):  # reported when a gate starts
                self.gates.start_worker()
        self._has_waited = self._is_full
        return slots

    def give_back(self, slots: list[int]) -> None:
        """Return a job."""
        self._jobs -= 1
        if self._pool:
            self._pool.give_back(slots)
        else:
            release(slots)

    def settle(self) -> None:
        """Let others have the jobs that no gate of this run needs now."""
        self.poll_s, self.wake_fd = 0.0, -1
        if self._pool and self._is_full:
            self._pool.settle()
            self.poll_s, self.wake_fd = self._pool.poll_s, self._pool.ticket_fd
        elif self._pool:
            self._pool.close()
        self._is_full = False

    def close(self) -> None:
        """Stop waiting for jobs, and cancel the gates that still run there."""
        self.gates.close()
        if self._pool:
            self._pool.close()

    def job(
        self, due: Due, admission: Admission, changes: GateChanges, context: RunContext
    ) -> RemoteJob:
        """Return a gate that runs there."""
        return RemoteJob(due, admission, changes, context, server=self)

    def note_failure(self, due: Due, end: Any, spent_s: float) -> str:  # noqa: ANN401 - as `gates`
        """Return why a gate could not run there; note it if the gate must run here."""
        why = end.reason.rstrip(".") or "its output was cut off"
        reason = f"could not run on {self.place}: {why}"
        if end.is_down and not self._is_down:
            self._is_down = True
            reason += "" if self._must_go else "; no more gates of this run go there"
        if self.gates.falls_back:
            gate = due.step.gate.name
            self._attempts[gate, due.generation] = RemoteAttempt(spent_s, reason)
            self.say(f"{gate}: {reason}; it runs here")
        return reason

    def attempt(self, due: Due) -> RemoteAttempt:
        """Return how a gate that runs here now was tried there; empty if it was not."""
        return self._attempts.get((due.step.gate.name, due.generation), RemoteAttempt())
