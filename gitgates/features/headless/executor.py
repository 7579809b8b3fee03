"""Run an agent until the gates of the `headless` hook pass, then commit; else roll back.

The end of each turn is an event of the kind `turn-end`, which the same policies decide as in an
interactive session. Their feedback becomes the agent's next prompt.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import Channels, Payload
from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.types import ALLOW, BLOCK, WARN, Command, Decision, GateResult, Visit
from gitgates.engine.command import with_hook
from gitgates.features.headless import commit, constraints, limits
from gitgates.features.headless.defaults import HOOK
from gitgates.features.headless.history import own_commits, paths_in_commits
from gitgates.features.headless.notes import (
    UNCHECKED,
    configured,
    differing,
    git_settings,
    head_notes,
    protected,
    unchecked_notes,
)
from gitgates.features.headless.outcomes import OUTCOMES, Ended
from gitgates.features.headless.resume import save_conversation
from gitgates.features.headless.turn import (
    RUN_NAME,
    run_process,
    run_turn,
    why_unchanged,
    without_earlier,
)
from gitgates.git.listing import list_paths
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.hosts.headless import Turn
from gitgates.report.artifacts import add_headless, read_result, save
from gitgates.report.result import AttemptReport, last_decision, turn_cost
from gitgates.session.breaker import BLOCKED, EXHAUSTED, PASSED
from gitgates.session.call import Call
from gitgates.session.driver import decide_alone
from gitgates.worktree import checkpoint
from gitgates.worktree.isolate import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.engine.listener import Listener
    from gitgates.features.headless.commit import Prepared
    from gitgates.features.headless.outcomes import HeadlessOptions
    from gitgates.git.repo import Repo
    from gitgates.worktree.checkpoint import Checkpoint

_CAN = Channels(deny=True, block=True, stop=True, context=True)
_MOST_FAILED_TURNS = 2  # an agent that crashes, or changes nothing
_MOST_CHANGED = 3  # how often gates run because one of them has changed files
_LONGEST_SUBJECT = 72  # as git's own documentation has it: more is cut off in many places
CUT_SHORT = (
    "Your last turn was ended, because {}. Your changes are still there. Continue the task, "
    "and leave nothing running in the background. If everything is done, end your turn."
)
CUT_NOTE = "the time limit ended the agent's last turn; the gates checked what it had done"
_COMMIT_S = 1800.0  # for the hooks of a commit


class Executor:
    """One run: turns of the agent, attempts, and the commit or the rollback."""

    def __init__(
        self,
        repo: Repo,
        config: Config,
        settings: HeadlessOptions,
        *,
        run_abs: str,
        listener: Listener,
    ) -> None:
        self.repo, self.config, self.settings = repo, config, settings
        self.run_abs, self.run = run_abs, os.path.basename(run_abs)
        self.listener = listener
        self.hook = next(hook for hook in config.hooks if hook.name == HOOK)
        self.turns: list[dict[str, Any]] = []
        self.session = settings.session  # of the agent
        self.denied = 0
        self.failed_turns = 0
        self.cut_short = False  # the gates look at what a turn had done when its time was up
        self.waits = 0  # in a row, for a client that failed for a passing reason
        self.attempts = 0
        self.ends_at = time.monotonic() + settings.budget_s
        # A child's hooks leave the end of its turns to us; the guards before its tools stay.
        self.env = {**repo.env, RUN_NAME: self.run}

    def begin(self, branch: str) -> Checkpoint:
        """Take the checkpoint, then switch to a new branch if there is to be one.

        Raises: GitError, StateError; then nothing has changed.
        """
        self.protected, self.git_settings = self._protected(), git_settings(self.repo)
        self.configured, self.branch = configured(self.repo), branch
        self.point = checkpoint.take(self.repo, self.run, apart=self.settings.apart)
        if branch:
            try:
                self.repo.git.out("switch", "-q", "-c", branch)
            except GitError:
                checkpoint.drop(self.point, self.repo)
                raise
        return self.point

    def execute(self) -> Ended:
        """Run to the end: commit, or keep the agent's work and roll back.

        Raises: Interrupted after a signal, GitgatesError for errors that are not the agent's; then
        nothing is rolled back, and the checkpoint stays.
        """
        decide_alone(self._call("session-start", ""))
        decide_alone(self._call("prompt", ""))
        prompt = self.settings.first_prompt or self.settings.task
        turn = Turn()
        self.judged = self._bring_back() or self._content()
        while True:
            if time.monotonic() >= self.ends_at:
                return self._check_last(turn, "out-of-time")
            if over := limits.over_cost(self.turns, constraints.settings_of(self.config).max_cost):
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

    def _bring_back(self) -> tuple[object, ...]:
        """Bring back the work of an earlier run; return the content before that, or nothing."""
        if not self.settings.work:
            return ()
        before = self._content()
        self.repo.git.out("apply", "--whitespace=nowarn", stdin=self.settings.work)
        return before

    def _save_conversation(self) -> None:
        turns = [*self.settings.earlier_turns, *self.turns]
        conversation = {
            "task": self.settings.task,
            "agent": self.settings.client.name,
            "session": self.session,
            "root_abs": self.repo.root_abs,
            "turns": [turn for turn in turns if turn.get("session") == self.session],
        }
        save_conversation(self.run_abs, conversation)

    def _waits_for(self, turn: Turn) -> bool:
        """Wait if a turn failed for a reason that may pass; return whether to repeat it."""
        settings = constraints.settings_of(self.config)
        if not limits.is_passing(turn.error) or self.waits >= settings.client_retries:
            self.waits = 0
            return False
        self.waits += 1
        wait_s = limits.wait_s(self.waits, settings.retry_wait_s)
        wait_s = min(wait_s, max(self.ends_at - time.monotonic(), 0.0))
        self.listener.message(f"that may pass: the turn is repeated in {wait_s:.0f} s")
        limits.wait(wait_s, self.listener.tick)
        return True

    def _content(self) -> tuple[object, ...]:
        """Return the content of all files, HEAD and branch, to detect what a turn changed."""
        listing = list_paths(self.repo)
        paths = checkpoint.read_paths(self.repo, listing)
        return (
            {path: content[:2] for path, content in paths.items()},
            self._heads(),
            protected(self.repo, listing),
        )

    def _judge(self, turn: Turn) -> tuple[Ended | None, str]:
        """Check one attempt; return the result of the run, or the next prompt."""
        commits = own_commits(self.point, self.repo)
        changed = paths_in_commits(commits, self.repo.git)
        paths = tuple(sorted(changed.union(checkpoint.compare(self.point, self.repo).paths)))
        self.attempts += 1
        self.failed_turns = 0
        self._phase("gates", self.attempts)
        if violations := self._violations(paths):
            for violation in violations:
                self.listener.message(violation)
            self.denied += bool(
                constraints.denied_paths(constraints.settings_of(self.config), paths)
            )
            if self.denied > 1:
                return self.give_up("denied"), ""
            head = self.point.head
            text = constraints.prompt_for(violations, has_commits=bool(commits), head=head)
            return self._refuse("constraints", text, turn)
        prepared, moved_from = commit.prepare(self.point, self.repo), self._heads()
        for _ in range(_MOST_CHANGED):
            outcome, text = self._ask_policies(turn, prepared)
            if self._heads() != moved_from:
                why = "" if self.settings.keeps else "HEAD was restored"
                return self.give_up("moved", why), ""
            after = commit.prepare(self.point, self.repo, name="after.index")
            if outcome != PASSED or not commit.written(prepared, after, fixers=self._fixes()):
                break
            prepared = commit.prepare(self.point, self.repo)
            self.listener.message("a gate changed files: the gates run again on the result")
        else:
            return self.give_up("unsettled"), ""
        if outcome == PASSED:
            return self._commit(turn, prepared)
        if outcome == BLOCKED:
            return None, text
        return self.give_up(outcome), ""

    def _violations(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        limits = constraints.settings_of(self.config)
        lines = commit.changed_lines(self.point, self.repo) if limits.max_lines else 0
        counted = [turn["tokens"] for turn in self.turns if "tokens" in turn]
        tokens = sum(counted) if counted else None
        violations = constraints.violations(limits, paths=paths, lines=lines, tokens=tokens)
        if changed := differing(self.protected, self._protected()):
            violations += (f"must not change during the run: {', '.join(changed)}",)
        head_ref = self._heads()[1].strip()
        return violations + constraints.misplaced(self.point, head_ref, self.branch)

    def _wanted_ref(self) -> str:
        """Return the branch that the commit belongs to; empty where HEAD was detached."""
        return f"refs/heads/{self.branch}" if self.branch else self.point.branch

    def _fixes(self) -> bool:
        """Return whether a gate is there to write files."""
        return any(gate.writes for gate in self.config.gates if gate.name in self.hook.gates)

    def _heads(self) -> tuple[str, str]:
        ref = self.repo.git.ask("symbolic-ref", "-q", "HEAD")
        return self.repo.head, ref.stdout.decode()

    def _protected(self) -> dict[str, str]:
        return protected(self.repo, list_paths(self.repo))

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
        call.has_limit = False
        call.config, call.run_abs, call.listener = self.config, self.run_abs, self.listener
        return call

    def _ask_policies(self, turn: Turn, prepared: Prepared) -> tuple[str, str]:
        """Run the gates; return the outcome, and the feedback for the agent.

        Uncommitted changes of tracked files from before the run are stashed meanwhile.
        """
        prepared_repo = self.repo._replace(env=prepared.git.env)
        with Isolation(prepared_repo, self.listener.message, hides=True) as isolation:
            call = self._call("turn-end", turn.text)
            call.read()
            before = sum(round_.hook == HOOK for round_ in call.session.rounds)
            verdict = decide_alone(call)
        for note in isolation.notes:
            self.listener.message(note)
        rounds = [round_ for round_ in call.session.rounds if round_.hook == HOOK]
        outcome = "stopped" if verdict.level >= BLOCK else "unchecked"
        if len(rounds) > before:
            outcome = rounds[-1].outcome
        if outcome == PASSED and verdict.level >= BLOCK:
            outcome = BLOCKED  # a policy other than the gates has blocked
        visits = self._last_decision().visits
        if outcome == PASSED and all(visit.result.status in UNCHECKED for visit in visits):
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
            artifacts_dir=config.artifacts_dir,
            keep_runs=config.keep_runs,
        )

    def _commit(self, turn: Turn, prepared: Prepared) -> tuple[Ended | None, str]:
        """Commit what the run has changed; if git's hooks refuse that, the attempt has failed."""
        if not self.settings.commits:
            notes = commit.take_back(self.point, self.repo, self._wanted_ref())
            return self._pass(Ended("passed", notes=tuple(notes))), ""
        self._phase("commit", self.attempts)
        if prepared.mixed:
            paths = ", ".join(prepared.mixed)
            if self.settings.rolls_back:
                return self.give_up("mixed", f"{paths}; nothing was committed"), ""
            text = f"{paths}; nothing was committed, and the working tree is left unchanged"
            return self._end(Ended("mixed", text)), ""
        if prepared.is_empty:  # the agent has committed by itself
            return self._pass(Ended("passed", commit=self.repo.head)), ""
        message_abs = f"{self.point.folder_abs}/message"
        with open(message_abs, "w", encoding="utf-8", errors="replace") as file:
            file.write(self._message(turn))
        # Overrides the configured cleanup: `#12` does not begin a comment.
        how = ("-q", "--cleanup=whitespace", "-F", message_abs)
        argv = ("git", "-C", self.repo.root_abs, "commit", *how)
        command = Command(argv, self.repo.root_abs, prepared.git.env)
        log_abs = f"{self.run_abs}/commit-{self.attempts}.log"
        output, ending = run_process(command, log_abs, _COMMIT_S, self.listener.tick)
        if ending.exit_status != 0:
            text = output.decode("utf-8", "replace")
            self.listener.message(f"`git commit` failed: {log_abs}")
            feedback = f"The gates passed, but `git commit` failed:\n\n{text}"
            return self._refuse("git commit", feedback, turn)
        return self._pass(Ended("passed", commit=self.repo.head)), ""

    def _pass(self, ended: Ended) -> Ended:
        """Have the index follow the commit; say what else is not as it was."""
        notes = [*ended.notes, *([CUT_NOTE] if self.cut_short else [])]
        notes += commit.follow_commit(self.point, self.repo) if ended.commit else []
        notes += commit.keep_earlier(self.point, self.repo)
        notes += head_notes(self.point, self.repo)
        decision = self._last_decision()
        notes += unchecked_notes(decision.visits)
        if decision.verdict == WARN:
            ended = ended._replace(outcome="warned", why=decision.reason)
        if configured(self.repo) != self.configured:
            notes.append("the configuration of gitgates was changed; the previous one was used")
        return self._end(ended._replace(notes=self._not_own(notes)))

    def _not_own(self, notes: list[str]) -> tuple[str, ...]:
        """Return notes without those on the branch that was made for the run."""
        prefix = f"refs/heads/{self.branch} was" if self.branch else "\0"
        return tuple(note for note in notes if not note.startswith(prefix))

    def _message(self, turn: Turn) -> str:
        subject, _, rest = self.settings.message.partition("\n")
        subject = subject or " ".join(self.settings.task.split())
        if len(subject) > _LONGEST_SUBJECT:
            subject, rest = f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", f"{subject}\n{rest}"
        words = f"{CUT_NOTE[0].upper()}{CUT_NOTE[1:]}." if self.cut_short else turn.text.strip()
        parts = [subject, rest.strip(), words, f"Gitgates-Run: {self.run}"]
        return "\n\n".join(part for part in parts if part).replace("\0", "") + "\n"

    def give_up(self, outcome: str, why: str = "") -> Ended:
        """Keep the agent's work under a ref, and roll back unless disabled."""
        if not read_result(self.run_abs):  # no attempt, or one in which no gate ran
            reason = why or OUTCOMES[outcome][1]
            self._save(Decision(BLOCK, reason=reason), "could-not-run", "")
        if self.settings.keeps:
            failed_ref = commit.keep_failed(self.point, self.repo)
            return self._end(Ended(outcome, why, failed_ref=failed_ref))
        self.listener.phase("rolling back")
        try:
            failed_ref, notes = commit.keep_and_roll_back(self.point, self.repo)
        except GitgatesError as error:
            hint = f"gitgates recover --roll-back {self.run}"
            raise GitError(
                f"the rollback failed: {error.message}",
                f"The checkpoint is in {self.point.folder_abs}. Try again with: {hint}",
            ) from error
        if self.branch:
            self.repo.git.ask("branch", "-q", "-D", self.branch)  # what was on it is kept
        ended = Ended(outcome, why, failed_ref=failed_ref, rolled_back=True)
        return self._end(ended._replace(notes=self._not_own(notes)))

    def _end(self, ended: Ended) -> Ended:
        """Write the reports."""
        status, words = OUTCOMES[ended.outcome]
        before = {**self.protected, **self.git_settings}
        changed = differing(before, {**self._protected(), **git_settings(self.repo)})
        if changed:
            note = f"changed during the run, and not restored: {', '.join(changed)}"
            ended = ended._replace(notes=(*ended.notes, note))
        most_usd, client = constraints.settings_of(self.config).max_cost, self.settings.client.name
        cost_notes = limits.cost_notes(self.turns, most_usd, client)
        ended = ended._replace(notes=(*ended.notes, *cost_notes))
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
        notes = add_headless(
            self.run_abs,
            facts,
            shared_state_abs=self.repo.shared_state_abs,
            artifacts_dir=self.config.artifacts_dir,
            root_abs=self.repo.root_abs,
            step_summary_abs=self.repo.env.get("GITHUB_STEP_SUMMARY", ""),
        )
        return ended._replace(attempts=self.attempts, notes=(*ended.notes, *notes))

    def _phase(self, text: str, attempt: int) -> None:
        self.listener.phase(f"attempt {attempt} of {self.settings.max_retries + 1}: {text}")
