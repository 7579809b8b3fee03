"""Decide whether a gate may start now, reuse a pass, or must wait for another run or a free slot.

A gate that must wait is asked about again. The content may have changed by then, so it is read
again, too.
"""

from __future__ import annotations

import os

from gitgates.core.policy import providers
from gitgates.engine.plan.command import ACTIVE, HELD
from gitgates.engine.plan.plan import OFF, REUSE, is_reusable
from gitgates.engine.run.job import Admission
from gitgates.proc.pool import Use, open_pool, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import Command, Config, Gate, GateResult, Plan, Step
    from gitgates.engine.reuse.reuse import Candidate, Reuse
    from gitgates.engine.run.job import RunOptions
    from gitgates.engine.run.remote import RemoteRun
    from gitgates.git.repo import Repo
    from gitgates.observed.unchanged import Dependencies
    from gitgates.proc.resources import Resources, Wait

_WAIT_S = 0.02  # for another run that is computing the same
_FEWEST = 4  # paths of a process of a parallel gate, as in the pre-commit framework


def reuse_of(
    plan: Plan, config: Config, repo: Repo, checkout: Repo | None, *, say: Callable[[str], None]
) -> Reuse:
    """Return what a run may reuse: also others' passes, if these are configured."""
    if (signed := providers(config, "signed_passes")) and repo.env.get(REUSE) != OFF:
        from gitgates.engine.reuse.shared import SharedReuse  # no other run pays for it

        reuse: Reuse = SharedReuse(plan, repo, checkout, say, signed=signed[0](repo, config, say))
    else:
        from gitgates.engine.reuse.reuse import Reuse  # most gates reuse no passes

        reuse = Reuse(plan, repo, checkout, say)
    if any(step.gate.remote.allowed for step in plan.steps):
        for provide in providers(config, "remote_execution"):
            reuse.remote = provide(repo, config)
    return reuse


