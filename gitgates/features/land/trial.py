"""Run the gates on a commit to land: in a private checkout, by its own configuration.

A gate that is proved to have passed on exactly this tree, by the same definition, does not run
again. It is a process of its own, so several can run at once; what it finds is one JSON document.
"""

from __future__ import annotations

import json
import time

from gitgates.core.clean import counted, first_few, plain_line
from gitgates.core.errors import BLOCKED, OK, ConfigError, GitgatesError
from gitgates.core.limits import parse_json
from gitgates.core.policy import functions_of
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, CHECKED_OUT, Event, RefUpdate
from gitgates.drivers.gate_run import event_report
from gitgates.drivers.git import HookCall, JudgedContent, Judgement, hook_of, plan_event
from gitgates.engine.plan.walk import unchecked_gates
from gitgates.engine.reuse.proved import ProvedTree
from gitgates.engine.reuse.signed_keys import maker_of
from gitgates.git.paths import tree_paths
from gitgates.git.settings import counted_in
from gitgates.report.artifacts import save_run
from gitgates.report.feedback import feedback
from gitgates.store import proofs
from gitgates.store.files import replace_file
from gitgates.worktree.setup import SetupError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision, GateResult, Plan
    from gitgates.engine.plan.listener import Listener
    from gitgates.git.repo import Repo

PUSH, COMMIT = "pre-push", "pre-commit"
PROVED = "proved"  # instead of a status
_SHORT = 7
_MOST_PATHS = 20


class LandTrial(Record):
    """A commit to test, for whom, and by which hook."""

    commit: str
    base: str  # that the target is at: what differs from it is landed
    target: str
    hook: str
    result_abs: str = ""  # the file for its outcome


class NothingToRunError(GitgatesError):
    """No gate is configured, so nothing would be checked."""


class TrialOutcome(Record):
    """How the gates have ended."""

    passed: bool
    why: str = ""
    gates: tuple[tuple[str, str, float], ...] = ()  # name, status, seconds
    feedback: str = ""
    weakened: str = ""  # what weakens the checks in what is landed
    error: int = 0  # the exit status of what is no fault of the commit


def run(trial: LandTrial, repo: Repo, listener: Listener) -> int:
    """Test a commit, and write how that has ended. Raises: OSError where it cannot be written."""
    try:
        outcome = _TrialRun(trial, repo, listener).outcome()
    except (ConfigError, SetupError, NothingToRunError) as error:
        outcome = TrialOutcome(passed=False, why=error.message, feedback=str(error))
    except GitgatesError as error:
        outcome = TrialOutcome(passed=False, why=error.full_message, error=error.exit_status)
    replace_file(trial.result_abs, json.dumps(outcome._asdict()).encode())
    return OK if outcome.passed else outcome.error or BLOCKED


def read(content: bytes | None) -> TrialOutcome | None:
    """Return an outcome that was written; None if there is none."""
    if not content:
        return None
    row = parse_json(content)
    return TrialOutcome(**{**row, "gates": tuple(map(tuple, row["gates"]))})


def preview(trial: LandTrial, repo: Repo, listener: Listener) -> dict[str, str]:
    """Return gate → whether it would run. Raises: GitgatesError where none could."""
    prepared = _TrialRun(trial, repo, listener)
    prepared.prepare()
    ends = {name: f"proved: {result.origin.reused}" for name, result in prepared.proved.items()}
    ends |= {s.gate.name: f"skipped: {s.skip}" for s in prepared.plan.steps if s.skip}
    return {name: ends.get(name, "runs") for name in prepared.plan.listed}


