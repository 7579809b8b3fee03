"""Run a plan: start what is due, wait, look again, until the walk is over."""

from __future__ import annotations

import os
import time

from gitgates.engine.command import Setting, make_commands
from gitgates.engine.decide import decide
from gitgates.engine.ending import judge
from gitgates.engine.environment import GitView, gate_env
from gitgates.engine.walk import BEFORE_A_COMMIT, Due, advance
from gitgates.errors import GitgatesError, Interrupted, StateError
from gitgates.record import Record
from gitgates.shelter import Shelter, Site
from gitgates.system import runs
from gitgates.system.capture import Capture
from gitgates.system.changes import Contents, changed, contents
from gitgates.system.index import PrivateIndex, named_index
from gitgates.system.proc import Child, Group
from gitgates.system.signals import SignalPipe
from gitgates.system.spawn import argument_limit, find_runner
from gitgates.types import STOP, Command, Config, Decision, Ending, Gate, GateResult, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from gitgates.system.git import Git
    from gitgates.system.roots import Roots

    class Listener(Protocol):
        """Who wants to know how a run goes on."""

        def started(self, gate: str) -> None:
            """Hear that a gate starts."""

        def ended(self, result: GateResult, plan: Plan) -> None:
            """Hear how a gate ended."""

        def tick(self) -> None:
            """Be called now and then while something runs."""

        def said(self, text: str) -> None:
            """Hear something that a person should know at once."""


