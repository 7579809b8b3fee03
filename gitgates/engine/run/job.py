"""One running gate: its processes, their output, and how they have ended together."""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.core.types import AS_IS, Ending
from gitgates.engine.plan.command import (
    HELD,
    NOT_FOUND,
    gate_env,
    make_commands,
    make_result,
    split,
    with_hook,
    with_program,
)
from gitgates.engine.plan.plan import OFF, REUSE, is_given_paths
from gitgates.engine.plan.walk import describe
from gitgates.proc.call import argument_limit
from gitgates.proc.processes import Capture
from gitgates.store import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from gitgates.core.types import Command, Config, Gate, GateResult, Place, Plan, Step
    from gitgates.engine.findings.baseline import KnownFailures
    from gitgates.engine.findings.metrics import Measurement
    from gitgates.engine.plan.listener import Listener
    from gitgates.engine.plan.walk import Due
    from gitgates.engine.reuse.reuse import Candidate
    from gitgates.engine.run.change_detector import GateChanges
    from gitgates.git.index import CommittedIndex
    from gitgates.git.repo import Repo
    from gitgates.observed.unchanged import Dependencies
    from gitgates.proc.processes import Child, Group
    from gitgates.worktree.checkouts import Checkout
    from gitgates.worktree.isolate import Isolation

    # What compares the result of a gate with that on its base.
    Comparison: TypeAlias = KnownFailures | Measurement

_STRACE_BYTES = 4096  # of arguments in front of those of a gate that is observed


class Deadline:
    """The deadline that all gates of an event share."""

    def __init__(self, at: float, limit_s: float, *, is_extended: bool = False) -> None:
        self.at = at  # of the monotonic clock
        self.limit_s = limit_s  # the original limit, for display
        self.is_extended = is_extended  # by the time that gates wait: no host gives up

    def left_s(self) -> float:
        """Return how much of it is left; 0 if it is over."""
        return max(self.at - time.monotonic(), 0.0)

    def has_waited(self, seconds: float) -> None:
        """Extend it by the time that a gate has waited, if no host gives up."""
        self.at += seconds if self.is_extended else 0.0


class RunOptions(Record):
    """The options of one run."""

    checkout: Repo | None = None  # a private checkout that gates run in
    locks: bool = True  # False: others may change the files meanwhile
    deadline: Deadline | None = None
    logs_abs: str = ""  # where the gates' logs go; empty: into a new run
    began_ns: int = 0  # when the event arrived, by the wall clock; 0: irrelevant
    earlier: Mapping[tuple[str, int], GateResult] = {}  # final results
    failed: Mapping[str, str] = {}  # gate → how it ended on the same content before
    since_ns: int = 0  # that it has waited before, by the monotonic clock; 0: not at all
    is_urgent: bool = False  # a person waits for it: it is served before agents' runs
    place: Place = AS_IS
    # Makes a new plan, once files are hidden: of types that they may not have had before.
    plan_again: Callable[[], Plan] | None = None

    def after_failure(self, result: GateResult) -> GateResult:
        """Return a result; flaky if it passed, also elsewhere, where it had failed before."""
        earlier = self.failed.get(result.gate)
        if not earlier or result.status != "passed" or result.changed_paths:
            return result
        reason = f"{earlier} before, then passed on the same content"
        return result._replace(status="flaky", reason=reason)


class Admission(Record):
    """A gate that need not wait."""

    step: Step | None  # what must run; None: nothing, all is reused
    candidate: Candidate | None = None  # for the reuse of its pass
    at_once: int = 1  # how many processes of it may run at the same time
    slots: tuple[int, ...] = ()  # locked for them, the same number for each
    held_fds: tuple[int, ...] = ()  # locked for its resources; its processes inherit them
    is_remote: bool = False  # it runs on the server

    @property
    def reused(self) -> str:
        """Where the passes come from that are reused; empty if none is."""
        return self.candidate.reused if self.candidate else ""