def held_above(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the resources held by the gates that this run is part of."""
    return tuple(filter(None, env.get(HELD, "").split("\n"))) if env.get(ACTIVE) else ()


class Admissions:
    """The gates of one run that may start."""

    def __init__(
        self,
        config: Config,
        repo: Repo,
        reuse: Reuse | None,
        say: Callable[[str], None],
        *,
        options: RunOptions,
        remote: RemoteRun | None = None,
    ) -> None:
        self._remote, self._repo, env = remote, repo, repo.env
        self._since_ns, is_urgent = options.since_ns, options.is_urgent
        self.slots = config.jobs or os.cpu_count() or 1
        self._reuse, self._say = reuse, say
        # Whoever waits for this run has a slot already, and would not give it up.
        is_nested = bool(env.get(ACTIVE))
        self._pool = None if is_nested else open_pool(env, self.slots, is_urgent=is_urgent)
        self._waiting: dict[str, Candidate | None] = {}  # gate → its candidate, without a slot
        self._asked: set[str] = set()  # the gates that have asked for slots, since `settle`
        self._is_full = False  # a gate waits for slots, and no other may get them before it
        self._is_computed = False  # a gate waits for another run that is computing the same
        self._config, self._is_urgent = config, is_urgent
        self._resources: Resources | None = None  # made for the first gate that has some
        self.waits: dict[str, Wait] = {}  # gate → what it waits for
        self.wait_s = _WAIT_S  # until waiting gates are checked again
        self.wake_fds: tuple[int, ...] = ()  # or when one of these can be read

    def weight(self, gate: Gate) -> int:
        """Return how many slots a process of a gate takes."""
        return min(gate.schedule.weight, self.slots)

    def ask(
        self,
        step: Step,
        make_commands: Callable[[Step], list[Command]],
        room: int,
        *,
        is_remote: bool = False,
    ) -> Admission | None:
        """Return how a gate may start now, in `room` slots or remotely; None if it must wait."""
        gate = step.gate.name
        if self._reuse and step.gate.program.writes:
            self._reuse.record()  # of those before it, as long as the content is theirs
        has_waited = gate in self._waiting
        candidate = self._waiting.pop(gate) if has_waited else self._look_up(step, make_commands)
        if candidate and (candidate.rest is None or candidate.waits):
            return self._without_slots(candidate)
        rest = candidate.rest if candidate and candidate.rest else step
        held_fds, slots = self._hold(step.gate) if step.gate.schedule.resources else (), None
        if held_fds is not None:
            slots = self._take_job(step.gate) if is_remote else self._take(rest, room)
        if held_fds is None or slots is None:
            self._waiting[gate] = candidate
            return None
        if has_waited and candidate and self._reuse:
            self._reuse.give_up(candidate)
            candidate = self._look_up(step, make_commands)
            if candidate and (candidate.rest is None or candidate.waits):
                self.give_back(slots, is_remote=is_remote)
                self.release(gate)
                return self._without_slots(candidate)
            rest = candidate.rest if candidate and candidate.rest else step
        self.waits.pop(gate, None)
        if is_remote:
            return Admission(step=rest, candidate=candidate, slots=tuple(slots), is_remote=True)
        weight = self.weight(step.gate)
        at_once = len(slots) // weight if self._pool else self._most(rest, room)
        self.give_back(slots[at_once * weight :])
        return Admission(
            step=rest,
            candidate=candidate,
            at_once=at_once,
            slots=tuple(slots[: at_once * weight]),
            held_fds=held_fds,
        )

    def _hold(self, gate: Gate) -> tuple[int, ...] | None:
        """Return what holds a gate's resources; None if it must wait."""
        from gitgates.proc.resources import Resources, Wait  # few gates have some

        if not self._resources:
            limits, since_ns = dict(self._config.resources), self._since_ns
            self._resources = Resources(
                self._repo.env, limits, is_urgent=self._is_urgent, since_ns=since_ns
            )
        above = held_above(self._repo.env)
        missing = tuple(name for name in gate.schedule.resources if name not in above)
        fds = self._resources.take(self._use(gate), missing)
        if isinstance(fds, Wait):
            self.waits[gate.name] = fds
            return None
        return fds

    def _use(self, gate: Gate) -> Use:
        return Use(gate.name, self._repo.shared_state_abs, self._repo.root_abs)

    def release(self, gate: str) -> None:
        """Release the resources of a gate."""
        self.waits.pop(gate, None)
        if self._resources:
            self._resources.give_back(gate)

    def _without_slots(self, candidate: Candidate) -> Admission | None:
        self._is_computed = self._is_computed or candidate.waits
        return None if candidate.waits else Admission(step=None, candidate=candidate)

    def _most(self, step: Step, room: int) -> int:
        """Return how many processes of a gate make sense, at least one."""
        if not step.gate.schedule.parallel:
            return 1
        return max(min(room // self.weight(step.gate), len(step.paths) // _FEWEST), 1)

    def _take(self, step: Step, room: int) -> list[int] | None:
        """Return the slots for a gate, and more for a parallel one, if they are free."""
        self._asked.add(step.gate.name)
        if self._is_full or not self._pool:
            return None if self._is_full else []
        weight, gate = self.weight(step.gate), step.gate
        # A ratchet may run it twice, and a baseline.
        for_s = (
            gate.schedule.timeout_s
            * (2 if gate.measures.ratchet or gate.measures.baseline else 1)
            * gate.schedule.runs
        )
        self._pool.use = self._use(gate)
        self._pool.since_ns = self._since_ns
        try:
            slots = self._pool.take(weight, weight * self._most(step, room), for_s)
        except OSError as error:  # a full disk, or something that cleans up /tmp
            self._say(f"gates do not wait for other runs' gates: {error}")
            self._pool.close()
            self._pool = None
            return []
        self._is_full = slots is None
        if self._is_full:
            from gitgates.proc.resources import Wait  # only whoever waits says so

            self.waits[gate.name] = Wait("a job slot", *self._pool.queue())
        for slot_abs in self._pool.take_stopped():
            self._say(
                f"no longer waiting for the job slot {slot_abs}: its gate should have ended by now"
            )
        return slots

    def _take_job(self, gate: Gate) -> list[int] | None:
        """Return what holds a server job, if one is free; then no slot is needed here."""
        slots = self._remote.take(gate.schedule.timeout_s) if self._remote else None
        if slots is not None:
            self._asked.discard(gate.name)
            self._is_full = self._is_full and bool(self._asked)
        return slots

    def settle(self) -> None:
        """Let others have the slots that no gate of this run needs now, and the passes."""
        if self._reuse:
            self._reuse.record()
        self.wait_s = _WAIT_S
        pools = [*self._resources.pools.values()] if self._resources else []
        if self._pool:
            pools.append(self._pool)
            if self._asked:
                self._pool.settle()
            else:  # its gate cannot start now: others are not to wait for it
                self._pool.close()
        waits_s = [pool.poll_s for pool in pools if pool.ticket_fd >= 0]
        fds = [pool.ticket_fd for pool in pools]
        if self._remote:
            self._remote.settle()
            fds.append(self._remote.wake_fd)
            if self._remote.poll_s:
                waits_s.append(self._remote.poll_s)
        self.wake_fds = tuple(fd for fd in fds if fd >= 0)
        if waits_s and not self._is_computed:
            self.wait_s = min(waits_s)
        self._is_full = self._is_computed = False
        self._asked.clear()

    def stays(self, admission: Admission) -> None:
        """Take back the admission of a gate that could not run on the server: it runs here."""
        self.give_back([*admission.slots], is_remote=True)
        if self._reuse and admission.candidate:
            self._reuse.give_up(admission.candidate)

    def give_back(self, slots: list[int], *, is_remote: bool = False) -> None:
        """Return the slots that a gate no longer needs."""
        if is_remote and self._remote:
            self._remote.give_back(slots)
        elif self._pool:
            self._pool.give_back(slots)
        else:
            release(slots)

    def ended(self, admission: Admission, result: GateResult, depends: Dependencies | None) -> None:
        """Record what a gate's run has proved, by what it depended on, if that is known."""
        if self._reuse:
            self._reuse.ended(admission.candidate, result, depends)

    def close(self) -> None:
        """Stop waiting."""
        if self._pool:
            self._pool.close()
        if self._resources:
            self._resources.close()
        if self._remote:
            self._remote.close()
        for candidate in self._waiting.values():
            if candidate and self._reuse:
                self._reuse.give_up(candidate)
        if self._reuse:
            self._reuse.close()

    def why_never(self, gate: Gate) -> str:
        """Return why a gate can never start; empty if it may."""
        above = held_above(self._repo.env)
        missing = [name for name in gate.schedule.resources if name not in above]
        if not (above and missing):
            return ""
        return (
            f"it needs `{missing[0]}`, and runs within a gate that has only "
            f"`{'`, `'.join(above)}`: name it in the `resources` of that gate, too"
        )

    def _look_up(
        self, step: Step, make_commands: Callable[[Step], list[Command]]
    ) -> Candidate | None:
        if self._reuse and is_reusable(step.gate):
            return self._reuse.look_up(step, make_commands)
        return None
