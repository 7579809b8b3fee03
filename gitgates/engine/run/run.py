"""Run a plan: start due gates and wait for them until nothing is left."""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError, Interrupted, LockError
from gitgates.core.policy import providers
from gitgates.core.types import (
    ALLOW,
    AS_COMMITTED,
    HIDDEN,
    Config,
    Decision,
    GateResult,
    Plan,
    ResultOrigin,
)
from gitgates.engine.plan.command import is_running_here
from gitgates.engine.plan.plan import (
    AUDIT,
    OFF,
    REMOTE,
    REUSE,
    has_types,
    looks_up,
)
from gitgates.engine.plan.walk import CANCELLED, ENDED, WAITS, Due, advance, describe, make_decision
from gitgates.engine.run.admission import Admissions, reuse_of
from gitgates.engine.run.change_detector import ChangeDetector
from gitgates.engine.run.job import BaseJob, Job, RunContext, RunOptions
from gitgates.proc.processes import Child, Group, SignalPipe
from gitgates.store.files import remove_file
from gitgates.worktree.isolate import Isolation
from gitgates.worktree.locks import FixerLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.engine.plan.listener import Listener
    from gitgates.engine.run.job import Admission
    from gitgates.engine.run.remote import RemoteRun
    from gitgates.git.repo import Repo

_PATIENCE_S = 2.0  # of waiting for other runs, before that is reported
_NOTABLE_S = 0.1  # a gate that takes less starts in any order
_MORE = 1.5  # a gate may take so many times as long as before
_RETRIED = ("failed", "timed-out", "killed")
_FAILED = (*_RETRIED, "not-started")


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
    """Run a plan's gates and return what they mean.

    Raises: InterruptedRun after a signal, when every process that was started is gone.
    """
    options = options or RunOptions()
    is_nested = is_running_here(repo.env, repo.git_dir_abs)  # a run here waits for this one
    locks = options.locks and not (is_nested or options.checkout)
    hides = locks and options.place == HIDDEN
    with SignalPipe() as signals:

        def check_interrupted() -> None:
            signals.drain()
            if signals.received:
                text = f"interrupted by signal {signals.received[0]} while waiting"
                raise InterruptedRun(text, plan, Decision(verdict=ALLOW, not_run=plan.listed))
            if options.deadline and not options.deadline.left_s():
                raise LockError("timed out waiting for another run in this working tree")

        isolation = Isolation(repo, listener.message, check_interrupted, hides=hides, locks=locks)
        try:
            with isolation:
                if options.plan_again and isolation.hidden and has_types(plan):
                    plan = options.plan_again()
                listener.planned(plan)
                context = RunContext(
                    plan, config, repo, options, listener=listener, isolation=isolation
                )
                run = _Run(context)
                try:
                    with Group(signals, listener.tick if listener.live else None) as group:
                        decision = run.loop(group)
                finally:
                    run.close()
        except GitgatesError as error:
            raise error.with_notes(isolation.notes) from error
    if repo.env.get(REUSE) == AUDIT:
        from gitgates.engine.run.reuse_preview import audited  # seldom needed

        decision = audited(decision)
    decision = decision._replace(notes=(*decision.notes, *isolation.notes), run_abs=context.run_abs)
    return run.reuse.finished(decision) if run.reuse else decision