class _TrialRun:
    """The gates of one commit."""

    call: HookCall
    plan: Plan
    proved: dict[str, GateResult]  # by gate

    def __init__(self, trial: LandTrial, repo: Repo, listener: Listener) -> None:
        self._trial, self._repo, self._listener = trial, repo.as_stored, listener
        self._tree = self._repo.git.resolve(f"{trial.commit}^{{tree}}")
        self._paths, self._deleted = tree_paths(self._repo.git, trial.base, self._tree)

    def prepare(self) -> None:
        """Plan the gates; find those that are proved. Raises: NothingToRunError, GitgatesError."""
        trial, repo = self._trial, self._repo
        place = f"in {trial.commit[:_SHORT]}, which must land on `{trial.target}`"
        config = counted_in(repo, repo.git, {trial.commit: place}, None)[trial.commit].config
        gates = hook_of(config, trial.hook).gates or hook_of(config, COMMIT).gates
        if not (config and gates):
            lacks = f"no gates for {trial.hook}" if config else "no [tool.gitgates]"
            raise NothingToRunError(f"it has {lacks}, so nothing was checked")
        ref = f"refs/heads/{trial.target}"
        refs = (RefUpdate(ref, trial.commit, ref, trial.base),)
        event = Event("git", PUSH, repo.root_abs, self._paths, refs, deleted=self._deleted)
        self.call = HookCall(event, repo, self._listener, gates)
        self.call.skips = {}  # of whoever works on the queue: nothing lands untested for that
        # A failure is nobody's fault before it has happened twice.
        again = (g if g.schedule.retry is not None else g.changed(retry=1) for g in config.gates)
        self.call.configure(config._replace(gates=tuple(again)))
        self.plan = plan_event(self.call, event, CHECKED_OUT)
        proofs_there = ProvedTree(repo, self._tree, trial.base, self._listener.message)
        passes = {
            s.gate.name: proofs_there.find(s.gate, config) for s in self.plan.steps if not s.skip
        }
        self.proved = {name: result for name, result in passes.items() if result}

    def outcome(self) -> TrialOutcome:
        """Run the gates that are not proved. Raises: as `prepare`, and what policies raise."""
        began_s = time.time()
        self.prepare()
        call = self.call
        earlier = {(name, 0): result for name, result in self.proved.items()}
        call.options = call.options._replace(earlier=earlier)
        content = JudgedContent(call.event, CHECKED_OUT, self._trial.commit)
        call.judge(Judgement(call.event, call.config, (content,)))
        if call.errors:
            raise call.errors[0]
        decision, plan = call.decision, call.plan or self.plan
        if decision is None:
            raise NothingToRunError(call.note)
        save_run(decision, plan, call.config, began_s)
        self._record(decision, plan)
        why = decision.reason if decision.verdict >= BLOCK else ""
        if (idle := unchecked_gates(decision)) and not why:
            why = f"nothing was checked by `{'`, `'.join(idle)}`"
        ends = tuple(
            (each.gate, PROVED if each.gate in self.proved else each.status, each.duration_s)
            for each in (visit.result for visit in decision.visits)
        )
        text = self._feedback(decision, plan, why) if why else ""
        base = self._repo.git.resolve(f"{self._trial.base}^{{tree}}")
        looks = functions_of(call.config, "weakened_between")
        weakened = "; ".join(look(self._repo, call.config, base, self._tree) for look in looks)
        return TrialOutcome(not why, why=why, gates=ends, feedback=text, weakened=weakened)

    def _record(self, decision: Decision, plan: Plan) -> None:
        """Record how gates have ended that ran here: they have seen exactly this tree."""
        gates = {step.gate.name: step.gate for step in plan.steps}
        fields = {
            "content": self._tree,
            "hook": PUSH,
            "root_abs": self._repo.root_abs,
            "base": self._trial.base,
            "config": self.call.config.digest if decision.verdict < BLOCK else "",
        }
        maker = maker_of(plan.event, self._repo.env)
        rows = [
            proofs.proof_of(
                gates[each.gate],
                each,
                sharing=proofs.Sharing(
                    each.origin.shared,
                    "" if each.origin.action_digest or each.changed_paths else "1",
                    maker,
                ),
                **fields,
            )
            for each in (visit.result for visit in decision.visits)
            if each.status in ("passed", "failed") and not each.origin.reused and each.gate in gates
        ]
        try:
            proofs.append(self._repo.shared_state_abs, rows)
        except OSError as error:
            self._listener.message(f"the results were not recorded: {error.strerror}")

    def _feedback(self, decision: Decision, plan: Plan, why: str) -> str:
        """Return the report in the form that agents get, with what was merged."""
        trial, paths = self._trial, (*self._paths, *self._deleted)
        names = first_few([*map(plain_line, paths)], _MOST_PATHS)
        place = f"merged on `{plain_line(trial.target)}` at {trial.base[:_SHORT]}"
        what = f"The gates ran on {trial.commit[:_SHORT]}, {place}."
        changed = f" It changes {counted(len(paths), 'path')}: {names}." if paths else ""
        report = event_report(decision, plan, root_abs=self._repo.root_abs)
        report_text = feedback(report) if report.findings else why
        return f"{what}{changed}\n\n{report_text}\nThen commit, and run `gitgates land` again."
