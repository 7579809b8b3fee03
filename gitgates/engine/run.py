"""Run a plan: start due gates and wait for them until nothing is left."""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitgatesError, Interrupted, LockError
from gitgates.core.policy import lenders
from gitgates.core.record import Record
from gitgates.core.types import (
    ALLOW,
    AS_COMMITTED,
    AS_IS,
    HIDDEN,
    Command,
    Config,
    Decision,
    Ending,
    GateResult,
    Plan,
)
from gitgates.engine.admission import Admission, Admissions, reuse_of
from gitgates.engine.change_detector import ChangeDetector
from gitgates.engine.command import (
    NOT_FOUND,
    gate_env,
    is_running_here,
    make_commands,
    make_result,
    split,
    with_hook,
)
from gitgates.engine.plan import (
    AUDIT,
    OFF,
    REMOTE,
    REUSE,
    has_types,
    is_given_paths,
    looks_up,
)
from gitgates.engine.walk import CANCELLED, ENDED, Due, advance, make_decision
from gitgates.proc.call import argument_limit
from gitgates.proc.processes import Capture, Child, Group, SignalPipe
from gitgates.store import runs
from gitgates.store.files import remove_file
from gitgates.worktree.isolate import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import Place, Step
    from gitgates.engine.base import Base
    from gitgates.engine.baseline import KnownFailures
    from gitgates.engine.change_detector import GateChanges
    from gitgates.engine.listener import Listener
    from gitgates.engine.metrics import Measurement
    from gitgates.engine.remote import RemoteRun
    from gitgates.git.repo import Repo
    from gitgates.observed.unchanged import Dependencies
    from gitgates.proc.watchdog import Watchdog
    from gitgates.worktree.checkouts import Checkout

_PATIENCE_S = 2.0  # of waiting for other runs, before that is reported
_STRACE_BYTES = 4096  # of arguments in front of those of a gate that is observed
_NOTABLE_S = 0.1  # a gate that takes less starts in any order


class Deadline(Record):
    """The end of the time that all gates of an event have together."""

    at: float  # of the monotonic clock
    limit_s: float  # what it was in the beginning, for people

    def left_s(self) -> float:
        """Return how much of it is left; 0 if it is over."""
        return max(self.at - time.monotonic(), 0.0)


class RunOptions(Record):
    """The options of one run."""

    checkout: Repo | None = None  # a private checkout that gates run in
    locks: bool = True  # False: nobody that wants to change the files waits for it
    deadline: Deadline | None = None
    logs_abs: str = ""  # where the gates' logs go; empty: into a new run
    began_ns: int = 0  # when the event arrived, by the wall clock; 0: irrelevant
    earlier: Mapping[tuple[str, int], GateResult] = {}  # results that are already final
    is_urgent: bool = False  # a person waits for it: it is served before agents' runs
    place: Place = AS_IS
    # Makes a new plan, once files are hidden: of types that they may not have had before.
    plan_again: Callable[[], Plan] | None = None


class InterruptedRun(Interrupted):
    """A signal ended the run; `decision` holds the results until then, and no verdict."""

    def __init__(self, message: str, plan: Plan, decision: Decision) -> None:
        super().__init__(message)
        self.plan = plan
        self.decision = decision


def run_plan(
    plan: Plan,
    config: Config,
    repo: Repo,
    listener: Listener,
    *,
    options: RunOptions | None = None,
) -> Decision:
    """Run the gates of a plan and return what they mean.

    Raises: InterruptedRun after a signal, when every process that was started is gone.
    """
    options = options or RunOptions()
    is_nested = is_running_here(repo.env, repo.git_dir_abs)  # a run here waits for this one
    locks = options.locks and not (is_nested or options.checkout)
    hides = locks and options.place == HIDDEN
    with SignalPipe() as signals:

        def look() -> None:
            signals.drain()
            if signals.received:
                text = f"interrupted by signal {signals.received[0]} while waiting"
                raise InterruptedRun(text, plan, Decision(verdict=ALLOW, not_run=plan.listed))
            if options.deadline and not options.deadline.left_s():
                raise LockError("timed out waiting for another run in this working tree")

        isolation = Isolation(repo, listener.message, look, hides=hides, locks=locks)
        try:
            with isolation:
                if options.plan_again and isolation.hidden and has_types(plan):
                    plan = options.plan_again()
                listener.planned(plan)
                run = _Run(plan, config, repo, options, listener=listener, isolation=isolation)
                try:
                    with Group(signals, listener.tick if listener.live else None) as group:
                        decision = run.loop(group)
                finally:
                    run.close()
        except GitgatesError as error:
            raise error.with_notes(isolation.notes) from error
    if repo.env.get(REUSE) == AUDIT:
        from gitgates.engine.reuse_preview import audited  # seldom needed

        decision = audited(decision)
    decision = decision._replace(notes=(*decision.notes, *isolation.notes), run_abs=run.run_abs)
    return run.reuse.finished(decision) if run.reuse else decision


