"""Which of a run's gates go to a server, and which of those stay here after all. Cold.

A gate runs here if there is room. If there is none, it may take one of the server's jobs, whose
number all runs of a user share, as they share the machine's slots.
"""

from __future__ import annotations

import contextlib
import time

from gitgates.core.record import Record
from gitgates.core.types import Ending
from gitgates.engine.job import Job
from gitgates.engine.plan import REMOTE
from gitgates.proc.pool import open_pool, release
from gitgates.store.proofs import digest, remote_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gitgates.core.types import Command, GateResult
    from gitgates.engine.change_detector import GateChanges
    from gitgates.engine.job import Admission, RunContext
    from gitgates.engine.walk import Due


_UNKNOWN = "its time ran out, and nothing shows that it started there"


class RemoteResult(Record):
    """What happened to a gate that was to run on a server."""

    ending: Ending | None = None  # None: it is to run here
    action_digest: str = ""  # a digest of what has run
    reused: str = ""  # where the result comes from, if it has not run now
    output: bytes | None = None  # all of it, if what was written must be forgotten


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
        spent_s = time.monotonic() - self.began
        has_output = len(self.capture.captured()[0]) > len(self._before)
        result = self._server.result_of(
            self.due, self._asks, ending, spent_s=spent_s, has_output=has_output
        )
        if result.ending is None:
            return False
        self.reused, self._action_digest = result.reused, result.action_digest
        if result.output is not None:
            self.capture.replace(self._before + result.output)
        return super()._take(result.ending)

    def result(self) -> GateResult:
        """Return how the gate has ended there, before anybody judges it."""
        where = "" if self.endings[-1].not_started else self._server.place
        return super().result()._replace(where=where, action_digest=self._action_digest)


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
        self.gates, self._say = gates, say
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
        """Whether a gate that may go there never runs here."""
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
                self._say(f"jobs of {self.place} are not counted with those of other runs: {error}")
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

    def result_of(
        self,
        due: Due,
        command: Command | None,
        ending: Ending,
        *,
        spent_s: float,
        has_output: bool,
    ) -> RemoteResult:
        """Return what happened to a gate, after `spent_s`, when its child here has ended."""
        end, gate = self.gates.end_of(command, ending), due.step.gate.name
        for note in end.notes:
            self._say(f"{gate}: {note}")
        is_unknown = ending.timed_out and not (has_output or end.has_started)
        if ending.ended_by_us or (ending.timed_out and not is_unknown):
            return RemoteResult(ending=ending)
        if is_unknown:
            end = end._replace(reason=_UNKNOWN, is_down=False)
        is_sound = ending.exit_status == 0
        if is_sound and (end.status, end.exit_status == 0) in (("passed", True), ("failed", False)):
            ended = Ending(exit_status=end.exit_status)
            reused = "the server's cache" if end.is_cached else ""
            return RemoteResult(ended, end.action_digest, reused, end.output)
        reason = (
            f"could not run on {self.place}: {end.reason.rstrip('.') or 'its output was cut off'}"
        )
        if end.is_down and not self._is_down:
            self._is_down = True
            reason += "" if self._must_go else "; no more gates of this run go there"
        if not self.gates.falls_back:
            return RemoteResult(ending=Ending(not_started=reason))
        if is_unknown:
            spent_s = min(spent_s, due.step.gate.timeout_s / 2)
        self._attempts[gate, due.generation] = RemoteAttempt(spent_s, reason)
        self._say(f"{gate}: {reason}; it runs here")
        return RemoteResult()

    def attempt(self, due: Due) -> RemoteAttempt:
        """Return how a gate that runs here now was tried there; empty if it was not."""
        return self._attempts.get((due.step.gate.name, due.generation), RemoteAttempt())
