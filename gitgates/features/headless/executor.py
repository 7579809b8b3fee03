"""Run an agent until the gates of the `headless` hook pass, then commit.

The end of each turn is an event of the kind `turn-end`, which the same policies decide as in an
interactive session. Their feedback becomes the agent's next prompt.
"""

from __future__ import annotations

import os
import time

from gitgates.config.load import load
from gitgates.core.agent_types import Channels, Payload
from gitgates.core.errors import ConfigError
from gitgates.core.types import ALLOW, BLOCK, WARN, Command, Decision, GateResult, Visit
from gitgates.engine.command import with_hook
from gitgates.features.headless import commit, constraints, limits, shared
from gitgates.features.headless.defaults import HOOK
from gitgates.features.headless.ground import HOOKS_S, head_ref
from gitgates.features.headless.leftovers import is_of, left_note
from gitgates.features.headless.outcomes import OUTCOMES, Ended
from gitgates.features.headless.resume import save_conversation
from gitgates.features.headless.turn import (
    RUN_NAME,
    run_process,
    run_turn,
    why_unchanged,
    without_earlier,
)
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.hosts.headless import Turn
from gitgates.report.artifacts import add_headless, read_result, save
from gitgates.report.result import AttemptReport, last_decision, turn_cost
from gitgates.session.breaker import BLOCKED, EXHAUSTED, PASSED
from gitgates.session.call import Call
from gitgates.session.driver import decide_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.engine.listener import Listener
    from gitgates.features.headless.commit import Staged
    from gitgates.features.headless.ground import Ground
    from gitgates.features.headless.outcomes import HeadlessOptions

_UNCHECKED = ("skipped", "not-run", "unchecked")  # a gate that ends so has checked nothing
_CAN = Channels(deny=True, block=True, stop=True, context=True)
_MOST_FAILED_TURNS = 2  # an agent that crashes, or changes nothing
_MOST_CHANGED = 3  # how often gates run because one of them has changed files
_LONGEST_SUBJECT = 72  # as git's own documentation has it: more is cut off in many places
CUT_SHORT = (
    "Your last turn was ended, because {}. Your changes are still there. Continue the task, "
    "and leave nothing running in the background. If everything is done, end your turn."
)
CUT_NOTE = "the time limit ended the agent's last turn; the gates checked what it had done"


