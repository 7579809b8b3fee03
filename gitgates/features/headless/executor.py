"""Run an agent until the gates of the `headless` hook pass, then commit.

The end of each turn is an event of the kind `turn-end`, which the same policies decide as in an
interactive session. Their feedback becomes the agent's next prompt.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import Channels, Payload, Prompt, TurnEnd
from gitgates.core.types import ALLOW, BLOCK, WARN, Decision, GateResult, Visit
from gitgates.drivers.agent import decide_alone
from gitgates.drivers.breaker import BLOCKED, EXHAUSTED, PASSED
from gitgates.drivers.call import Call
from gitgates.engine.plan.command import with_hook
from gitgates.features.headless import constraints
from gitgates.features.headless.ground import head_ref, others_in, paths_in_commits
from gitgates.features.headless.outcomes import HOOK, OUTCOMES, Ended
from gitgates.features.headless.resume import save_conversation
from gitgates.features.headless.turn import (
    RUN_NAME,
    is_temporary,
    run_git,
    run_turn,
    wait,
    wait_s,
    without_earlier,
)
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.report.artifacts import add_headless, read_result, save
from gitgates.report.result import AttemptReport, turn_cost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.engine.plan.listener import Listener
    from gitgates.features.headless.ground import Ground, Staged
    from gitgates.features.headless.outcomes import HeadlessOptions
    from gitgates.hosts.headless import Turn

_UNCHECKED = ("skipped", "not-run", "unchecked")  # a gate that ends so has checked nothing
_CAN = Channels(deny=True, block=True, stop=True, context=True)
_MOST_FAILED_TURNS = 2  # an agent that crashes, or changes nothing
_MOST_CHANGED = 3  # how often gates run because one of them has changed files
_LONGEST_SUBJECT = 72  # as in git's documentation: many programs cut off more
_CUT_NOTE = "the time limit ended the agent's last turn; the gates checked what it had done"


class Executor:
    """One run: turns of the agent, attempts, and the commit."""

    def __init__(
        self,
        ground: Ground,
        config: Config,
        options: HeadlessOptions,
        *,
        run_abs: str,
        listener: Listener,
    ) -> None:
        self.ground, self.options, self.listener = ground, options, listener
        self.repo, self.state = ground.repo, ground.state
        # Results are copied once, to the folder of whoever started the run.
        self.artifacts_dir, self.config = config.artifacts_dir, config._replace(artifacts_dir="")
        self.limits = constraints.settings_of(config)
        self.hook = next(hook for hook in config.hooks if hook.name == HOOK)
        self.run_abs, self.run = run_abs, os.path.basename(run_abs)
        self.turns: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.session = options.earlier.session if options.earlier else ""  # of the agent
        self.denied = self.attempts = 0
        self.decision = Decision(ALLOW)  # of the last attempt
        self.ends_at = time.monotonic() + options.budget_s

    def execute(self) -> Ended:
        """Run to the end: commit, or keep the agent's work under a ref.

        Raises: Interrupted after a signal; GitgatesError for errors that are not the agent's.
        """
        earlier, prompt, failed = self.options.earlier, self.options.task, 0
        for kind in ("session-start", "prompt"):
            decide_alone(self._call(kind, ""))
        judged = self._content()
        if earlier:
            prompt = earlier.prompt(prompt)
            if earlier.work_ref:  # uncommitted again; it may already be good
                self.repo.git.out("read-tree", "-m", "-u", "HEAD", earlier.work_ref)
                self.ground.hide_index()
        while time.monotonic() < self.ends_at:
            if over := constraints.over_cost(self.turns, self.limits.max_cost):
                return self.give_up("over-cost", over)
            turn = self._turn(prompt)
            if (turn.timed_out or not turn.error) and self._content() != judged:
                ended, prompt = self._judge(turn)
                if ended:
                    return ended
                self.ground.hide_index()
                judged, failed = self._content(), 0
                continue
            failed += 1
            if is_temporary(turn.error) and failed <= self.limits.client_retries:
                seconds = wait_s(failed, self.limits.retry_wait_s)
                wait(min(seconds, self.ends_at - time.monotonic()), self.listener)
                continue
            why = turn.error or self._why_unchanged(turn)
            if failed >= _MOST_FAILED_TURNS:
                return self.give_up("agent-failed" if turn.error else "unchanged", why)
        return self.give_up("out-of-time")

    # Turns

    def _turn(self, prompt: str) -> Turn:
        options, client, say = self.options, self.options.client, self.listener.message
        self._phase(f"{client.name} is working", self.attempts + 1)
        if self.turns and not (client.resumes and self.session) and prompt != options.task:
            prompt = f"{options.task}\n\n{prompt}"
        began_s = time.monotonic()
        turn = run_turn(
            client,
            client.start(prompt, self.session, self.limits.agent_args),
            # With this name set, the client's hooks leave its stops to us, but still guard tools.
            self.repo._replace(env={**self.repo.env, RUN_NAME: self.run}),
            folder_abs=f"{self.run_abs}/agent/{len(self.turns) + 1}",
            limit_s=max(self.ends_at - began_s, 1.0),
            on_tick=self.listener.tick,
        )
        self._put_back()
        before = [*(options.earlier.turns if options.earlier else ()), *self.turns]
        turn = without_earlier(turn, client, before)
        self.session = turn.session or self.session
        took_s = round(time.monotonic() - began_s, 3)
        fields = {name: value for name, value in turn._asdict().items() if value not in ("", None)}
        del fields["timed_out"]  # its error has that
        self.turns.append({"attempt": self.attempts + 1, "seconds": took_s, **fields})
        say(f"turn {len(self.turns)} of {client.name}: {turn_cost(self.turns[-1])}")
        save_conversation(
            self.run_abs,
            task=options.task,
            agent=client.name,
            session=self.session,
            root_abs=self.repo.root_abs,
            start=self.state.start,
            turns=[use for use in (*before, self.turns[-1]) if use.get("session") == self.session],
        )
        if turn.error:
            say(f"{client.name}: {turn.error.partition(chr(10))[0]}")  # the report has all of it
        return turn

    def _why_unchanged(self, turn: Turn) -> str:
        """Report that a turn changed nothing; return why, empty if unknown."""
        hint = f"it had no permission for {turn.refused}; the key `agent_args` can grant it"
        why = hint if turn.refused else ""
        self.listener.message("the agent has changed nothing" + (why and f": {why}"))
        return why

    def _put_back(self) -> None:
        """Put back what the agent changed outside its working tree, and report it."""
        for note in self.ground.put_back():
            if note not in self.notes:
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
        # New files that gates create are reports, and not committed, unless a gate may write.
        fixes = any(
            gate.program.writes for gate in self.config.gates if gate.name in self.hook.gates
        )
        for _ in range(_MOST_CHANGED):
            before = others_in(staged.git)
            outcome, text = self._ask_policies(turn, staged)
            if self._heads() != moved_from:
                return self.give_up("moved"), ""
            after = self.ground.stage() if fixes else staged
            self.ground.note_known(others_in(after.git) - before)
            after = self.ground.stage()
            if outcome != PASSED or after.tree == staged.tree:
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
        state, limits = self.state, self.limits
        if staged.problem:
            return (f"git cannot hold the change: {staged.problem}",)
        paths = paths_in_commits(self.repo, [state.start, *state.refs.values()])
        paths |= staged.paths_since(state.start)
        others = self.ground.changed_others(staged) if limits.deny else set()
        denied = constraints.matching(limits.deny, paths | others)
        self.denied += bool(denied)
        violations = constraints.violations(
            limits,
            paths=paths,
            denied=denied,
            lines=staged.lines_since(state.start) if limits.max_lines else 0,
            tokens=sum(turn.get("tokens", 0) for turn in self.turns),
        )
        return *violations, *constraints.misplaced(head_ref(self.repo), state.ref, state.start)

    def _call(self, kind: EventKind, message: str) -> Call:
        client = self.options.client.name
        payload = Payload(
            host=client if client in AGENTS else DEFAULT_AGENT,
            event=HOOK if kind == "turn-end" else f"{HOOK}-{kind}",
            kind=kind,
            can=_CAN,
            session=f"{HOOK}-{self.run}",
            cwd_abs=self.repo.root_abs,
            prompt=Prompt(id=self.run, text=self.options.task),
            ending=TurnEnd(message=message),
        )
        env = with_hook(self.repo.env, HOOK, self.repo.git_dir_abs)
        call = Call(payload, self.repo._replace(env=env), say=self.listener.message)
        call.has_limit, call.is_alone = False, True
        call.config, call.run_abs, call.listener = self.config, self.run_abs, self.listener
        return call

    def _ask_policies(self, turn: Turn, staged: Staged) -> tuple[str, str]:
        """Run the gates; return the outcome, and the feedback for the agent."""
        self.ground.show_index(staged)
        call = self._call("turn-end", turn.text)
        call.read()
        before = sum(round_.hook == HOOK for round_ in call.session.rounds)
        verdict = decide_alone(call)
        self.decision = call.decision or self.decision
        rounds = [round_ for round_ in call.session.rounds if round_.hook == HOOK]
        outcome = "stopped" if verdict.level >= BLOCK else "unchecked"
        if len(rounds) > before:
            outcome = rounds[-1].outcome
        if outcome == PASSED and verdict.level >= BLOCK:
            outcome = BLOCKED  # a policy other than the gates has blocked
        visits = self.decision.visits
        if outcome == PASSED and all(visit.result.status in _UNCHECKED for visit in visits):
            outcome = "unchecked"
        terminal = {gate.name for gate in self.config.gates if gate.actions.terminal}
        if outcome == BLOCKED and rounds and terminal.intersection(dict(rounds[-1].statuses)):
            outcome = "terminal"
        return outcome, verdict.to_agent

    def _refuse(self, gate: str, text: str, turn: Turn) -> tuple[Ended | None, str]:
        """Record an attempt that failed before or after the gates; return what follows."""
        call = self._call("turn-end", turn.text)
        call.read()
        outcome = EXHAUSTED if self.attempts > self.hook.max_retries else BLOCKED
        result = GateResult(gate=gate, status="failed", output=text.encode("utf-8", "replace"))
        visit = Visit(result=result, verdict=BLOCK, action="BLOCK")
        decision = Decision(BLOCK, decided_by=gate, reason=f"{gate}: failed", visits=(visit,))
        self._save(decision, outcome, turn.text)
        gates, statuses = ", ".join(self.hook.gates), ((gate, "failed"),)
        call.record(call.round(gates, outcome, key=call.key, statuses=statuses, run=self.run_abs))
        return (self.give_up(EXHAUSTED), "") if outcome == EXHAUSTED else (None, text)

    # The end

    def _commit(self, turn: Turn, staged: Staged) -> tuple[Ended | None, str]:
        """Commit what the run has changed; if git's hooks refuse that, the attempt has failed."""
        notes = [_CUT_NOTE] if turn.timed_out else []
        self._phase("commit", self.attempts)
        if staged.paths_since(staged.head):  # else the agent has committed by itself
            self.ground.show_index(staged)
            message_abs = f"{self.run_abs}/message"
            words = f"{_CUT_NOTE.capitalize()}." if turn.timed_out else turn.text.strip()
            with open(message_abs, "w", encoding="utf-8", errors="replace") as file:
                file.write(self._message(words))
            # Overrides the configured cleanup: `#12` does not begin a comment.
            how_to = ("-q", "--cleanup=whitespace", "-F", message_abs)
            log_abs = f"{self.run_abs}/commit-{self.attempts}.log"
            tick = self.listener.tick
            if text := run_git(self.repo, "commit", *how_to, log_abs=log_abs, on_tick=tick):
                self.listener.message(f"`git commit` failed: {log_abs}")
                feedback = f"The gates passed, but `git commit` failed:\n\n{text}"
                return self._refuse("git commit", feedback, turn)
        return self._pass(staged, notes), ""

    def _message(self, words: str) -> str:
        subject, _, rest = (self.options.message or self.options.task).partition("\n")
        subject = subject.lstrip("# ").strip() if rest else subject  # a heading, above text
        if len(subject) > _LONGEST_SUBJECT:
            subject, rest = f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", f"{subject}\n{rest}"
        parts = [subject, rest.strip(), words, f"Gitgates-Run: {self.run}"]
        return "\n\n".join(part for part in parts if part).replace("\0", "") + "\n"

    def _pass(self, staged: Staged, notes: list[str]) -> Ended:
        """Bring the commit to where it belongs; note everything else that has changed."""
        decision, tip, state = self.decision, self.repo.head, self.state
        notes += self.ground.hidden_note(staged)
        notes += [
            f"gate `{visit.result.gate}` checked nothing: "
            f"{visit.result.reason or visit.result.status}"
            for visit in decision.visits
            if visit.result.status in _UNCHECKED
        ]
        notes += self.ground.take(f"{self.run_abs}/merge.log", self.listener.tick)
        ref = state.ref if self.ground.home.git.resolve(state.ref) == tip else state.home_ref
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
        end = self.ground.settle if outcome == "interrupted" else self.ground.leave
        ref, notes = end()
        return self._end(Ended(outcome, why, failed_ref=ref, rolled_back=True), notes)

    def _end(self, ended: Ended, notes: list[str]) -> Ended:
        """Write the reports."""
        (status, words), client = OUTCOMES[ended.outcome], self.options.client.name
        notes, cost_usd = [*notes, *self.notes], constraints.cost_usd(self.turns)
        if self.limits.max_cost and self.turns and cost_usd is None:
            notes.append(f"max_cost was not checked: {client} does not report the cost of a turn")
        facts = {
            "task": self.options.task,
            "agent": client,
            "status": "failed" if status else "passed",
            "outcome": f"{words}: {ended.why}".splitlines()[0].removesuffix(": "),
            "commit": ended.commit,
            "failed_ref": ended.failed_ref,
            "rolled_back": ended.rolled_back,
            "notes": notes,
            "turns": self.turns,
            "attempts": self.attempts,
            "seconds": round(sum(turn["seconds"] for turn in self.turns), 1),
            "tokens": sum(turn.get("tokens", 0) for turn in self.turns),
            "cost_usd": cost_usd,
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
        self.decision = decision
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
        retries, keep_runs = self.hook.max_retries, self.config.keep_runs
        save(attempt, self.run_abs, max_retries=retries, keep_runs=keep_runs)

    def _phase(self, text: str, attempt: int) -> None:
        self.listener.phase(f"attempt {attempt} of {self.hook.attempts}: {text}")