class _Run:
    """The state of one run."""

    def __init__(self, context: RunContext) -> None:
        options, repo, listener = context.options, context.repo, context.listener
        self.context, self.listener, self.repo, self.options = context, listener, repo, options
        self.plan, self.config = context.plan, context.config
        self.results = {
            at: result
            for at, result in options.earlier.items()
            if result.reason not in (ENDED, CANCELLED)  # we ended it: not a result to continue from
        }
        self.jobs: list[Job] = []
        self.durations: Mapping[str, float] | None = None  # gate → how long it took earlier, in s
        self.is_cancelled = False  # by a gate that has blocked or stopped the run
        self.waits_since = 0.0  # that nothing runs, by the monotonic clock; 0: something does
        self.waiting: dict[str, tuple[float, int]] = {}  # gate → since when, the place told last
        isolation = context.isolation
        self.detector = ChangeDetector(
            self.plan,
            repo,
            isolation,
            checkout=options.checkout,
            as_committed=isolation.hides or options.place == AS_COMMITTED,
            began_ns=options.began_ns,
        )
        context.index = self.detector.index
        self.reuse = None
        if looks_up(self.plan.steps):
            say = listener.message
            self.reuse = reuse_of(self.plan, self.config, repo, options.checkout, say=say)
        self.remote = _remote(context)
        self.admissions = Admissions(
            self.config,
            repo,
            self.reuse,
            listener.message,
            options=options,
            remote=self.remote,
        )
        self.fixers = None
        if isolation.locks and any(gate.program.writes for gate in self.config.gates):
            self.fixers = FixerLock(repo.state_abs)

    def loop(self, group: Group) -> Decision:
        while True:
            if group.handle_signals() and not self.jobs:
                text = _say_interrupted(group.handle_signals(), self.results)
                raise InterruptedRun(text, self.plan, self._partial_decision())
            walk = advance(self.plan, self.results)
            if not walk.due and not self.jobs:
                decision = self.detector.judge_run(make_decision(self.plan, walk))
                return decision._replace(results=tuple(self.results.items()))
            if not walk.due:  # the run is over, whatever the running gates return
                self.is_cancelled = True
                group.end_all()
            waits = not group.handle_signals() and self._start_all(walk.due, group)
            self.admissions.settle()
            if self.fixers and not self.jobs:
                self.fixers.release()
            self._report_waits()
            self._report_wait(waits=waits and not (self.jobs or self.admissions.waits))
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
            del left[0]  # a gate without room stays ahead of later ones
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
        """Return the gates, the longest first if not all can start at once."""
        if sum(self.admissions.weight(each.step.gate) for each in due) <= self.admissions.slots:
            return due
        took_s = self._durations()
        return tuple(sorted(due, key=lambda each: -took_s.get(each.step.gate.name, 0.0)))

    def _durations(self) -> Mapping[str, float]:
        if self.durations is None:
            from gitgates.store.proofs import durations  # if not all can start at once

            self.durations = durations(self.repo.shared_state_abs)
        return self.durations

    def _report_waits(self) -> None:
        """Report which gates wait for slots or resources, with each new place."""
        self.listener.waits, now = self.admissions.waits, time.monotonic()
        for gate, wait in self.admissions.waits.items():
            since, place = self.waiting.setdefault(gate, (now, -1))
            if now - since > _PATIENCE_S and wait.place != place:
                self.waiting[gate] = since, wait.place
                self.listener.waiting(gate, wait)

    def _report_wait(self, *, waits: bool) -> None:
        """Report once that nothing runs, because other runs are waited for."""
        self.waits_since = (self.waits_since or time.monotonic()) if waits else 0.0
        if waits and time.monotonic() - self.waits_since > _PATIENCE_S:
            self.waits_since = float("inf")
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
            job.close()
        self.context.close()

    def _note_durations(self) -> None:
        """Record how long the gates took that ran to the end, and for all files."""
        ended = {
            gate: result
            for (gate, _), result in self.results.items()
            if result.status in ("passed", "failed", "timed-out")
            and not (result.origin.reused or result.origin.remote_failure)
        }
        # A hook whose gates all take no time writes nothing, and loads nothing for that.
        if any(result.duration_s > _NOTABLE_S for result in ended.values()):
            from gitgates.store.proofs import note_durations, remote_name

            seconds_by_gate = {
                remote_name(gate) if result.origin.where else gate: result.duration_s
                for gate, result in ended.items()
            }
            note_durations(self.repo.shared_state_abs, seconds_by_gate)

    def _start(self, due: Due, group: Group, *, is_remote: bool = False) -> bool:
        """Start a gate, if it may start; return whether it has to wait for another run."""
        gate, context = due.step.gate, self.context
        if self.jobs and gate.program.writes:
            return False
        fixers = self.fixers
        if fixers and not fixers.take(alone=gate.program.writes, most_s=gate.schedule.timeout_s):
            return True
        if reason := self._why_not_started(gate.name):
            self._conclude(due, GateResult(gate=gate.name, status="not-run", reason=reason))
            return False
        try:
            why = self.admissions.why_never(gate)
            ask = self.admissions.ask
            admission = (
                None if why else ask(due.step, context.commands, self._room(), is_remote=is_remote)
            )
        except OSError as error:
            if not gate.schedule.resources:
                raise
            why = f"its resources cannot be held: {error.filename}: {error.strerror}"
        if why:
            self._conclude(due, GateResult(gate=gate.name, status="not-started", reason=why))
            return False
        if admission is None:
            return not self._gives_up(due)
        if admission.step is None:
            digest = admission.candidate.action_digest if admission.candidate else ""
            origin = ResultOrigin(reused=admission.reused, action_digest=digest)
            passed = GateResult(gate=gate.name, status="passed", origin=origin)
            self._conclude(due, self.options.after_failure(passed))
            return False
        job = self._job(due, admission, group)
        since, _place = self.waiting.pop(gate.name, (time.monotonic(), 0))
        job.waited_s = time.monotonic() - since
        if self.options.deadline:
            self.options.deadline.has_waited(job.waited_s)
        job.began -= self.remote.attempt(due).spent_s if self.remote and not is_remote else 0.0
        self.listener.started(gate.name)
        self.jobs.append(job)
        self._go_on(job, group)
        return False

    def _gives_up(self, due: Due) -> bool:
        """Have a gate not run if its turn would come too late for the host to wait for it."""
        gate, deadline = due.step.gate, self.options.deadline
        wait = self.admissions.waits.get(gate.name)
        if not (wait and deadline) or deadline.is_extended:
            return False
        took_s = self._durations().get(gate.name)
        needs_s = (
            min(took_s * _MORE + 1.0, gate.schedule.timeout_s)
            if took_s
            else gate.schedule.timeout_s / 2
        )
        if deadline.left_s() - (wait.left_s or 0.0) > needs_s:
            return False
        reason = f"{WAITS}{wait.text}"
        self._conclude(due, GateResult(gate=gate.name, status="not-run", reason=reason))
        return True

    def _job(self, due: Due, admission: Admission, group: Group) -> Job:
        gate, measurement = due.step.gate, None
        if gate.measures.metrics:
            from gitgates.engine.findings.metrics import Measurement  # only for gates with metrics

            measurement = Measurement(
                *(gate, self.plan, self.repo, self.options.checkout),
                say=self.listener.message,
                is_stopped=lambda: bool(group.handle_signals()),
            )
        paths, is_remote = (admission.step or due.step).paths, admission.is_remote
        changes = self.detector.begin(gate, paths, is_remote=is_remote)
        make_job = self.remote.job if self.remote and is_remote else Job
        job: Job = make_job(due, admission, changes, self.context)
        job.comparison = measurement
        return job

    def _conclude(self, due: Due, result: GateResult) -> None:
        self.admissions.release(due.step.gate.name)
        self.waiting.pop(due.step.gate.name, None)
        self.results[due.step.gate.name, due.generation] = result
        self.listener.ended(result, self.plan)

    def _why_not_started(self, name: str) -> str:
        deadline = self.options.deadline
        wait = self.admissions.waits.get(name)
        if not deadline or deadline.left_s() or (wait and deadline.is_extended):
            return self.detector.why_none_starts()
        if wait:
            return f"{WAITS}{wait.text}"
        return f"the {deadline.limit_s:g} s limit for all gates was reached before it started"

    def _ended(self, child: Child, group: Group) -> None:
        job = next(job for job in self.jobs if child in job.children)
        if job.ended(child, is_over=bool(group.handle_signals())):
            self._go_on(job, group)
        else:
            self._run_here(job)

    def _go_on(self, job: Job, group: Group) -> None:
        """Start the next commands of a gate; if there are none, the gate has ended."""
        if not job.start_next(group):
            self._run_here(job)
        elif not job.children:
            self._finish(job, group)
        elif len(job.children) < job.at_once:
            job.at_once = len(job.children)
            kept = job.at_once * self.admissions.weight(job.gate)
            self.admissions.give_back(job.slots[kept:])
            del job.slots[kept:]

    def _run_here(self, job: Job) -> None:
        """Forget that a gate was started on the server; it starts here when there is room."""
        job.capture.close()
        if job.capture.log_abs:
            remove_file(job.capture.log_abs)
        self.detector.drop(job.changes)
        self.jobs.remove(job)
        self.admissions.stays(job.admission)

    def _finish(self, job: Job, group: Group) -> None:
        """Judge how a gate has ended, and conclude it; or run it again, or also on its base."""
        if self._runs_again(job, group):
            return
        result = self._result_of(job, group)
        if job.head:
            result = job.judge(result)
        else:
            result = self._judge(job, result)
            if job.comparison and job.comparison.is_due and not group.handle_signals():
                self.jobs.remove(job)
                self.jobs.append(BaseJob(job, result, job.comparison, self.context))
                self._go_on(self.jobs[-1], group)
                return
        if job.gate.measures.failures and result.status in ("failed", "timed-out", "killed"):
            from gitgates.engine.findings.failures import failures_of  # it compiles many patterns

            found = failures_of(job.gate, result, self.context.root_abs, self.listener.note)
            result = result.with_findings(failures=found)
        self.jobs.remove(job)
        if self._is_tried_again(job, result, group):
            return
        result = job.with_failed(result)
        if job.due.step.quarantine and result.status in _FAILED and result.reason != ENDED:
            reason = "; ".join(filter(None, (result.reason, job.due.step.quarantine)))
            result = result._replace(reason=reason)
        self.admissions.ended(job.admission, result, job.depends)
        self.admissions.give_back(job.slots, is_remote=job.is_remote)
        result = result._replace(waited_s=job.waited_s)
        deadline = self.options.deadline
        was_cut = result.status == "timed-out" and result.duration_s < job.gate.schedule.timeout_s
        if was_cut and deadline and job.waited_s > _NOTABLE_S:
            reason = f"{WAITS}more time: its turn came after {job.waited_s:.0f} s"
            result = result._replace(status="not-run", reason=reason)
        result = result.from_origin(reused=job.admission.reused or job.reused)
        self._conclude(job.due, result)

    def _is_tried_again(self, job: Job, result: GateResult, group: Group) -> bool:
        """Run a failed gate once more if it has changed nothing, and has a `retry` left."""
        deadline = self.options.deadline
        is_over = (
            group.handle_signals() or self.is_cancelled or (deadline and not deadline.left_s())
        )
        if (
            len(job.failed) + 1 >= job.gate.schedule.runs
            or result.status not in _RETRIED
            or result.findings.excused
            or result.changed_paths
            or is_over
        ):
            return False
        self.listener.message(f"{job.gate.name}: {describe(result)}; it runs again")
        again = self._job(job.due, job.admission, group)
        again.run_again(job, result)
        self.jobs.append(again)
        self._go_on(again, group)
        return True

    def _runs_again(self, job: Job, group: Group) -> bool:
        """Note what an observed gate depended on; run it again if that changed its result."""
        candidate, is_over = job.admission.candidate, bool(group.handle_signals())
        if not (job.was_observed(is_over=is_over) and candidate and self.reuse):
            return False
        depends = self.reuse.depends(candidate)
        if not (depends and depends.spoilt):
            job.depends = depends
            return False
        job.begin()
        self._go_on(job, group)
        return True

    def _result_of(self, job: Job, group: Group) -> GateResult:
        """Return a gate's result, before it is judged."""
        result = job.result()
        if self.remote:
            result = result.from_origin(remote_failure=self.remote.attempt(job.due).reason)
        if self.is_cancelled and result.reason == ENDED and not group.handle_signals():
            result = result._replace(status="not-run", signal=None, reason=CANCELLED)
        return result

    def _judge(self, job: Job, result: GateResult) -> GateResult:
        """Judge a gate's result, as far as that needs no run on its base."""
        result = self.detector.finish(job.changes, result)
        if result.status == "passed" and result.output:
            from gitgates.engine.findings.nothing_checked import (
                without_empty_pass,  # most are silent
            )

            result = without_empty_pass(result, job.gate, job.due.step.paths)
        if job.comparison:
            result = job.comparison.judge(result)
        if job.gate.measures.baseline and result.status == "failed":
            from gitgates.engine.findings.baseline import KnownFailures  # only if a gate failed

            checkout = self.options.checkout
            job.comparison = KnownFailures(job.due.step, self.plan, self.repo, checkout)
            result = job.comparison.judge(result)
        return result


def _remote(context: RunContext) -> RemoteRun | None:
    """Return the server that a plan's gates may run on; None if there is none, or none may."""
    repo, config = context.repo, context.config
    if repo.env.get(REMOTE) == OFF or not any(
        step.gate.remote.allowed for step in context.plan.steps
    ):
        return None
    for provide in providers(config, "remote_execution"):
        if gates := provide(repo, config):
            from gitgates.engine.run.remote import RemoteRun  # no other run pays for it

            say, is_urgent = context.listener.message, context.options.is_urgent
            return RemoteRun(gates, repo.env, say, is_urgent=is_urgent)
    return None


def _say_interrupted(number: int, results: Mapping[tuple[str, int], GateResult]) -> str:
    ended = [result.gate for result in results.values() if result.status == "killed"]
    while_running = f" while `{'`, `'.join(ended)}` ran" if ended else ""
    return f"interrupted by signal {number}{while_running}; no decision was made"