class RunContext:
    """What the gates of one run have in common: where they run, and where their output goes."""

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
        self.root_abs = (options.checkout or repo).root_abs
        self.run_abs = runs.run_of(options.logs_abs) or runs.new_run(repo.state_abs)
        self.index: CommittedIndex | None = None  # of the commit, if it is not the worktree's own
        self._env = with_hook((options.checkout or repo).env, plan.event.name, repo.git_dir_abs)
        self._logs_abs = options.logs_abs or f"{self.run_abs}/logs"
        self._has_folder = False
        self._watch = None
        if plan.event.payload:  # an agent's host kills a hook that takes too long
            from gitgates.proc.watchdog import Watchdog  # git hooks do not need it

            self._watch = Watchdog()
        self._stdin_abs = ""
        if plan.event.stdin and any(step.gate.program.pass_hook_input for step in plan.steps):
            self._make_folder()
            self._stdin_abs = runs.keep_stdin(self.run_abs, plan.event.stdin)

    def close(self) -> None:
        """Remove what nobody needs after the run."""
        if self._stdin_abs:
            runs.discard_stdin(self._stdin_abs)
        if self._watch:
            self._watch.close()
        if self._has_folder:
            runs.prune(self.repo.state_abs, self.config.keep_runs, self.run_abs)

    def commands(self, step: Step, base: Repo | None = None) -> list[Command]:
        """Return the commands of a step. `base`: a checkout of what the gate is compared with."""
        repo, event, checkout = self.repo, self.plan.event, base or self.options.checkout
        env, index = self._env, self.index
        if base:
            env, index = with_hook(base.env, event.name, repo.git_dir_abs), None
            existing = (path for path in step.paths if os.path.lexists(f"{base.root_abs}/{path}"))
            step = step._replace(paths=tuple(existing))
        env = gate_env(
            env,
            event,
            step.gate,
            index_file=index.value if index else "",
            git_dir_abs="" if repo.found_by_folder or checkout else repo.git_dir_abs,
            root_abs=repo.root_abs,
        )
        env["GITGATES_RUN"] = self.isolation.token
        if step.gate.schedule.resources:
            env[HELD] = "\n".join((*step.gate.schedule.resources, *filter(None, (env.get(HELD),))))
        return make_commands(
            step,
            event,
            root_abs=(checkout or repo).root_abs,
            env=env,
            stdin_abs=self._stdin_abs,
            limit=argument_limit(env) - _STRACE_BYTES * bool(step.gate.reuse.mode),
        )

    def log_abs(self, due: Due, folder: str = "") -> str:
        """Return the log of a gate in a folder beside those of the others."""
        return runs.log_abs(f"{self._logs_abs}{folder}", due.step.gate.name, due.generation)

    def capture(self, log_abs: str) -> Capture:
        """Return what takes the output of a process."""
        config = self.config
        return Capture(config.max_output_bytes, log_abs, config.max_log_bytes, self._make_folder)

    def _make_folder(self) -> None:
        """Create the folder of the run, when the first output is written."""
        runs.make(self.run_abs)
        self._has_folder = True

    def left_s(self, began: float, gate: Gate) -> float:
        """Return how much time a gate still has."""
        left_s = max(began + gate.schedule.timeout_s - time.monotonic(), 0.0)
        deadline = self.options.deadline
        return min(left_s, deadline.left_s()) if deadline else left_s

    def limit(self, began: float, gate: Gate) -> str:
        """Return the limit that a gate ran into: the nearer one, however long it took to end.

        Until it has ended, the other one may have passed as well.
        """
        deadline = self.options.deadline
        if deadline and deadline.at < began + gate.schedule.timeout_s:
            return f"limit {deadline.limit_s:g} s for all gates of the hook"
        return f"limit {gate.schedule.timeout_s:g} s"

    def note_start(self, child: Child, *, is_watched: bool) -> None:
        """Make sure that a process ends if we are killed."""
        if self.isolation.rescue:
            self.isolation.rescue.note_group(child.pid)
        if self._watch and is_watched:
            self._watch.add(child.pid)

    def note_end(self, child: Child, *, is_watched: bool) -> None:
        """Forget a process."""
        if self._watch and is_watched:
            self._watch.remove(child.pid)