class _Job:
    """One running gate: its remaining commands, the exits of those that ran, the output."""

    def __init__(
        self,
        due: Due,
        commands: list[Command],
        *,
        capture: Capture,
        changes: GateChanges,
        admission: Admission,
    ) -> None:
        self.due = due
        self.gate = due.step.gate
        self.step = admission.step or due.step  # without what is reused
        self.commands = commands
        self.capture = capture
        self.parts: list[Capture] = []  # of its processes, where they run at once
        self.changes = changes
        self.endings: list[Ending] = []
        self.started = time.monotonic()
        self.children: list[Child] = []
        self.measurement: Measurement | None = None
        self.admission = admission
        self.at_once = admission.at_once
        self.slots = [*admission.slots]
        self.is_remote = admission.is_remote
        self.asks: Command | None = None  # the child here that has a command run there
        self.action_digest = ""  # a digest of what has run there
        self.reused = ""  # where the result comes from, if it has not run there now
        self.before = b""  # the output of the commands before this one
        self.baseline: KnownFailures | None = None  # of a gate that failed
        self.observer = admission.candidate.observer if admission.candidate else None
        self.depends: Dependencies | None = None  # what it depended on, if that was seen
        self.head_result: GateResult | None = None  # while it runs on what it is compared with
        self.checkout: Checkout | None = None  # of that
        self.shell = commands[0].shell


