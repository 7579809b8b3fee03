"""Run a plan: start what is due, wait, look again, until the walk is over."""

from __future__ import annotations

import os
import time

from gitgates.config.load import FILES
from gitgates.engine.command import GitView, Setting, gate_env, judge, make_commands
from gitgates.engine.plan import choose_view, how_again
from gitgates.engine.walk import (
    BEFORE_A_COMMIT,
    ENDED,
    Due,
    Walker,
    changed_meanwhile,
    decide,
    undeclared,
    undeclared_staging,
)
from gitgates.errors import GitgatesError, Interrupted, LockError
from gitgates.git.index import CommittedIndex, Contents, EventFiles, named_index, restage
from gitgates.proc.call import argument_limit, find_runner
from gitgates.proc.processes import Capture, Child, Group, SignalPipe
from gitgates.store import runs
from gitgates.types import (
    ALLOW,
    BLOCK,
    STOP,
    Command,
    Config,
    Decision,
    Ending,
    Gate,
    GateResult,
    Plan,
)
from gitgates.worktree.isolate import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.engine.context import World
    from gitgates.proc.watchdog import Watch

    Planner = Callable[[], tuple[Plan, Config]]


class _Job:
    """One gate under way: the commands still to run, the ends of those that ran, the output."""

    def __init__(self, due: Due, commands: list[Command], capture: Capture) -> None:
        self.due = due
        self.gate: Gate = due.step.gate
        self.commands = commands
        self.capture = capture
        self.endings: list[Ending] = []
        self.started = time.monotonic()
        self.before: Contents | None = None  # of a gate that writes
        self.changed: set[str] = set()  # while it ran, though it does not say that it writes
        self.beside: set[str] = set()  # gates that ran at the same time, and may have done that
        self.child: Child | None = None
        self.shell = commands[0].shell


class InterruptedRun(Interrupted):
    """A signal ended the run; `decision` holds how gates ended until then, and decides nothing."""

    def __init__(self, message: str, plan: Plan, decision: Decision) -> None:
        super().__init__(message)
        self.plan = plan
        self.decision = decision


def run_plan(
    plan: Plan, config: Config, world: World, as_committed: Planner | None = None
) -> Decision:
    """Run the gates of a plan and return what they mean.

    `as_committed` makes the plan anew where the configuration itself was among what is hidden: what
    is committed is checked as it says itself, not as an edit that is not part of it says.

    Raises: InterruptedRun after a signal, when every process that was started is gone.
    """
    hides = choose_view(plan.event, plan.hook) == "hide"
    locks = not (world.is_nested or world.in_checkout)
    with SignalPipe() as signals:

        def look() -> None:
            signals.drain()
            if signals.received:
                text = f"interrupted by signal {signals.received[0]} while waiting"
                raise InterruptedRun(text, plan, Decision(verdict=ALLOW, not_run=plan.listed))
            if world.deadline and not world.deadline.left_s():
                raise LockError("the working tree was in use by another run for too long")

        isolation = Isolation(world.repo, world.say, look, hides=hides and locks, locks=locks)
        try:
            with isolation:
                if as_committed and isolation.hidden_paths() & set(FILES):
                    plan, config = as_committed()
                world.listener.planned(plan)
                run = _Run(plan, config, (world, isolation))
                try:
                    with Group(
                        signals, world.listener.tick if world.wants_ticks else None
                    ) as group:
                        decision = run.loop(group)
                finally:
                    run.close()
        except GitgatesError as error:
            raise error.with_notes(isolation.notes) from error
    return decision._replace(notes=(*decision.notes, *isolation.notes), run_abs=run.run_abs)