class Job:
    """A running gate: its remaining commands, and how the others ended, with their output."""

    is_remote = False
    reused = ""  # where a result comes from that was not computed now
    comparison: Comparison | None = None
    head: Job | None = None  # what has run already, of one that runs on its base, too
    waited_s = 0.0  # for slots or resources, before it began
    failed: tuple[GateResult, ...] = ()  # how it has ended on the same content before
    depends: Dependencies | None = None  # what it depended on, if it was observed

    def __init__(
        self, due: Due, admission: Admission, changes: GateChanges, context: RunContext
    ) -> None:
        self.due, self.gate, self.admission, self.changes = due, due.step.gate, admission, changes
        self.step = admission.step or due.step  # without what is reused
        self.at_once, self.slots = admission.at_once, [*admission.slots]
        self.children: list[Child] = []
        self._context = context
        is_off = context.repo.env.get(REUSE) == OFF
        candidate = None if is_off else admission.candidate
        self._observer = candidate.observer if candidate else None
        self.begin()

    def begin(self) -> None:
        """Prepare to run all commands, for the first time or again."""
        parts = split(self.step, self.at_once) if self.at_once > 1 else [self.step]
        folder = f"/again-{len(self.failed)}" if self.failed else ""
        self._begin([command for part in parts for command in self._context.commands(part)], folder)

    def run_again(self, before: Job, result: GateResult) -> None:
        """Replace a job that has ended with `result`; what it reads no longer counts."""
        self.at_once, self.slots, self._observer = before.at_once, before.slots, None
        self.waited_s = before.waited_s
        self.failed = (*before.failed, result)
        self.begin()

    def with_failed(self, result: GateResult) -> GateResult:
        """Return the result together with those before on the same content."""
        if not self.failed or result.changed_paths:
            return self._context.options.after_failure(result)
        first = self.failed[0]
        if result.status == "passed":
            reason = f"{describe(first)}, then passed on the same content"
            seconds = sum(each.duration_s for each in (*self.failed, result))
            return first._replace(status="flaky", reason=reason, duration_s=seconds)
        reason = f"none of {len(self.failed) + 1} runs passed"
        last = first if result.status == "unchecked" else result
        return last._replace(reason="; ".join(filter(None, (last.reason, reason))))

    def _begin(self, commands: list[Command], folder: str = "") -> None:
        self.commands = commands
        self.capture = self._context.capture(self._context.log_abs(self.due, folder))
        self._parts: list[Capture] = []  # of its processes, if they run at once
        self.endings: list[Ending] = []
        self.began = time.monotonic()

    def start_next(self, group: Group) -> bool:
        """Start the next commands; return False if the gate must run elsewhere after all."""
        while self.commands and len(self.children) < self.at_once:
            left_s = self._context.left_s(self.began, self.gate)
            command, strace = self._prepared(self.commands.pop(0), left_s)
            for fd in self.admission.held_fds:
                os.set_inheritable(fd, True)
            child = group.start(command, left_s, self._next_capture(), strace=strace)
            for fd in self.admission.held_fds:
                os.set_inheritable(fd, False)
            if isinstance(child, str):
                if not self._take(Ending(not_started=child)):
                    return False
                self.commands.clear()
            else:
                self.children.append(child)
                self._context.note_start(child, is_watched=not self.is_remote)
        return True

    def ended(self, child: Child, *, is_over: bool) -> bool:
        """Note that a process has ended; return as `start_next`. `is_over`: no other starts."""
        self.children.remove(child)
        ending = child.ending()
        if child.strace and (ending.signal or ending.timed_out or ending.ended_by_us):
            from gitgates.proc.descendants import Descendants  # if strace may be gone
            from gitgates.proc.traced import STRACE

            Descendants(f"{STRACE}={child.strace}").end()
        self._context.note_end(child, is_watched=not self.is_remote)
        if not self._take(ending):
            return False
        if ending.timed_out or ending.ended_by_us or is_over:
            self.commands.clear()
        return True

    def _prepared(self, command: Command, _left_s: float) -> tuple[Command, str]:
        """Return a command as it is started, and the file of strace, if it has one."""
        if self._observer is None:
            return command, ""
        try:
            return self._observer.traced(command)
        except OSError as error:
            say = self._context.listener.message
            say(f"{self.gate.name} is not observed: {error.strerror}")
            self._observer.discard()
            self._observer = None
            return command, ""

    def _take(self, ending: Ending) -> bool:
        """Note how a command has ended; return as `start_next`."""
        self.endings.append(ending)
        return True

    def _next_capture(self) -> Capture:
        """Return what takes the output of the next command: its own, if several run at once."""
        if self.at_once == 1 and not self._parts:
            return self.capture
        log_abs = f"{self.capture.log_abs}.{len(self._parts)}"
        self._parts.append(self._context.capture(log_abs))
        return self._parts[-1]

    def judge(self, result: GateResult) -> GateResult:
        """Return the result of a job that has also run on its base."""
        return result

    def close(self) -> None:
        """Return the checkout, if it has one."""

    def was_observed(self, *, is_over: bool) -> bool:
        """Return whether the gate was observed, and has ended by itself."""
        observer, self._observer = self._observer, None
        if observer is None:
            return False
        if is_over or any(
            end.timed_out or end.ended_by_us or end.not_started for end in self.endings
        ):
            observer.discard()
            return False
        return True

    def result(self) -> GateResult:
        """Return the result of the run, before it is judged."""
        for part in self._parts:
            self.capture.take(part)
        self.capture.close()
        output, dropped = self.capture.captured()
        is_shell = isinstance(self.gate.program.command, str)
        result = make_result(self.gate.name, tuple(self.endings), shell=is_shell)._replace(
            duration_s=time.monotonic() - self.began,
            output=output,
            dropped_bytes=dropped,
            log_abs=self.capture.log_abs,
        )
        if result.status == "timed-out":
            result = result._replace(reason=self._context.limit(self.began, self.gate))
        if result.status == "not-started" and result.reason.startswith(NOT_FOUND):
            result = with_program(result, self.gate, self._context.repo.env)
        return result