class _Run:
    """The state of one run."""

    def __init__(
        self,
        plan: Plan,
        config: Config,
        repo: Repo,
        options: RunOptions,
        *,
        listener: Listener,
        isolation: Isolation,
    ) -> None:
        self.plan, self.config, self.repo, self.options = plan, config, repo, options
        self.listener, self.isolation = listener, isolation
        self.run_abs = runs.run_of(options.logs_abs) or runs.new_run(repo.state_abs)
        self.logs_abs = options.logs_abs or f"{self.run_abs}/logs"
        self.has_folder = False
        self.results = {
            at: result
            for at, result in options.earlier.items()
            if result.reason not in (ENDED, CANCELLED)  # we ended it: not a result to continue from
        }
        self.jobs: list[_Job] = []
        self.durations: Mapping[str, float] | None = None  # gate → how long it took earlier, in s
        self.is_cancelled = False  # by a gate that has blocked or stopped the run
        self.waits_since = 0.0  # that nothing runs, by the monotonic clock; 0: something does
        self.has_reported_wait = False
        self.env = with_hook((options.checkout or repo).env, plan.event.name, repo.git_dir_abs)
        self.watch = _watch() if plan.event.payload else None
        self.detector = ChangeDetector(
            plan,
            repo,
            isolation,
            checkout=options.checkout,
            as_committed=isolation.hides or options.place == AS_COMMITTED,
            began_ns=options.began_ns,
        )
        self.reuse = None
        if looks_up(plan.steps):
            self.reuse = reuse_of(plan, config, repo, options.checkout, say=listener.message)
        self.remote = _remote(plan, config, repo, listener, is_urgent=options.is_urgent)
        self.admissions = Admissions(
            config,
            repo.env,
            self.reuse,
            listener.message,
            is_urgent=options.is_urgent,
            remote=self.remote,
        )
        self.fixers = None
        if isolation.locks and any(gate.writes for gate in config.gates):
            from gitgates.worktree.fixers import FixerLock  # most have no gates that write

            self.fixers = FixerLock(repo.state_abs)
        self.stdin_abs = ""
        if plan.event.stdin and any(step.gate.pass_hook_input for step in plan.steps):
            self._make_folder()
            self.stdin_abs = runs.keep_stdin(self.run_abs, plan.event.stdin)

    def loop(self, group: Group) -> Decision:
        while True:
            if group.handle_signals() and not self.jobs:
                text = _say_interrupted(group.handle_signals(), self.results)
                raise InterruptedRun(text, self.plan, self._partial_decision())
            walk = advance(self.plan, self.results)
            if not walk.due and not self.jobs:
                decision = self.detector.judge_run(make_decision(self.plan, walk))
                return decision._replace(results=tuple(self.results.items()))
            if not walk.due:  # it is over, whatever those that run will say
                self.is_cancelled = True
                group.end_all()
            waits = not group.handle_signals() and self._start_all(walk.due, group)
            self.admissions.settle()
            if self.fixers and not self.jobs:
                self.fixers.release()
            self._report_wait(waits=waits and not self.jobs)
            wait_s, wake_fds = self.admissions.wait_s, self.admissions.wake_fds
            if child := group.wait(wait_s, wake_fds) if waits else group.wait():
                self._ended(child, group)

    def _start_all(self, due: tuple[Due, ...], group: Group) -> bool:
        """Start what may start; return whether a gate has to wait for another run."""
        running = [job.due for job in self.jobs]
        left = [each for each in self._longest_first(due) if each not in running]
        there: list[Due] = []
        if self.remote and self.remote.is_first:
            there = self.remote.candidates(left, self._durations())
            left = [each for each in left if each not in there]
        waiting: list[Due] = []
        while left and self.admissions.weight(left[0].step.gate) <= self._room():
            if self._start(left[0], group):
                waiting.append(left[0])
            del left[0]  # no later one gets ahead of one that there is no room for
        if self.remote and (there or waiting or left):
            for each in there or self.remote.candidates((*waiting, *left), self._durations()):
                if not self.remote.has_job:
                    break
                waits = self._start(each, group, is_remote=True)
                waiting = [other for other in waiting if other != each] + [each] * waits
        return bool(waiting)

    def _room(self) -> int:
        """Return how many slots gates may still take."""
        weight = self.admissions.weight
        here = [job for job in self.jobs if not job.is_remote]
        return self.admissions.slots - sum(job.at_once * weight(job.gate) for job in here)

    def _longest_first(self, due: tuple[Due, ...]) -> tuple[Due, ...]:
        """Return gates in an order in which the last ones do not end long after the others."""
        if sum(self.admissions.weight(each.step.gate) for each in due) <= self.admissions.slots:
            return due
        took_s = self._durations()
        return tuple(sorted(due, key=lambda each: -took_s.get(each.step.gate.name, 0.0)))

    def _durations(self) -> Mapping[str, float]:
        if self.durations is None:
            from gitgates.store.proofs import durations  # where not all can start at once

            self.durations = durations(self.repo.shared_state_abs)
        return self.durations

    def _report_wait(self, *, waits: bool) -> None:
        """Report once that nothing runs, because other runs are waited for."""
        if not waits:
            self.waits_since = 0.0
        elif not self.waits_since:
            self.waits_since = time.monotonic()
        elif time.monotonic() - self.waits_since > _PATIENCE_S and not self.has_reported_wait:
            self.has_reported_wait = True
            self.listener.message("waiting for other gitgates runs of yours to finish")

    def _partial_decision(self) -> Decision:
        walk = advance(self.plan, self.results)
        met = {visit.result.gate for visit in walk.visits}
        rest = tuple(name for name in self.plan.listed if name not in met)
        return Decision(verdict=walk.verdict, visits=walk.visits, not_run=rest)

    def close(self) -> None:
        self.detector.close()
        self.admissions.close()
        if self.fixers:
            self.fixers.release()
        self._note_durations()
        for job in self.jobs:
            if job.checkout:
                job.checkout.close()
        if self.stdin_abs:
            runs.discard_stdin(self.stdin_abs)
        if self.watch:
            self.watch.close()
        if self.has_folder:
            runs.prune(self.repo.state_abs, self.config.keep_runs, self.run_abs)

    def _note_durations(self) -> None:
        """Record how long the gates took that ran to their end, and not for some files only."""
        ended = {
            gate: result
            for (gate, _), result in self.results.items()
            if result.status in ("passed", "failed", "timed-out")
            and not (result.reused or result.remote_failure)
        }
        # A hook whose gates all take no time writes nothing, and loads nothing for that.
        if any(result.duration_s > _NOTABLE_S for result in ended.values()):
            from gitgates.store.proofs import note_durations, remote_name

            seconds_by_gate = {
                remote_name(gate) if result.where else gate: result.duration_s
                for gate, result in ended.items()
            }
            note_durations(self.repo.shared_state_abs, seconds_by_gate)

    def _make_folder(self) -> None:
        """Create the folder of the run, when the first output is written."""
        runs.make(self.run_abs)
        self.has_folder = True

    def _start(self, due: Due, group: Group, *, is_remote: bool = False) -> bool:
        """Start a gate, if it may start; return whether it has to wait for another run."""
        gate, room = due.step.gate, self._room()
        if self.jobs and gate.writes:
            return False
        fixers = self.fixers
        if fixers and not fixers.take(alone=gate.writes, most_s=gate.timeout_s):
            return True
        if reason := self._why_none_starts():
            self._conclude(due, GateResult(gate=gate.name, status="not-run", reason=reason))
            return False
        admission = self.admissions.ask(due.step, self._commands, room, is_remote=is_remote)
        if admission is None:
            return True
        step = admission.step
        if step is None:
            passed = GateResult(
                gate=gate.name,
                status="passed",
                reused=admission.reused,
                action_digest=admission.candidate.action_digest if admission.candidate else "",
            )
            self._conclude(due, passed)
            return False
        log_abs = runs.log_abs(self.logs_abs, gate.name, due.generation)
        measurement = None
        if gate.metrics:
            from gitgates.engine.metrics import Measurement  # only for gates with metrics

            measurement = Measurement(gate, self.plan, self.repo, self.options.checkout)
        limit, log_limit = self.config.max_output_bytes, self.config.max_log_bytes
        capture = Capture(limit, log_abs, log_limit, self._make_folder)
        changes = self.detector.begin(gate, step.paths, is_remote=is_remote)
        commands = self._commands_at_once(step, admission.at_once)
        job = _Job(due, commands, capture=capture, changes=changes, admission=admission)
        job.measurement = measurement
        if self.remote and not is_remote:
            job.started -= self.remote.attempt(due).spent_s
        self.listener.started(gate.name)
        self.jobs.append(job)
        self._next_command(job, group)
        return False

    def _conclude(self, due: Due, result: GateResult) -> None:
        self.results[due.step.gate.name, due.generation] = result
        self.listener.ended(result, self.plan)

    def _why_none_starts(self) -> str:
        deadline = self.options.deadline
        if deadline and not deadline.left_s():
            return f"the {deadline.limit_s:g} s limit for all gates was reached before it started"
        return self.detector.why_none_starts()

    def _commands_at_once(self, step: Step, at_once: int) -> list[Command]:
        parts = split(step, at_once) if at_once > 1 else [step]
        return [command for part in parts for command in self._commands(part)]

    def _commands(self, step: Step, base: Checkout | None = None) -> list[Command]:
        repo, index = self.repo, self.detector.index
        env, checkout = self.env, self.options.checkout
        if base:
            checkout, index = base.repo, None
            env = with_hook(checkout.env, self.plan.event.name, repo.git_dir_abs)
            existing = (path for path in step.paths if os.path.lexists(f"{base.root_abs}/{path}"))
            step = step._replace(paths=tuple(existing))
        by_folder = repo.found_by_folder or checkout
        env = gate_env(
            env,
            self.plan.event,
            step.gate,
            index_file=index.value if index else "",
            git_dir_abs="" if by_folder else repo.git_dir_abs,
            root_abs=repo.root_abs,
        )
        env["GITGATES_RUN"] = self.isolation.token
        return make_commands(
            step,
            self.plan.event,
            root_abs=(checkout or repo).root_abs,
            env=env,
            stdin_abs=self.stdin_abs,
            limit=argument_limit(env) - _STRACE_BYTES * bool(step.gate.reuse),
        )

    def _next_command(self, job: _Job, group: Group) -> None:
        """Start the next commands of a gate; if there are none, the gate has ended."""
        while job.commands and len(job.children) < job.at_once:
            left_s = max(job.started + job.gate.timeout_s - time.monotonic(), 0.0)
            if self.options.deadline:
                left_s = min(left_s, self.options.deadline.left_s())
            command = job.commands.pop(0)
            if self.remote and job.is_remote:
                root_abs = (self.options.checkout or self.repo).root_abs
                command = job.asks = self.remote.gates.command(
                    job.step, command, root_abs=root_abs, run_abs=self.run_abs, within_s=left_s
                )
                job.before = job.capture.captured()[0]
            command, strace = self._traced(job, command)
            child = group.start(command, left_s, self._capture_of_next(job), strace=strace)
            if not isinstance(child, str):
                job.children.append(child)
                if self.isolation.rescue:
                    self.isolation.rescue.note_group(child.pid)
                if self.watch and not job.asks:  # which sees itself that we are gone
                    self.watch.add(child.pid)
                continue
            if not self._note_ending(job, Ending(not_started=child)):
                return
            job.commands.clear()
        if not job.children:
            self._finish(job, group)
        elif len(job.children) < job.at_once:
            job.at_once = len(job.children)
            kept = job.at_once * self.admissions.weight(job.gate)
            self.admissions.give_back(job.slots[kept:])
            del job.slots[kept:]

    def _traced(self, job: _Job, command: Command) -> tuple[Command, str]:
        """Return the command of a gate as it is started, and the file of strace, if it has one."""
        is_off = self.repo.env.get(REUSE) == OFF
        if job.observer is None or job.is_remote or job.head_result or is_off:
            return command, ""
        try:
            return job.observer.traced(command)
        except OSError as error:
            self.listener.message(f"{job.gate.name} is not observed: {error.strerror}")
            job.observer.discard()
            job.observer = None
            return command, ""

    def _capture_of_next(self, job: _Job) -> Capture:
        """Return what takes the output of the next command: its own, where several run at once."""
        if job.at_once == 1 and not job.parts:
            return job.capture
        log_abs = f"{job.capture.log_abs}.{len(job.parts)}"
        limit, log_limit = self.config.max_output_bytes, self.config.max_log_bytes
        job.parts.append(Capture(limit, log_abs, log_limit, self._make_folder))
        return job.parts[-1]

    def _ended(self, child: Child, group: Group) -> None:
        job = next(job for job in self.jobs if child in job.children)
        job.children.remove(child)
        ending = child.ending()
        if child.strace and (ending.signal or ending.timed_out or ending.ended_by_us):
            from gitgates.proc.descendants import Descendants  # where strace may be gone
            from gitgates.proc.traced import STRACE

            Descendants(f"{STRACE}={child.strace}").end()
        if self.watch and not job.asks:
            self.watch.remove(child.pid)
        if not self._note_ending(job, ending):
            return
        if ending.timed_out or ending.ended_by_us or group.handle_signals():
            job.commands.clear()
        self._next_command(job, group)

    def _note_ending(self, job: _Job, ending: Ending) -> bool:
        """Note how a command has ended; return False where the gate is to run here after all."""
        if self.remote and job.asks:
            spent_s = time.monotonic() - job.started
            result = self.remote.result_of(job.due, job.asks, ending, spent_s)
            if result.ending is None:
                self._run_here(job)
                return False
            ending, job.reused = result.ending, result.reused
            job.action_digest = result.action_digest
            if result.output is not None:
                job.capture.replace(job.before + result.output)
        job.endings.append(ending)
        return True

    def _run_here(self, job: _Job) -> None:
        """Forget that a gate was started on the server; it starts here when there is room."""
        job.capture.close()
        if job.capture.log_abs:
            remove_file(job.capture.log_abs)
        self.detector.drop(job.changes)
        self.jobs.remove(job)
        self.admissions.stays(job.admission)

    def _runs_again(self, job: _Job, group: Group) -> bool:
        """Note what an observed gate depended on; run it again where that changed its result."""
        observer, candidate = job.observer, job.admission.candidate
        job.observer = None
        if not (observer and candidate and self.reuse):
            return False
        is_cut = any(end.timed_out or end.ended_by_us or end.not_started for end in job.endings)
        if is_cut or group.handle_signals():
            observer.discard()
            return False
        job.depends = self.reuse.depends(candidate)
        if job.depends is None or not job.depends.spoilt:
            return False
        job.depends = None
        job.endings = []
        job.commands = self._commands_at_once(job.step, job.at_once)
        log_abs = runs.log_abs(self.logs_abs, job.gate.name, job.due.generation)
        limit, log_limit = self.config.max_output_bytes, self.config.max_log_bytes
        job.capture, job.parts = Capture(limit, log_abs, log_limit, self._make_folder), []
        job.started = time.monotonic()
        self._next_command(job, group)
        return True

    def _finish(self, job: _Job, group: Group) -> None:
        if not self._runs_again(job, group):
            self._judge(job, self._result_of(job, group), group)

    def _result_of(self, job: _Job, group: Group) -> GateResult:
        """Return how a gate has ended, before anybody judges it."""
        for part in job.parts:
            job.capture.take(part)
        job.capture.close()
        output, dropped = job.capture.captured()
        ran_there = job.asks and not job.endings[-1].not_started
        result = make_result(job.gate.name, tuple(job.endings), shell=job.shell)._replace(
            duration_s=time.monotonic() - job.started,
            output=output,
            dropped_bytes=dropped,
            log_abs=job.capture.log_abs,
            where=self.remote.place if self.remote and ran_there else "",
            action_digest=job.action_digest,
            remote_failure=self.remote.attempt(job.due).reason if self.remote else "",
        )
        if result.status == "timed-out":
            result = result._replace(reason=self._limit(job))
        if result.status == "not-started" and result.reason.startswith(NOT_FOUND):
            from gitgates.engine.missing_program import with_program  # it compiles a pattern

            result = with_program(result, job.gate, self.env)
        if self.is_cancelled and result.reason == ENDED and not group.handle_signals():
            result = result._replace(status="not-run", signal=None, reason=CANCELLED)
        return result

    def _judge(self, job: _Job, result: GateResult, group: Group) -> None:
        """Judge how a gate has ended, and conclude it; or run it on its base, too."""
        if job.head_result:
            result = self._judge_with_base(job, job.head_result, result, group)
        else:
            result = self.detector.finish(job.changes, result)
            if result.status == "passed" and result.output:
                from gitgates.engine.nothing_checked import without_empty_pass  # most are silent

                result = without_empty_pass(result, job.gate, job.due.step.paths)
            if job.measurement:
                result = self._measure(job.measurement, result, group)
            if job.gate.baseline and result.status == "failed":
                from gitgates.engine.baseline import KnownFailures  # only where a gate failed

                job.baseline = KnownFailures(
                    job.due.step, self.plan, self.repo, self.options.checkout
                )
                result = job.baseline.judge(result)
            if self._run_on_base(job, result, group):
                return
        if job.gate.failures and result.status in ("failed", "timed-out", "killed"):
            from gitgates.engine.failures import failures_of  # it compiles many patterns

            root_abs = (self.options.checkout or self.repo).root_abs
            found = failures_of(job.gate, result, root_abs, self.listener.note)
            result = result._replace(failures=found)
        self.jobs.remove(job)
        self.admissions.ended(job.admission, result, job.depends)
        self.admissions.give_back(job.slots, is_remote=job.is_remote)
        result = result._replace(reused=job.admission.reused or job.reused)
        self._conclude(job.due, result)

    def _measure(self, measurement: Measurement, result: GateResult, group: Group) -> GateResult:
        result = measurement.judge(result, lambda: bool(group.handle_signals()))
        try:
            measurement.record(result)
        except OSError as error:
            self.listener.message(
                f"the metrics of {result.gate} were not recorded: {error.strerror}"
            )
        return result

    def _run_on_base(self, job: _Job, result: GateResult, group: Group) -> bool:
        """Run a gate on what it is to be compared with, too; return whether it does."""
        base = _base_to_run(job)
        if base is None or group.handle_signals():
            return False
        from gitgates.worktree.checkouts import check_out  # once for each base
        from gitgates.worktree.setup import worktree_settings

        job.head_result = result
        what = "failed; runs on" if job.baseline else "measures"
        self.listener.message(f"{job.gate.name}: {what} {base.name}")
        try:
            settings = worktree_settings(self.config)
            left_s = self.options.deadline.left_s() if self.options.deadline else 0.0
            say = self.listener.message
            job.checkout = check_out(self.repo, base.commit, settings, say, limit_s=left_s)
        except GitgatesError as error:
            job.endings = [Ending(not_started=error.message)]
        else:
            step, root_abs = job.due.step, job.checkout.root_abs
            is_there = any(os.path.lexists(f"{root_abs}/{path}") for path in step.paths)
            if is_there or not (step.paths and is_given_paths(job.gate)):
                job.endings = []
                job.commands = self._commands(step, base=job.checkout)
            else:  # none of its files, so no failure
                job.endings = [Ending(exit_status=0)]
        log_abs = runs.log_abs(f"{self.logs_abs}/base", job.gate.name, job.due.generation)
        limit, log_limit = self.config.max_output_bytes, self.config.max_log_bytes
        job.capture, job.parts = Capture(limit, log_abs, log_limit, self._make_folder), []
        job.started = time.monotonic()
        self._next_command(job, group)
        return True

    def _judge_with_base(
        self, job: _Job, result: GateResult, at_base: GateResult, group: Group
    ) -> GateResult:
        root_abs = ""
        if job.checkout:
            root_abs = job.checkout.root_abs
            job.checkout.close()
        if job.baseline:
            return job.baseline.judge_with_base(at_base, root_abs, result)
        if not job.measurement:
            return at_base
        try:
            return job.measurement.judge_with_base(
                at_base, result, lambda: bool(group.handle_signals())
            )
        except OSError as error:
            reason = f"nothing was compared: metrics cannot be recorded: {error.strerror}"
            return result._replace(status="unchecked", reason=reason)

    def _limit(self, job: _Job) -> str:
        """Return the limit of a gate that timed out: the nearer one, however long it took to end.

        Until it has ended, the other one may have passed as well.
        """
        deadline = self.options.deadline
        if deadline and deadline.at < job.started + job.gate.timeout_s:
            return f"limit {deadline.limit_s:g} s for all gates of the hook"
        return f"limit {job.gate.timeout_s:g} s"


def _base_to_run(job: _Job) -> Base | None:
    if job.baseline:
        return job.baseline.base if job.baseline.is_due else None
    return job.measurement.base_to_run if job.measurement else None


def _remote(
    plan: Plan, config: Config, repo: Repo, listener: Listener, *, is_urgent: bool
) -> RemoteRun | None:
    """Return the server that gates of a plan may run on; None where there is none, or none may."""
    if repo.env.get(REMOTE) == "0" or not any(step.gate.remote for step in plan.steps):
        return None
    for lend in lenders(config, "remote_execution"):
        if gates := lend(repo, config):
            from gitgates.engine.remote import RemoteRun  # no other run pays for it

            return RemoteRun(gates, repo.env, listener.message, is_urgent=is_urgent)
    return None


def _watch() -> Watchdog:
    # An agent's host kills a hook that takes too long; hooks of git do not need this.
    from gitgates.proc.watchdog import Watchdog

    return Watchdog()


def _say_interrupted(number: int, results: Mapping[tuple[str, int], GateResult]) -> str:
    ended = [result.gate for result in results.values() if result.status == "killed"]
    while_running = f" while `{'`, `'.join(ended)}` ran" if ended else ""
    return f"interrupted by signal {number}{while_running}; no decision was made"