class _Run:
    """The state of one run."""

    def __init__(self, plan: Plan, config: Config, place: tuple[World, Isolation]) -> None:
        self.plan = plan
        self.world, self.isolation = place
        self.max_output, self.max_log = config.max_output_bytes, config.max_log_bytes
        self.keep_runs = config.keep_runs
        self.slots = config.jobs or os.cpu_count() or 1
        self.run_abs = runs.run_of(self.world.logs_abs) or runs.new_run(self.world.repo.state_abs)
        self.logs_abs = self.world.logs_abs or f"{self.run_abs}/logs"
        self.results = {
            place_: result
            for place_, result in self.world.earlier.items()
            if result.reason != ENDED  # we ended it: that is no result to go on from
        }
        self.folder = runs.hold(self.run_abs)
        self.watch = _watch() if plan.event.payload else None
        self.walker = Walker(plan)
        self.jobs: list[_Job] = []
        self.is_commit = plan.event.host == "git" and plan.event.name in BEFORE_A_COMMIT
        self.again = how_again(plan.event)  # then a gate may not change the event's files
        self.files = self._event_files()
        self.altered: set[str] = set()  # what changed while gates ran that may not change it
        # What somebody else changed before any gate ran: they would check something else.
        self.strays: frozenset[str] = frozenset()
        if not self.world.in_checkout:
            since = self.files.written_since(self.world.began_ns, self.isolation.shown)
            self.strays = frozenset(since)
        self.index = self._committed_index()
        self.stdin_abs = self._keep_stdin()

    def loop(self, group: Group) -> Decision:
        while True:
            if group.interrupted_by and not self.jobs:
                text = _say_interrupted(group.interrupted_by, self.results)
                raise InterruptedRun(text, self.plan, self._so_far())
            walk = self.walker.advance(self.results)
            if not walk.due and not self.jobs:
                results = tuple(self.results.items())
                return self._judge_run(decide(self.plan, walk))._replace(results=results)
            if walk.verdict == STOP:
                group.end_all()
            if not group.interrupted_by:
                for due in walk.due:
                    self._start(due, group)
            if child := group.wait():
                self._ended(child, group)

    def _so_far(self) -> Decision:
        walk = self.walker.advance(self.results)
        met = {visit.result.gate for visit in walk.visits}
        rest = tuple(name for name in self.plan.listed if name not in met)
        return Decision(verdict=walk.verdict, visits=walk.visits, not_run=rest)

    def close(self) -> None:
        if self.index:
            self.index.remove()
        if self.stdin_abs:
            os.unlink(self.stdin_abs)
        self.folder.release()
        if self.watch:
            self.watch.close()
        runs.prune(self.world.repo.state_abs, self.keep_runs, self.run_abs)

    def _start(self, due: Due, group: Group) -> None:
        if len(self.jobs) >= self.slots or any(job.due == due for job in self.jobs):
            return
        gate = due.step.gate
        if self.jobs and gate.writes:
            return
        if reason := self._why_none_starts():
            result = GateResult(gate=gate.name, status="not-run", reason=reason)
            self.results[gate.name, due.generation] = result
            self.world.listener.ended(result, self.plan)
            return
        commands = list(make_commands(due.step, self.plan.event, self._setting(gate)))
        log_abs = runs.log_abs(self.logs_abs, gate.name, due.generation)
        job = _Job(due, commands, Capture(self.max_output, log_abs, self.max_log))
        if gate.writes:
            job.before = Contents(self.world.git, self._watched(due.step.paths))
        self.world.listener.started(gate.name)
        self.jobs.append(job)
        self._next_command(job, group)

    def _why_none_starts(self) -> str:
        deadline = self.world.deadline
        if deadline and not deadline.left_s():
            return f"the limit of {deadline.limit_s:g} s for all gates was up before its turn"
        return changed_meanwhile(self.strays, self.again) if self.strays else ""

    def _next_command(self, job: _Job, group: Group) -> None:
        """Start the next command of a gate; where there is none, the gate has ended."""
        while job.commands:
            left_s = max(job.started + job.gate.timeout_s - time.monotonic(), 0.0)
            if self.world.deadline:
                left_s = min(left_s, self.world.deadline.left_s())
            child = group.start(job.commands.pop(0), left_s, job.capture)
            if not isinstance(child, str):
                job.child = child
                if self.isolation.rescue:
                    self.isolation.rescue.note_group(child.pid)
                if self.watch:
                    self.watch.add(child.pid)
                return
            job.endings.append(Ending(not_started=child))
            job.commands.clear()
        self._finish(job)

    def _ended(self, child: Child, group: Group) -> None:
        job = next(job for job in self.jobs if job.child is child)
        ending = child.ending()
        job.endings.append(ending)
        if self.watch:
            self.watch.remove(child.pid)
        if ending.timed_out or ending.ended_by_us or group.interrupted_by:
            job.commands.clear()
        self._next_command(job, group)

    def _finish(self, job: _Job) -> None:
        if not job.gate.writes:
            self._note_changes()
        self.jobs.remove(job)
        job.capture.close()
        output, dropped = job.capture.kept()
        result = judge(job.gate.name, tuple(job.endings), shell=job.shell)._replace(
            duration_s=time.monotonic() - job.started,
            output=output,
            dropped_bytes=dropped,
            log_abs=job.capture.log_abs,
        )
        if result.status == "timed-out":
            result = result._replace(reason=self._limit(job, result.duration_s))
        staged = self._staged_by(job.gate)
        if job.before:
            result = self._look_at_files(job, result, job.before)
            self.files.accept()
        result = self._judge_staging(job.gate, self._judge_changes(job, result), staged)
        if result.status in ("passed", "failed"):  # it ended by itself
            for path in result.changed_paths:
                self.isolation.changed_by[path] = job.gate.name, job.gate.writes
        self.results[job.gate.name, job.due.generation] = result
        self.world.listener.ended(result, self.plan)

    def _limit(self, job: _Job, took_s: float) -> str:
        """Say which limit a gate that timed out has met."""
        deadline = self.world.deadline
        if deadline and took_s < job.gate.timeout_s:
            return f"limit {deadline.limit_s:g} s for all gates of the hook"
        return f"limit {job.gate.timeout_s:g} s"

    def _note_changes(self) -> None:
        """Note what changed since the last look; any gate that runs may have done that."""
        found = set(self.files.changed())
        if found and self.plan.event.with_untracked:  # caches and reports of gates among them
            found &= set(self.world.git.names("ls-files", "-z"))
        if not found:
            return
        names = {job.gate.name for job in self.jobs}
        for job in self.jobs:
            job.changed.update(found)
            job.beside |= names - {job.gate.name}

    def _judge_changes(self, job: _Job, result: GateResult) -> GateResult:
        """Fail a gate that changed the event's files and does not say that it writes."""
        if not job.changed:
            return result
        paths = tuple(sorted(job.changed))
        result = result._replace(changed_paths=paths)
        if not self.again:
            return result
        self.altered |= job.changed
        if result.status != "passed":
            return result
        reason = undeclared(paths, job.beside)
        return result._replace(status="failed", exit_status=None, reason=reason)

    def _judge_run(self, decision: Decision) -> Decision:
        """Block where somebody else changed what was to be checked, or may have."""
        said = changed_meanwhile(self.strays or self.altered, self.again)
        # Where no gate blocks for that, others have passed on something else all the same.
        if self.strays or (self.altered and decision.verdict < BLOCK):
            return decision._replace(verdict=max(decision.verdict, BLOCK), reason=said)
        notes = (f"if somebody else did that: {said}",) if self.altered else ()
        return decision._replace(notes=(*decision.notes, *notes))

    def _event_files(self) -> EventFiles:
        """Return the files that the event is about, where gates are to leave them as they are."""
        plan, isolation = self.plan, self.isolation
        is_watched = self.again or plan.event.payload
        paths = (isolation.staged or plan.event.paths or ()) if is_watched else ()
        in_index = isolation.hides or choose_view(plan.event, plan.hook) == "checkout"
        return EventFiles(self.world.git, paths, in_index=in_index)

    def _watched(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return a gate's files with what an agent wrote: git need not know of it yet."""
        return (*paths, *(self.files.paths if self.plan.event.payload else ()))

    def _look_at_files(self, job: _Job, result: GateResult, before: Contents) -> GateResult:
        """See what a gate changed, and put it into the commit where that is wished and right."""
        git = self.world.git
        found = Contents(git, self._watched(job.due.step.paths)).changed_since(before)
        result = result._replace(changed_paths=found)
        if not (job.gate.restage and self.is_commit and result.status == "passed"):
            return result
        staged = set(self.files.paths) - before.unstaged - self.isolation.hidden_paths()
        whole = tuple(path for path in found if path in staged)
        restaged = restage(self.world.repo._replace(root_abs=git.cwd_abs, env=git.env), whole)
        if self.index and restaged:
            self.index.take()
        return result._replace(restaged_paths=restaged)

    def _staged_by(self, gate: Gate) -> tuple[str, ...]:
        """Return what a gate itself changed in the index being committed."""
        if not self.index or not self.is_commit:
            return ()
        staged = self.index.changed_paths()
        if staged and gate.writes:
            self.index.carry_back()
        elif staged:
            self.index.take()
        return staged

    def _judge_staging(self, gate: Gate, result: GateResult, staged: tuple[str, ...]) -> GateResult:
        """Let only a gate that restages change what is being committed."""
        if not staged:
            return result
        result = result._replace(changed_paths=tuple(sorted({*result.changed_paths, *staged})))
        if gate.writes and gate.restage:
            return result._replace(restaged_paths=tuple(sorted({*result.restaged_paths, *staged})))
        if result.status != "passed":
            return result
        reason = undeclared_staging(staged)
        return result._replace(status="failed", exit_status=None, reason=reason)

    def _setting(self, gate: Gate) -> Setting:
        repo = self.world.repo
        by_folder = repo.found_by_folder or self.world.in_checkout
        view = GitView(
            index_file=self.index.value if self.index else "",
            git_dir_abs="" if by_folder else repo.git_dir_abs,
            root_abs=repo.root_abs,
        )
        env = gate_env(self.world.env, self.plan.event, gate, view)
        env = (*env, ("GITGATES_RUN", self.isolation.token))
        runner = () if gate.pre_commit is None else find_runner(gate.runner, dict(env))
        return Setting(
            root_abs=self.world.git.cwd_abs,
            env=env,
            stdin_abs=self.stdin_abs,
            runner=runner,
            limit=argument_limit(dict(env)),
        )

    def _committed_index(self) -> CommittedIndex | None:
        """Return the index that gates may look at, where it is not simply the worktree's own."""
        copies = any(step.gate.git_env == "commit" for step in self.plan.steps)
        _named_abs, is_other = named_index(self.world.repo)
        if self.world.in_checkout or not (self.is_commit or copies or is_other):
            return None  # a checkout has an index of its own
        return CommittedIndex(self.world.repo, copies=copies)

    def _keep_stdin(self) -> str:
        """Keep the hook's input in a file, from which each gate that asks reads it anew."""
        if not self.plan.event.stdin or not any(s.gate.pass_hook_input for s in self.plan.steps):
            return ""
        return runs.keep_stdin(self.run_abs, self.plan.event.stdin)


def _watch() -> Watch:
    # An agent's host kills a hook that takes too long; no hook of git need pay for that.
    from gitgates.proc.watchdog import Watch

    return Watch()


def _say_interrupted(number: int, results: Mapping[tuple[str, int], GateResult]) -> str:
    ended = [result.gate for result in results.values() if result.status == "killed"]
    while_running = f" while `{'`, `'.join(ended)}` ran" if ended else ""
    return f"interrupted by signal {number}{while_running}; nothing was decided"
