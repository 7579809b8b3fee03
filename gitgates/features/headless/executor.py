"""Run an agent until the gates of the `headless` hook pass, then commit.

The end of each turn is an event of the kind `turn-end`, which the same policies decide as in an
interactive session. Their feedback becomes the agent's next prompt.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import Channels, Payload
from gitgates.core.types import ALLOW, BLOCK, WARN, Command, Decision, GateResult, Visit
from gitgates.engine.command import with_hook
from gitgates.features.headless import commit, constraints, limits, shared
from gitgates.features.headless.defaults import HOOK
from gitgates.features.headless.ground import HOOKS_S, head_ref
from gitgates.features.headless.leftovers import is_of
from gitgates.features.headless.outcomes import OUTCOMES, Ended
from gitgates.features.headless.resume import save_conversation
from gitgates.features.headless.turn import RUN_NAME, run_process, run_turn, without_earlier
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
_CUT_SHORT = (
    "Your last turn was ended, because {}. Your changes are still there. Continue the task, "
    "and leave nothing running in the background. If everything is done, end your turn."
)
_CUT_NOTE = "the time limit ended the agent's last turn; the gates checked what it had done"


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
        self.session = settings.earlier.session if settings.earlier else ""  # of the agent
        self.turn = Turn()  # the last one
        self.judged: tuple[str, ...] = ()  # the content that gates have seen last
        self.denied = 0
        self.failed_turns = 0  # in a row
        self.cut_short = False  # the gates look at what a turn had done when its time was up
        self.waits = 0  # in a row, for a client that failed for a passing reason
        self.attempts = 0
        self.has_passed = False  # and is being taken
        self.ends_at = time.monotonic() + settings.budget_s

    def execute(self) -> Ended:
        """Run to the end: commit, or keep the agent's work under a ref.

        Raises: Interrupted after a signal; GitgatesError for errors that are not the agent's.
        """
        earlier, ended = self.settings.earlier, None
        for kind in ("session-start", "prompt"):
            decide_alone(self._call(kind, ""))
        self.judged = self._content()
        if earlier and earlier.work_ref:  # which may be good already
            self.ground.restore(earlier.work_ref)
        prompt = earlier.prompt(self.settings.task) if earlier else self.settings.task
        while not ended:
            if time.monotonic() >= self.ends_at:
                return self._check_last("out-of-time")
            if over := limits.over_cost(self.turns, self.limits.max_cost):
                return self.give_up("over-cost", over)
            turn = self._turn(prompt)
            if self._waits_for(turn):
                continue
            if not turn.error and self._content() != self.judged:
                self.failed_turns = 0
                ended, prompt = self._judge(turn)
                self.judged = () if ended else self._content()
            else:
                ended = self._fail(turn)
                prompt = _CUT_SHORT.format(turn.error) if turn.timed_out else prompt
        return ended

    @property
    def is_committed(self) -> bool:
        """Whether what has passed is committed, and may be taken already."""
        tip = self.ground.home.git.resolve(self.state.ref) if self.state.ref else ""
        return self.has_passed or bool(tip and is_of(self.repo.git, tip, self.run))

    def _fail(self, turn: Turn) -> Ended | None:
        """Count a turn that failed or changed nothing; end the run after several."""
        self.failed_turns += 1
        why = turn.error or self._why_unchanged(turn)
        if self.failed_turns < _MOST_FAILED_TURNS:
            return None
        return self._check_last("agent-failed" if turn.error else "unchanged", why)

    def _check_last(self, outcome: str, why: str = "") -> Ended:
        """Give up, unless the gates pass on what a turn had done that ran out of time."""
        ended = None
        if self.turn.timed_out and self._content() != self.judged:
            self.listener.message("the turn was cut short; its changes are checked")
            self.cut_short = True
            ended, _feedback = self._judge(self.turn)
        return ended or self.give_up(outcome, why)

    # Turns

    def _turn(self, prompt: str) -> Turn:
        settings, client = self.settings, self.settings.client
        number = len(self.turns) + 1
        self._phase(f"{client.name} is working", self.attempts + 1)
        if number > 1 and not (client.resumes and self.session) and prompt != settings.task:
            prompt = f"{settings.task}\n\n{prompt}"
        began_s = time.monotonic()
        limit_s = max(self.ends_at - began_s, 1.0)
        turn = run_turn(
            client,
            client.start(prompt, self.session, settings.arguments),
            # A child's hooks leave the end of its turns to us; the guards before its tools stay.
            self.repo._replace(env={**self.repo.env, RUN_NAME: self.run}),
            folder_abs=f"{self.run_abs}/agent/{number}",
            limit_s=min(limit_s, settings.turn_s or limit_s),
            on_tick=self.listener.tick,
        )
        self._put_back()
        turns = [*(settings.earlier.turns if settings.earlier else ()), *self.turns]
        turn = self.turn = without_earlier(turn, client, turns)
        self.session = turn.session or self.session
        took_s = round(time.monotonic() - began_s, 3)
        fields = {name: value for name, value in turn._asdict().items() if value not in ("", None)}
        del fields["timed_out"]  # its error has that
        self.turns.append({"attempt": self.attempts + 1, "seconds": took_s, **fields})
        self.listener.message(f"turn {number} of {client.name}: {turn_cost(self.turns[-1])}")
        turns = [each for each in (*turns, self.turns[-1]) if each.get("session") == self.session]
        conversation = {"task": settings.task, "agent": client.name, "session": self.session}
        places = {"root_abs": self.repo.root_abs, "start": self.state.start}
        save_conversation(self.run_abs, {**conversation, **places, "turns": turns})
        if turn.error:
            first, _, _rest = turn.error.partition("\n")  # the report has all of it
            self.listener.message(f"{client.name}: {first}")
        return turn

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

    def _why_unchanged(self, turn: Turn) -> str:
        """Say that a turn has changed nothing; return why, empty if unknown."""
        why = ""
        if turn.refused:
            why = f"it had no permission for {turn.refused}; the key `agent_args` can grant it"
        elif self.settings.client.resumes and not self.settings.arguments:
            why = "the key `agent_args`, which sets its permissions, is empty"
        self.listener.message("the agent has changed nothing" + (why and f": {why}"))
        return why

    def _put_back(self) -> None:
        """Put back what the agent has changed beside its working tree; say so."""
        for note in self.ground.put_back():
            self.listener.message(note)
            self.notes.append(note)

    # Attempts

    def _content(self) -> tuple[str, ...]:
        """Return the content of all files, HEAD and branch, to detect what a turn changed."""
        staged = self.ground.stage()
        return staged.tree, staged.problem, *self._heads()

    def _heads(self) -> tuple[str, str]:
        return self.repo.head, head_ref(self.repo)

    def _judge(self, turn: Turn) -> tuple[Ended | None, str]:
        """Check one attempt; return the result of the run, or the next prompt."""
        self.attempts += 1
        self._phase("gates", self.attempts)
        staged, moved_from = self.ground.stage(), self._heads()
        if violations := self._violations(staged):
            for violation in violations:
                self.listener.message(violation)
            if self.denied > 1:
                return self.give_up("denied"), ""
            start = self.state.start if self.repo.head != self.state.start else ""
            return self._refuse("constraints", constraints.prompt_for(violations, start), turn)
        # What gates have made is a report, and not committed, unless they are there to write.
        fixes = any(gate.writes for gate in self.config.gates if gate.name in self.hook.gates)
        for _ in range(_MOST_CHANGED):
            before = commit.others_in(staged.git)
            outcome, text = self._ask_policies(turn, staged)
            if self._heads() != moved_from:
                return self.give_up("moved"), ""
            after = self.ground.stage() if fixes else staged
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
        return (None, text) if outcome == BLOCKED else (self.give_up(outcome), "")

    def _violations(self, staged: Staged) -> tuple[str, ...]:
        state = self.state
        if staged.problem:
            return (f"git cannot hold the change: {staged.problem}",)
        paths, lines = commit.in_commits(self.repo, [state.start, *state.refs.values()])
        paths |= staged.paths_since(state.start)
        others = self.ground.changed_others(staged) if self.limits.deny else set()
        denied = constraints.matching(self.limits.deny, paths | others)
        self.denied += bool(denied)
        if self.limits.max_lines:  # at least what differs: a merge brings lines of no such commit
            rest = staged.lines_since(staged.head)
            lines = max(staged.lines_since(state.start), lines + rest)
        tokens = sum(turn.get("tokens", 0) for turn in self.turns)
        return (
            *constraints.violations(
                self.limits, paths=paths, denied=denied, lines=lines, tokens=tokens
            ),
            *constraints.misplaced(head_ref(self.repo), state.ref, state.start),
        )

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
        try:
            verdict = decide_alone(call)
        finally:
            commit.put_index_back(self.repo)
        rounds = [round_ for round_ in call.session.rounds if round_.hook == HOOK]
        outcome = "stopped" if verdict.level >= BLOCK else "unchecked"
        if len(rounds) > before:
            outcome = rounds[-1].outcome
        if outcome == PASSED and verdict.level >= BLOCK:
            outcome = BLOCKED  # a policy other than the gates has blocked
        visits = decision_of(self.run_abs).visits
        if outcome == PASSED and all(visit.result.status in _UNCHECKED for visit in visits):
            outcome = "unchecked"
        terminal = {gate.name for gate in self.config.gates if gate.terminal}
        if outcome == BLOCKED and rounds and terminal.intersection(dict(rounds[-1].statuses)):
            outcome = "terminal"
        return outcome, verdict.to_agent

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

    # The end

    def _commit(self, turn: Turn, staged: Staged) -> tuple[Ended | None, str]:
        """Commit what the run has changed; if git's hooks refuse that, the attempt has failed."""
        message, repo = self._message(turn), self.repo
        if not self.settings.commits:
            ref = f"{commit.FAILED_REFS}/{self.run}"
            if repo.head != self.state.start:
                self.ground.home.git.out("update-ref", ref, repo.head)
                how = f"with --no-commit, its commits are kept as {ref} only"
                self.notes.append(f"the agent had committed; {how}")
            self.ground.without_commits(staged, message)
            return self._pass(staged), ""
        self._phase("commit", self.attempts)
        if staged.paths_since(staged.head):  # else the agent has committed by itself
            commit.show_index(repo, staged)
            message_abs = f"{self.run_abs}/message"
            with open(message_abs, "w", encoding="utf-8", errors="replace") as file:
                file.write(message)
            # Overrides the configured cleanup: `#12` does not begin a comment.
            how_to = ("-q", "--cleanup=whitespace", "-F", message_abs)
            argv = ("git", "-C", repo.root_abs, "commit", *how_to)
            log_abs = f"{self.run_abs}/commit-{self.attempts}.log"
            command = Command(argv, repo.root_abs, repo.env)
            output, ending = run_process(command, log_abs, HOOKS_S, self.listener.tick)
            if ending.exit_status != 0:
                commit.put_index_back(repo)
                text = output.decode("utf-8", "replace")
                self.listener.message(f"`git commit` failed: {log_abs}")
                feedback = f"The gates passed, but `git commit` failed:\n\n{text}"
                return self._refuse("git commit", feedback, turn)
            commit.keep_index(repo)
        return self._pass(staged), ""

    def _message(self, turn: Turn) -> str:
        subject, _, rest = (self.settings.message or self.settings.task).partition("\n")
        subject = subject.lstrip("# ").strip() if rest else subject  # a heading, above text
        if len(subject) > _LONGEST_SUBJECT:
            subject, rest = f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", f"{subject}\n{rest}"
        words = f"{_CUT_NOTE[0].upper()}{_CUT_NOTE[1:]}." if self.cut_short else turn.text.strip()
        parts = [subject, rest.strip(), words, f"Gitgates-Run: {self.run}"]
        return "\n\n".join(part for part in parts if part).replace("\0", "") + "\n"

    def _pass(self, staged: Staged) -> Ended:
        """Bring the commit to where it belongs; say what else is not as it was."""
        commits, git, state = self.settings.commits, self.ground.home.git, self.state
        decision, tip = decision_of(self.run_abs), self.repo.head if self.settings.commits else ""
        notes = [_CUT_NOTE] if self.cut_short else []
        notes += self.ground.hidden_note(staged)
        idle = [one.result for one in decision.visits if one.result.status in _UNCHECKED]
        notes += [f"gate `{it.gate}` checked nothing: {it.reason or it.status}" for it in idle]
        self.has_passed = True
        notes += self.ground.take(f"{self.run_abs}/merge.log", self.listener.tick, commits=commits)
        ref = state.ref if git.resolve(state.ref) == tip else state.home_ref
        ended = Ended("passed", commit=tip, branch=ref.removeprefix("refs/heads/"))
        if decision.verdict == WARN:
            ended = ended._replace(outcome="warned", why=decision.reason)
        return self._end(ended, notes)

    def give_up(self, outcome: str, why: str = "") -> Ended:
        """Keep the agent's work under a ref, and leave the rest alone."""
        if not read_result(self.run_abs):  # no attempt, or one in which no gate ran
            reason = why or OUTCOMES[outcome][1]
            self._save(Decision(BLOCK, reason=reason), "could-not-run", "")
        self.listener.phase("keeping the agent's work")
        self._put_back()
        keeps = self.settings.keeps
        ref, notes = self.ground.leave(keeps=keeps)
        return self._end(Ended(outcome, why, failed_ref=ref, rolled_back=not keeps), notes)

    def _end(self, ended: Ended, notes: list[str]) -> Ended:
        """Write the reports."""
        status, words = OUTCOMES[ended.outcome]
        client, most_usd = self.settings.client.name, self.limits.max_cost
        notes = [*notes, *self.notes, *shared.created_notes(self.ground.home, self.state)]
        if most_usd and self.turns and limits.cost_usd(self.turns) is None:
            notes.append(f"max_cost was not checked: {client} does not report the cost of a turn")
        facts = {
            "task": self.settings.task,
            "agent": client,
            "status": "failed" if status else "passed",
            "outcome": f"{words}: {ended.why}".splitlines()[0].removesuffix(": "),
            "commit": ended.commit,
            "failed_ref": ended.failed_ref,
            "rolled_back": ended.rolled_back,
            "notes": notes,
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
        return ended._replace(notes=(*notes, *trouble), attempts=self.attempts)

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
        retries, keep_runs = self.settings.max_retries, self.config.keep_runs
        save(attempt, self.run_abs, max_retries=retries, keep_runs=keep_runs)

    def _phase(self, text: str, attempt: int) -> None:
        self.listener.phase(f"attempt {attempt} of {self.settings.max_retries + 1}: {text}")


def decision_of(run_abs: str) -> Decision:
    """Return the decision of the last attempt; of no report, one without gates."""
    document = read_result(run_abs)
    return last_decision(document) if document else Decision(ALLOW)