class BaseJob(Job):
    """A gate that has run, and now also runs on its base."""

    def __init__(
        self, head: Job, result: GateResult, comparison: Comparison, context: RunContext
    ) -> None:
        self.head, self._result, self._comparison = head, result, comparison
        self._checkout: Checkout | None = None
        super().__init__(head.due, head.admission, head.changes, context)
        self.at_once, self.slots, self.depends = head.at_once, head.slots, head.depends
        self.is_remote, self.waited_s = head.is_remote, head.waited_s
        self._observer = None

    def begin(self) -> None:
        """Prepare to run its commands in a checkout of the base."""
        from gitgates.worktree.checkouts import check_out  # few gates are compared
        from gitgates.worktree.setup import worktree_settings

        context, base, step = self._context, self._comparison.base, self.due.step
        say, deadline = context.listener.message, context.options.deadline
        say(f"{self.gate.name}: {self._comparison.HOW} {base.name}")
        commands, endings = [], []
        try:
            self._checkout = check_out(
                *(context.repo, base.commit, worktree_settings(context.config), say),
                limit_s=deadline.left_s() if deadline else 0.0,
            )
        except GitgatesError as error:
            endings = [Ending(not_started=error.message)]
        else:
            root_abs = self._checkout.root_abs
            is_there = any(os.path.lexists(f"{root_abs}/{path}") for path in step.paths)
            if is_there or not (step.paths and is_given_paths(self.gate)):
                commands = context.commands(step, base=self._checkout.repo)
            else:  # none of its files, so no failure
                endings = [Ending(exit_status=0)]
        self._begin(commands, "/base")
        self.endings += endings

    def judge(self, result: GateResult) -> GateResult:
        """Return the result of the gate, compared with its `result` on the base."""
        self.close()
        root_abs = self._checkout.root_abs if self._checkout else ""
        return self._comparison.judge_with_base(result, root_abs, self._result)

    def close(self) -> None:
        """Give the checkout back."""
        if self._checkout:
            self._checkout.close()