class Executor:
    """One run: turns of the agent, attempts, and the commit."""

    def __init__(
        self,
        ground: Ground,
        config: Config,
        settings: HeadlessOptions,
        *,
        run_abs: str,
        listener: Listener,
    ) -> None:
        self.ground, self.settings = ground, settings
        self.repo, self.state = ground.repo, ground.state
        # Results are copied once, to the folder of whoever started the run.
        self.artifacts_dir, self.config = config.artifacts_dir, config._replace(artifacts_dir="")
        self.limits = constraints.settings_of(config)
        self.run_abs, self.run = run_abs, os.path.basename(run_abs)
        self.listener = listener
        self.hook = next(hook for hook in config.hooks if hook.name == HOOK)
        self.turns: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.session = settings.session  # of the agent
        self.denied = 0
        self.failed_turns = 0
        self.cut_short = False  # the gates look at what a turn had done when its time was up
        self.waits = 0  # in a row, for a client that failed for a passing reason
        self.attempts = 0
        self.has_passed = False  # and is being taken
        self.ends_at = time.monotonic() + settings.budget_s
        self.configured = self._configured()
        # A child's hooks leave the end of its turns to us; the guards before its tools stay.
        self.env = {**self.repo.env, RUN_NAME: self.run}

    def execute(self) -> Ended:
        """Run to the end: commit, or keep the agent's work under a ref.

        Raises: Interrupted after a signal; GitgatesError for errors that are not the agent's.
        """
        self._begin()
        prompt = self.settings.first_prompt or self.settings.task
        turn = Turn()
        while True:
            if time.monotonic() >= self.ends_at:
                return self._check_last(turn, "out-of-time")
            if over := limits.over_cost(self.turns, self.limits.max_cost):
                return self.give_up("over-cost", over)
            turn = self._turn(prompt)
            if self._waits_for(turn):
                continue
            if turn.error or not self._has_work():
                why = turn.error
                if not why:
                    why = why_unchanged(turn, self.settings.client, self.settings.arguments)
                    self.listener.message("the agent has changed nothing" + (why and f": {why}"))
                self.failed_turns += 1
                if self.failed_turns >= _MOST_FAILED_TURNS:
                    outcome = "agent-failed" if turn.error else "unchanged"
                    return self._check_last(turn, outcome, why)
                if turn.timed_out:
                    prompt = CUT_SHORT.format(turn.error)
                continue
            ended, prompt = self._judge(turn)
            if ended:
                return ended
            self.judged = self._content()

    def _begin(self) -> None:
        """Begin the session, then restore the work of an earlier run, which may be good already."""
        decide_alone(self._call("session-start", ""))
        decide_alone(self._call("prompt", ""))
        self.judged = self._content()
        if self.settings.work:
            self.ground.restore(self.settings.work)

    @property
    def is_committed(self) -> bool:
        """Whether what has passed is committed, and may be taken already."""
        tip = self.ground.home.git.resolve(self.state.ref) if self.state.ref else ""
        return self.has_passed or bool(tip and is_of(self.repo.git, tip, self.run))

    def _has_work(self) -> bool:
        """Return whether something has changed since the gates looked."""
        return self._content() != self.judged

    def _check_last(self, turn: Turn, outcome: str, why: str = "") -> Ended:
        """Give up, unless the gates pass on what a turn had done that ran out of time."""
        if not (turn.timed_out and self._has_work()):
            return self.give_up(outcome, why)
        self.listener.message("the turn was cut short; its changes are checked")
        self.cut_short = True
        ended, _feedback = self._judge(turn)
        return ended or self.give_up(outcome, why)

    def _turn(self, prompt: str) -> Turn:
        settings, client = self.settings, self.settings.client
        number = len(self.turns) + 1
        self._phase(f"{client.name} is working", self.attempts + 1)
        if number > 1 and not (client.resumes and self.session):
            prompt = f"{settings.task}\n\n{prompt}" if prompt != settings.task else prompt
        began_s = time.monotonic()
        limit_s = max(self.ends_at - began_s, 1.0)
        turn = run_turn(
            client,
            client.start(prompt, self.session, settings.arguments),
            self.repo._replace(env=self.env),
            folder_abs=f"{self.run_abs}/agent/{number}",
            limit_s=min(limit_s, settings.turn_s or limit_s),
            on_tick=self.listener.tick,
        )
        self._put_back()
        turn = without_earlier(turn, client, [*settings.earlier_turns, *self.turns])
        self.session = turn.session or self.session
        took_s = round(time.monotonic() - began_s, 3)
        fields = {name: value for name, value in turn._asdict().items() if value not in ("", None)}
        del fields["timed_out"]  # its error has that
        self.turns.append({"attempt": self.attempts + 1, "seconds": took_s, **fields})
        self.listener.message(f"turn {number} of {client.name}: {turn_cost(self.turns[-1])}")
        self._save_conversation()
        if turn.error:
            first, _, _rest = turn.error.partition("\n")  # the report has all of it
            self.listener.message(f"{client.name}: {first}")
        return turn

    def _save_conversation(self) -> None:
        turns = [*self.settings.earlier_turns, *self.turns]
        conversation = {
            "task": self.settings.task,
            "agent": self.settings.client.name,
            "session": self.session,
            "root_abs": self.repo.root_abs,
            "start": self.state.start,
            "turns": [turn for turn in turns if turn.get("session") == self.session],
        }
        save_conversation(self.run_abs, conversation)

    def _waits_for(self, turn: Turn) -> bool:
        """Wait if a turn failed for a reason that may pass; return whether to repeat it."""
        if not limits.is_passing(turn.error) or self.waits >= self.limits.client_retries:
            self.waits = 0
            return False
        self.waits += 1
        wait_s = limits.wait_s(self.waits, self.limits.retry_wait_s)
        wait_s = min(wait_s, max(self.ends_at - time.monotonic(), 0.0))
        self.listener.message(f"that may pass: the turn is repeated in {wait_s:.0f} s")
        limits.wait(wait_s, self.listener.tick)
        return True

    def _put_back(self) -> None:
        """Put back what the agent has changed beside its working tree; say so."""
        for note in self.ground.put_back():
            self.listener.message(note)
            self.notes.append(note)

    def _content(self) -> tuple[str, ...]:
        """Return the content of all files, HEAD and branch, to detect what a turn changed."""
        staged = self.ground.stage()
        return staged.tree, staged.problem, *self._heads()

    def _judge(self, turn: Turn) -> tuple[Ended | None, str]:
        """Check one attempt; return the result of the run, or the next prompt."""
        self.attempts += 1
        self.failed_turns = 0
        self._phase("gates", self.attempts)
        staged = self.ground.stage()
        if violations := self._violations(staged):
            for violation in violations:
                self.listener.message(violation)
            if self.denied > 1:
                return self.give_up("denied"), ""
            start = self.state.start if self.repo.head != self.state.start else ""
            return self._refuse("constraints", constraints.prompt_for(violations, start), turn)
        moved_from = self._heads()
        for _ in range(_MOST_CHANGED):
            before = commit.others_in(staged.git)
            outcome, text = self._ask_policies(turn, staged)
            if self._heads() != moved_from:
                return self.give_up("moved"), ""
            # What gates have made is a report, and not committed, unless they are there to write.
            after = self.ground.stage() if self._fixes() else staged
            self.ground.note_known(commit.others_in(after.git) - before)
            after = self.ground.stage()
            if outcome != PASSED or not after.paths_since(staged.tree):
                break
            staged = after
            self.listener.message("a gate changed files: the gates run again on the result")
        else:
            return self.give_up("unsettled"), ""
        self._put_back()
        if outcome == PASSED:
            return self._commit(turn, staged)
        if outcome == BLOCKED:
            return None, text
        return self.give_up(outcome), ""

    def _violations(self, staged: Staged) -> tuple[str, ...]:
        state, git = self.state, staged.git
        if staged.problem:
            return (f"git cannot hold the change: {staged.problem}",)
        commits = commit.own_commits(self.repo, [state.start, *state.refs.values()])
        paths = commit.paths_in_commits(commits, git) | staged.paths_since(state.start)
        others = self.ground.changed_others(staged) if self.limits.deny else set()
        denied = constraints.denied_paths(self.limits, paths | others)
        self.denied += bool(denied)
        lines = 0
        if self.limits.max_lines:  # at least what differs: a merge brings lines of no such commit
            in_commits = commit.lines_in_commits(commits, git)
            rest = staged.lines_since(self.repo.head)
            lines = max(staged.lines_since(state.start), in_commits + rest)
        counted = [turn["tokens"] for turn in self.turns if "tokens" in turn]
        return (
            *constraints.violations(
                self.limits,
                paths=sorted(paths),
                denied=denied,
                lines=lines,
                tokens=sum(counted) if counted else None,
            ),
            *constraints.misplaced(self._heads()[1], state.ref, state.start),
        )

    def _fixes(self) -> bool:
        """Return whether a gate is there to write files."""
        return any(gate.writes for gate in self.config.gates if gate.name in self.hook.gates)

    def _heads(self) -> tuple[str, str]:
        return self.repo.head, head_ref(self.repo)

    def _call(self, kind: EventKind, message: str) -> Call:
        client = self.settings.client.name
        payload = Payload(
            host=client if client in AGENTS else DEFAULT_AGENT,
            event=HOOK if kind == "turn-end" else f"{HOOK}-{kind}",
            kind=kind,
            can=_CAN,
            session=f"{HOOK}-{self.run}",
            prompt_id=self.run,
            cwd_abs=self.repo.root_abs,
            prompt=self.settings.task,
            last_message=message,
        )
        env = with_hook(self.repo.env, HOOK, self.repo.git_dir_abs)
        call = Call(payload, self.repo._replace(env=env), say=self.listener.message)
        call.has_limit, call.is_alone = False, True
        call.config, call.run_abs, call.listener = self.config, self.run_abs, self.listener
        return call

    def _ask_policies(self, turn: Turn, staged: Staged) -> tuple[str, str]:
        """Run the gates; return the outcome, and the feedback for the agent."""
        commit.show_index(self.repo, staged)
        call = self._call("turn-end", turn.text)
        call.read()
        before = sum(round_.hook == HOOK for round_ in call.session.rounds)
        verdict = decide_alone(call)
        rounds = [round_ for round_ in call.session.rounds if round_.hook == HOOK]
        outcome = "stopped" if verdict.level >= BLOCK else "unchecked"
        if len(rounds) > before:
            outcome = rounds[-1].outcome
        if outcome == PASSED and verdict.level >= BLOCK:
            outcome = BLOCKED  # a policy other than the gates has blocked
        visits = self._last_decision().visits
        if outcome == PASSED and all(visit.result.status in _UNCHECKED for visit in visits):
            outcome = "unchecked"
        terminal = {gate.name for gate in self.config.gates if gate.terminal}
        if outcome == BLOCKED and rounds and terminal.intersection(dict(rounds[-1].statuses)):
            outcome = "terminal"
        return outcome, verdict.to_agent

    def _last_decision(self) -> Decision:
        """Return the decision of the last attempt; of no report, one without gates."""
        document = read_result(self.run_abs)
        return last_decision(document) if document else Decision(ALLOW)

    def _refuse(self, gate: str, text: str, turn: Turn) -> tuple[Ended | None, str]:
        """Record an attempt that failed before or after the gates; return what follows."""
        call = self._call("turn-end", turn.text)
        call.read()
        is_last = self.attempts > self.settings.max_retries
        outcome = EXHAUSTED if is_last else BLOCKED
        result = GateResult(gate=gate, status="failed", output=text.encode("utf-8", "replace"))
        visit = Visit(result=result, verdict=BLOCK, action="BLOCK")
        decision = Decision(BLOCK, decided_by=gate, reason=f"{gate}: failed", visits=(visit,))
        self._save(decision, outcome, turn.text)
        gates, statuses = ", ".join(self.hook.gates), ((gate, "failed"),)
        call.record(call.round(gates, outcome, key=call.key, statuses=statuses, run=self.run_abs))
        return (self.give_up(EXHAUSTED), "") if is_last else (None, text)

    def _save(self, decision: Decision, outcome: str, text: str) -> None:
        attempt = AttemptReport(
            hook=HOOK,
            host=HOOK,
            root=self.repo.root_abs,
            timestamp_s=time.time(),
            duration_s=0.0,
            decision=decision,
            verdict=outcome,
            session=self.session,
            agent_fixes=text,
        )
        config = self.config
        save(
            attempt,
            self.run_abs,
            max_retries=self.settings.max_retries,
            keep_runs=config.keep_runs,
        )

    def _commit(self, turn: Turn, staged: Staged) -> tuple[Ended | None, str]:
        """Commit what the run has changed; if git's hooks refuse that, the attempt has failed."""
        message, repo = self._message(turn), self.repo
        if not self.settings.commits:
            return self._pass(self.ground.without_commits(staged, message), staged), ""
        self._phase("commit", self.attempts)
        if staged.paths_since(repo.head):  # else the agent has committed by itself
            commit.show_index(repo, staged)
            message_abs = f"{self.run_abs}/message"
            with open(message_abs, "w", encoding="utf-8", errors="replace") as file:
                file.write(message)
            # Overrides the configured cleanup: `#12` does not begin a comment.
            how = ("-q", "--cleanup=whitespace", "-F", message_abs)
            argv = ("git", "-C", repo.root_abs, "commit", *how)
            log_abs = f"{self.run_abs}/commit-{self.attempts}.log"
            command = Command(argv, repo.root_abs, repo.env)
            output, ending = run_process(command, log_abs, HOOKS_S, self.listener.tick)
            if ending.exit_status != 0:
                text = output.decode("utf-8", "replace")
                self.listener.message(f"`git commit` failed: {log_abs}")
                feedback = f"The gates passed, but `git commit` failed:\n\n{text}"
                return self._refuse("git commit", feedback, turn)
        return self._pass([], staged), ""

    def _pass(self, notes: list[str], staged: Staged) -> Ended:
        """Bring the commit to where it belongs; say what else is not as it was."""
        commits, decision = self.settings.commits, self._last_decision()
        notes = [*notes, *([CUT_NOTE] if self.cut_short else [])]
        notes += self.ground.hidden_note(staged)
        is_ancestor = ("merge-base", "--is-ancestor", self.state.start, "HEAD")
        if self.repo.git.ask(*is_ancestor).exit_status:
            notes.append(f"{self.state.start}, where it began, is no longer in its history")
        if self._configured() != self.configured:
            notes.append("the configuration of gitgates was changed; the previous one was used")
        idle = [one.result for one in decision.visits if one.result.status in _UNCHECKED]
        notes += [f"gate `{it.gate}` checked nothing: {it.reason or it.status}" for it in idle]
        ended = Ended("passed", commit=self.repo.head if commits else "")
        if decision.verdict == WARN:
            ended = ended._replace(outcome="warned", why=decision.reason)
        log_abs = f"{self.run_abs}/merge.log"
        self.has_passed = True
        notes += self.ground.take(log_abs, self.listener.tick, commits=commits)
        branch = self.ground.branch_of(ended.commit)
        return self._end(ended._replace(notes=tuple(notes), branch=branch))

    def _configured(self) -> Config | None:
        """Return the configuration of gitgates in the working tree; None where there is none."""
        try:
            return load(self.repo.root_abs)
        except ConfigError:
            return None

    def _message(self, turn: Turn) -> str:
        subject, _, rest = self.settings.message.partition("\n")
        subject = subject or " ".join(self.settings.task.split())
        if len(subject) > _LONGEST_SUBJECT:
            subject, rest = f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", f"{subject}\n{rest}"
        words = f"{CUT_NOTE[0].upper()}{CUT_NOTE[1:]}." if self.cut_short else turn.text.strip()
        parts = [subject, rest.strip(), words, f"Gitgates-Run: {self.run}"]
        return "\n\n".join(part for part in parts if part).replace("\0", "") + "\n"

    def give_up(self, outcome: str, why: str = "") -> Ended:
        """Keep the agent's work under a ref, and leave the rest alone."""
        if not read_result(self.run_abs):  # no attempt, or one in which no gate ran
            reason = why or OUTCOMES[outcome][1]
            self._save(Decision(BLOCK, reason=reason), "could-not-run", "")
        self.listener.phase("keeping the agent's work")
        self._put_back()
        keeps = self.settings.keeps
        failed_work = self.ground.leave(keeps=keeps)
        notes = [
            *failed_work.notes,
            *([left_note(failed_work.left_abs)] if failed_work.left_abs else []),
        ]
        ended = Ended(outcome, why, failed_ref=failed_work.ref, rolled_back=not keeps)
        return self._end(ended._replace(notes=tuple(notes)))

    def _end(self, ended: Ended) -> Ended:
        """Write the reports."""
        status, words = OUTCOMES[ended.outcome]
        client = self.settings.client.name
        notes = (
            *ended.notes,
            *self.notes,
            *shared.created_notes(self.ground.home, self.state),
            *limits.cost_notes(self.turns, self.limits.max_cost, client),
        )
        ended = ended._replace(notes=notes, attempts=self.attempts)
        facts = {
            "task": self.settings.task,
            "agent": client,
            "status": "failed" if status else "passed",
            "outcome": f"{words}: {ended.why}".splitlines()[0].removesuffix(": "),
            "commit": ended.commit,
            "failed_ref": ended.failed_ref,
            "rolled_back": ended.rolled_back,
            "notes": ended.notes,
            "turns": self.turns,
        }
        trouble = add_headless(
            self.run_abs,
            facts,
            shared_state_abs=self.repo.shared_state_abs,
            artifacts_dir=self.artifacts_dir,
            root_abs=self.ground.home.root_abs,
            step_summary_abs=self.repo.env.get("GITHUB_STEP_SUMMARY", ""),
        )
        return ended._replace(notes=(*notes, *trouble))

    def _phase(self, text: str, attempt: int) -> None:
        self.listener.phase(f"attempt {attempt} of {self.settings.max_retries + 1}: {text}")