class Silent:
    """The listener that wants to know nothing."""

    def started(self, gate: str) -> None:
        """Ignore it."""

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Ignore it."""

    def tick(self) -> None:
        """Ignore it."""

    def said(self, text: str) -> None:
        """Ignore it."""


class World(Record):
    """Where a plan runs."""

    roots: Roots
    git: Git  # in the root, with the environment that the host gave us
    env: Mapping[str, str]  # what gates start from
    listener: Listener
    wants_ticks: bool = False
    is_nested: bool = False  # another run here is waiting for this one

    def say(self, text: str) -> None:
        """Tell the person something at once."""
        self.listener.said(text)


class _Job:
    """One gate under way: the commands still to run, the ends of those that ran, the output."""

    def __init__(self, due: Due, commands: list[Command], capture: Capture) -> None:
        self.due = due
        self.gate: Gate = due.step.gate
        self.commands = commands
        self.capture = capture
        self.endings: list[Ending] = []
        self.started = time.monotonic()
        self.before: Contents = {}
        self.child: Child | None = None
        self.shell = commands[0].shell


def run_plan(plan: Plan, config: Config, world: World) -> Decision:
    """Run the gates of a plan and return what they mean.

    Raises: Interrupted after a signal, when every process that was started is gone.
    """
    site = Site(world.roots, world.git, world.env, world.say)
    with SignalPipe() as signals:
        shelter = Shelter(site, hides=_hides(plan), locks=not world.is_nested)
        try:
            with shelter:
                run = _Run(plan, config, (world, shelter))
                try:
                    with Group(
                        signals, world.listener.tick if world.wants_ticks else None
                    ) as group:
                        decision = run.loop(group)
                finally:
                    run.close()
        except GitgatesError as error:
            raise error.with_notes(shelter.notes) from error
    return decision._replace(notes=(*decision.notes, *shelter.notes))


def _hides(plan: Plan) -> bool:
    """Tell whether gates see only what is being committed. Elsewhere nothing is being committed."""
    before_commit = plan.event.host == "git" and plan.event.name in BEFORE_A_COMMIT
    return before_commit and plan.hook.unstaged != "keep"


class _Run:
    """The state of one run."""

    def __init__(self, plan: Plan, config: Config, place: tuple[World, Shelter]) -> None:
        self.plan = plan
        self.world, self.shelter = place
        self.max_output = config.max_output_bytes
        self.slots = config.jobs or os.cpu_count() or 1
        self.run_abs = runs.new_run(self.world.roots.state_abs)
        self.results: dict[tuple[str, int], GateResult] = {}
        self.jobs: list[_Job] = []
        self.index = self._private_index()
        self.stdin_abs = self._keep_stdin()

    def loop(self, group: Group) -> Decision:
        while True:
            if group.interrupted_by and not self.jobs:
                raise Interrupted(_say_interrupted(group.interrupted_by, self.results))
            walk = advance(self.plan, self.results)
            if not walk.due and not self.jobs:
                return decide(self.plan, walk)
            if walk.verdict == STOP:
                group.end_all()
            if not group.interrupted_by:
                for due in walk.due:
                    self._start(due, group)
            if child := group.wait():
                self._ended(child, group)

    def close(self) -> None:
        if self.index:
            self.index.remove()
        if self.stdin_abs:
            os.unlink(self.stdin_abs)
            runs.remove_if_empty(self.run_abs)
        runs.prune(self.world.roots.state_abs)

    def _start(self, due: Due, group: Group) -> None:
        if len(self.jobs) >= self.slots or any(job.due == due for job in self.jobs):
            return
        gate = due.step.gate
        if self.jobs and gate.writes:
            return
        commands = list(make_commands(due.step, self.plan.event, self._setting(gate)))
        log_abs = runs.log_abs(self.run_abs, gate.name, due.generation)
        job = _Job(due, commands, Capture(self.max_output, log_abs))
        if gate.writes:
            job.before = contents(self.world.git, due.step.paths)
        self.world.listener.started(gate.name)
        self.jobs.append(job)
        self._next_command(job, group)

    def _next_command(self, job: _Job, group: Group) -> None:
        """Start the next command of a gate; where there is none, the gate has ended."""
        while job.commands:
            left_s = job.started + job.gate.timeout_s - time.monotonic()
            child = group.start(job.commands.pop(0), max(left_s, 0.0), job.capture)
            if not isinstance(child, str):
                job.child = child
                if self.shelter.rescue:
                    self.shelter.rescue.note_group(child.pid)
                return
            job.endings.append(Ending(not_started=child))
            job.commands.clear()
        self._finish(job)

    def _ended(self, child: Child, group: Group) -> None:
        job = next(job for job in self.jobs if job.child is child)
        ending = child.ending()
        job.endings.append(ending)
        if ending.timed_out or ending.ended_by_us or group.interrupted_by:
            job.commands.clear()
        self._next_command(job, group)

    def _finish(self, job: _Job) -> None:
        self.jobs.remove(job)
        job.capture.close()
        output, dropped = job.capture.kept()
        result = judge(job.gate.name, tuple(job.endings), shell=job.shell)._replace(
            duration_s=time.monotonic() - job.started,
            output=output,
            dropped_bytes=dropped,
            log_abs=job.capture.log_abs,
        )
        if job.gate.writes:
            after = contents(self.world.git, job.due.step.paths)
            result = result._replace(changed_paths=changed(job.before, after))
        result = self._look_at_index(job.gate, result)
        self.results[job.gate.name, job.due.generation] = result
        self.world.listener.ended(result, self.plan)

    def _look_at_index(self, gate: Gate, result: GateResult) -> GateResult:
        if not self.index or not self.index.is_changed():
            return result
        if gate.writes:
            self.index.carry_back()
            return result
        self.index.copy()
        reason = "it changed the index being committed; a gate that may has writes = true"
        return result._replace(status="failed", reason=reason)

    def _setting(self, gate: Gate) -> Setting:
        roots = self.world.roots
        view = GitView(
            index_file=self.index.value if self.index else "",
            git_dir_abs="" if roots.found_by_folder else roots.git_dir_abs,
            root_abs=roots.root_abs,
        )
        env = gate_env(self.world.env, self.plan.event, gate, view)
        runner = () if gate.pre_commit is None else find_runner(gate.runner, dict(env))
        return Setting(
            root_abs=roots.root_abs,
            env=env,
            stdin_abs=self.stdin_abs,
            runner=runner,
            limit=argument_limit(dict(env)),
        )

    def _private_index(self) -> PrivateIndex | None:
        named_abs, is_other = named_index(self.world.roots, self.world.git.env)
        wanted = any(step.gate.git_env == "commit" for step in self.plan.steps)
        if not (is_other or wanted) or not os.path.exists(named_abs):
            return None
        index = PrivateIndex(self.world.roots, named_abs, self.world.git)
        index.copy()
        return index

    def _keep_stdin(self) -> str:
        """Keep the hook's input in a file, from which each gate that asks reads it anew."""
        if not self.plan.event.stdin or not any(s.gate.pass_hook_input for s in self.plan.steps):
            return ""
        path_abs = f"{self.run_abs}/stdin"
        try:
            os.makedirs(os.path.dirname(path_abs), mode=0o700, exist_ok=True)
            with open(path_abs, "xb", opener=_private) as file:
                file.write(self.plan.event.stdin)
        except OSError as error:
            raise StateError(
                f"{path_abs}: the hook's input cannot be kept for its gates: {error.strerror}"
            ) from error
        return path_abs


def _private(path_abs: str, flags: int) -> int:
    return os.open(path_abs, flags, 0o600)


def _say_interrupted(number: int, results: Mapping[tuple[str, int], GateResult]) -> str:
    ended = [result.gate for result in results.values() if result.status == "killed"]
    while_running = f" while `{'`, `'.join(ended)}` ran" if ended else ""
    return f"interrupted by signal {number}{while_running}; nothing was decided"
