"""Reuse earlier runs' passes: a gate whose inputs are all unchanged need not run again.

What a gate reads is observed; if it cannot be, it runs, or counts by what is declared. Only
passes are reused, and a failure ends those before it.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.core.types import BY_FILE, DECLARED
from gitgates.engine.plan.plan import AUDIT, OFF, REUSE
from gitgates.engine.reuse.declared import Declarations
from gitgates.engine.reuse.observing import GateObserver, ObserverContext
from gitgates.engine.reuse.visible_content import VisibleContent
from gitgates.observed.runs import ObservedRun
from gitgates.store import proofs
from gitgates.store.files import lock_file, make_folder, remove_file
from gitgates.store.proofs import Proof, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.core.types import Command, Decision, Gate, GateResult, Plan, Step
    from gitgates.engine.reuse.declared import Declaration
    from gitgates.git.repo import Repo
    from gitgates.observed.unchanged import Dependencies


class Candidate(Record):
    """What is reused of a gate, and what a pass of the rest will prove."""

    rest: Step | None = None  # what is left to run; None: nothing
    reused: str = ""  # where the passes come from that are reused, for people
    observer: GateObserver | None = None  # of the rest; None: it is not observed
    declared: Declaration | None = None  # of the rest; None: its pass proves nothing by content
    why_not: str = ""  # why nothing is reused
    waits: bool = False  # another process is running the same; ask again
    claim: tuple[str, int] = ("", -1)  # the lock that tells others that this one does
    shared: str = ""  # keys of the pass on any machine, if others' passes count
    maker: str = ""  # who made what is reused, or is going to make the rest; as in a Proof
    action_digest: str = ""  # what ran on a server, of the pass that is reused; empty: it ran here


class Reuse:
    """What one run may reuse, and what it proves for later ones."""

    remote: Any = None  # the server that gates may run on: see engine/run/remote.py

    def __init__(
        self,
        plan: Plan,
        repo: Repo,
        checkout: Repo | None,
        say: Callable[[str], None],
    ) -> None:
        self._hook, self._repo, self._checkout, self._say = plan.event.name, repo, checkout, say
        self._content = self._look()
        self._place = ObserverContext(repo, checkout)
        self._is_stale = False  # whether a gate has run since the content was looked at
        self._passed: list[tuple[Candidate, GateResult]] = []  # to be recorded
        self._is_audit = repo.env.get(REUSE) == AUDIT
        self._is_off = repo.env.get(REUSE) == OFF  # then only failures count
        self._awaited: dict[str, tuple[str, float]] = {}  # gate → lock of another run, until when
        self._explained: set[str] = set()  # gates whose passes cannot be reused

    def look_up(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Candidate:
        """Return which passes there are already, and what is left to run.

        If another process is running the same, its result is waited for, as long as the gate
        may take.
        """
        if self._is_off:
            return self._for_a_failure(step, make_commands)
        self.record()  # whoever waits for those may be the one that is waited for
        awaited = self._awaited.get(step.gate.name)
        if awaited and self._is_held(*awaited):
            return Candidate(rest=step, waits=True)
        candidate = self._find(step, make_commands)
        lock_abs = self._lock_abs(candidate)
        until = awaited[1] if awaited else time.monotonic() + step.gate.schedule.timeout_s
        if candidate.rest is None or not lock_abs or time.monotonic() >= until:
            return candidate
        try:
            make_folder(os.path.dirname(lock_abs))
            is_new = not os.path.exists(lock_abs)
            lock_fd = lock_file(lock_abs)
        except OSError:
            return candidate
        if lock_fd < 0:
            self._awaited[step.gate.name] = lock_abs, until
            return Candidate(rest=step, waits=True)
        claimed = candidate._replace(claim=(lock_abs, lock_fd))
        # Who held the lock a moment ago may have recorded a pass.
        if not is_new and (candidate := self._find(step, make_commands)).rest is None:
            self.give_up(claimed)
            return candidate
        return claimed

    def give_up(self, candidate: Candidate) -> None:
        """Release the lock of a candidate that does not run now; look at the content again."""
        self._is_stale = True
        if candidate.observer:
            candidate.observer.discard()
        _release(candidate)

    def depends(self, candidate: Candidate) -> Dependencies | None:
        """Return what a gate depended on, once its commands have ended; None: not observed.

        If its result does not count, that is remembered, and said.
        """
        observer = candidate.observer
        if observer is None or not observer.is_traced():
            return None
        try:
            depends = observer.depends()
            if depends.spoilt:
                why = observer.why_not_here() or depends.spoilt
                self._say(f"{observer.gate.name}: runs again, without strace: {why}")
                self._keep(candidate, depends._replace(spoilt=why), 0.0)
        except OSError as error:
            self._say(f"what {observer.gate.name} reads is not known: {error.strerror}")
            observer.discard()
            return None
        return depends

    def ended(
        self, candidate: Candidate | None, result: GateResult, depends: Dependencies | None
    ) -> None:
        """Take note of a gate that has run, here or elsewhere."""
        self._is_stale = True
        if not candidate:
            return
        is_pass = result.status == "passed" and not result.changed_paths
        if self._is_off and is_pass:
            return
        try:
            if is_pass and depends and not result.origin.action_digest:
                self._keep(candidate, depends, result.duration_s)
            elif not is_pass:
                self._has_failed(candidate, result)
        except OSError as error:
            self._say(f"the pass of {result.gate} was not recorded for reuse: {error.strerror}")
        if is_pass and candidate.declared:
            self._passed.append((candidate, result))
        else:
            _release(candidate)

    def record(self) -> None:
        """Record the passes of gates that have ended, if content is as before."""
        if not self._is_stale:
            return
        self._content = self._look(self._content)
        self._is_stale = False
        passed, self._passed = self._passed, []
        for candidate, result in passed:
            try:
                if (rest := candidate.rest) and candidate.declared:
                    why_not = self._declarations.difference(rest, candidate.declared, self._content)
                    if not why_not:
                        self._write(candidate, rest, result)
                    elif not candidate.observer:
                        self._explain(rest.gate, "was not recorded for reuse", why_not)
            except OSError as error:
                text = f"the pass of {result.gate} was not recorded for reuse: {error.strerror}"
                self._say(text)
            except GitgatesError:
                continue  # the next look-up explains it
            finally:
                _release(candidate)

    def finished(self, decision: Decision) -> Decision:
        """Return the decision of the run with what others may know of its passes."""
        return decision

    def close(self) -> None:
        """Record what is left."""
        self.record()
        self._place.close()

    def preview(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> str:
        """Return what a look-up finds now, for people: what is reused, or why nothing is."""
        candidate = self._find(step, make_commands)
        if candidate.reused:
            return candidate.reused
        if not (candidate.observer or candidate.declared):
            return f"impossible: {candidate.why_not}"
        return f"no: {candidate.why_not}" if candidate.why_not else "no pass yet"

    @property
    def _declarations(self) -> Declarations:
        return Declarations(self._repo, self._checkout, self.remote)

    def _look(self, earlier: VisibleContent | None = None) -> VisibleContent:
        return VisibleContent(self._repo, self._checkout, earlier)

    def _is_held(self, lock_abs: str, until: float) -> bool:
        """Return whether another process still runs the same, and may be waited for."""
        lock_fd = lock_file(lock_abs, flags=os.O_RDWR)
        if lock_fd < 0 and os.path.exists(lock_abs) and time.monotonic() < until:
            return True
        if lock_fd >= 0:
            os.close(lock_fd)
        self._is_stale = True
        self.record()
        return False

    def _lock_abs(self, candidate: Candidate) -> str:
        """Return the lock of a candidate; empty: nobody need wait for it."""
        if candidate.observer:
            name = digest(candidate.observer.key, self._place.root_abs)
        elif candidate.declared:
            name = digest(candidate.declared.seen, candidate.declared.key)
        else:
            return ""
        return f"{self._repo.shared_state_abs}/{proofs.FOLDER}/running/{name}"

    def _find(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Candidate:
        try:
            commands = make_commands(step._replace(paths=()) if is_by_file(step) else step)
            candidate = self._observed(step, commands)
            if candidate.rest and (step.gate.remote.allowed or not candidate.observer):
                candidate = self._declared(step, candidate, make_commands(step))
        except (GitgatesError, OSError) as error:
            why_not = error.message if isinstance(error, GitgatesError) else str(error)
            candidate = Candidate(rest=step, why_not=why_not)
        if candidate.rest and not (candidate.observer or candidate.declared):
            self._explain(step.gate, "cannot be reused", candidate.why_not)
        return candidate

    def _for_a_failure(
        self, step: Step, make_commands: Callable[[Step], list[Command]]
    ) -> Candidate:
        """Return what identifies the passes that a failure ends, for a step that always runs."""
        try:
            commands = make_commands(step._replace(paths=()) if is_by_file(step) else step)
            observer = GateObserver(step.gate, commands, self._place)
            candidate = Candidate(rest=step, observer=observer)
            return self._declared(step, candidate, commands) if observer.why_not else candidate
        except (GitgatesError, OSError):
            return Candidate(rest=step)

    def _observed(self, step: Step, commands: list[Command]) -> Candidate:
        """Return the pass of a run that was observed, if all is as it was."""
        observer = GateObserver(step.gate, commands, self._place)
        run = observer.find()
        if observer.why_not and not run:
            return Candidate(rest=step, why_not=observer.why_not)
        rest, reused = step, ""
        if run and is_by_file(step):
            passed = observer.passed_files(step.paths)
            rest = step._replace(paths=tuple(path for path in step.paths if path not in passed))
            reused = f"{len(passed)} of {len(step.paths)} files" if passed else ""
        elif run:
            place = (
                f" in {run.depends.root_abs}"
                if run.depends.root_abs != self._place.root_abs
                else ""
            )
            reused = f"{run.hook}{place}, {proofs.age(run.time_s)}"
        if self._is_audit and reused:
            return Candidate(rest=step, reused=reused, observer=observer)
        maker = run.maker if run and reused else ""
        if reused and (not is_by_file(step) or not rest.paths):
            return Candidate(reused=reused, maker=maker)
        why_not = observer.difference
        return Candidate(rest=rest, reused=reused, observer=observer, why_not=why_not, maker=maker)

    def _declared(self, step: Step, observed: Candidate, commands: list[Command]) -> Candidate:
        """Return the pass by what is declared, for a gate that is not observed."""
        if not (step.gate.remote.allowed or step.gate.reuse.mode in (DECLARED, BY_FILE)):
            return observed
        declared = self._declarations.of(step, commands, self._content)
        proof = self._declarations.find(step.gate, declared)
        # A gate that runs here is believed by what was seen, if it can be.
        if proof and (proof.action_digest or not observed.observer):
            place = f" in {proof.root_abs}" if proof.root_abs != self._repo.root_abs else ""
            on_word = "" if proof.action_digest else ", as declared"
            return Candidate(
                rest=step if self._is_audit else None,
                declared=declared if self._is_audit else None,
                reused=f"{proof.hook}{place}, {proofs.age(proof.time_s)}{on_word}",
                shared=proof.sharing.key,
                maker=proof.sharing.maker,
                action_digest=proof.action_digest,
            )
        return observed._replace(declared=declared)

    def _keep(self, candidate: Candidate, depends: Dependencies, duration_s: float) -> None:
        """Keep what a run depended on; say why it cannot be reused, once."""
        observer = candidate.observer
        if not (observer and candidate.rest):
            return
        run = ObservedRun(
            time_s=time.time(),
            duration_s=duration_s,
            hook=self._hook,
            maker=candidate.maker,
            environment={},
            depends=depends,
            files=frozenset(),
        )
        paths = candidate.rest.paths if is_by_file(candidate.rest) else ()
        why_not = observer.keep(run, paths)
        if not depends.spoilt:
            self._explain(observer.gate, "cannot be reused", why_not)

    def _has_failed(self, candidate: Candidate, result: GateResult) -> None:
        """End the passes on content that has failed now."""
        rest, declared = candidate.rest, candidate.declared
        if candidate.observer:
            candidate.observer.has_failed(rest.paths if rest and is_by_file(rest) else ())
        if rest and declared and self._declarations.find(rest.gate, declared):
            self._append(candidate, result)

    def _explain(self, gate: Gate, what: str, why_not: str) -> None:
        """Say once why passes of a gate are not reused."""
        if why_not and gate.name not in self._explained:
            self._explained.add(gate.name)
            self._say(f"the pass of {gate.name} {what}: {why_not}")

    def _write(self, candidate: Candidate, _rest: Step, result: GateResult) -> None:
        # What a gate was seen to read is recorded already, unless it ran elsewhere.
        has_key = candidate.declared and candidate.declared.key
        if has_key and (result.origin.action_digest or not candidate.observer):
            self._append(candidate, result)

    def _append(self, candidate: Candidate, result: GateResult) -> None:
        declared = candidate.declared
        if declared is None:
            return
        proof = Proof(
            gate=result.gate,
            content=declared.seen,
            key=declared.key,
            status=result.status,
            time_s=time.time(),
            duration_s=result.duration_s,
            hook=self._hook,
            root_abs=self._repo.root_abs,
            sharing=proofs.Sharing(candidate.shared, maker=candidate.maker),
            action_digest=result.origin.action_digest,
        )
        proofs.append(self._repo.shared_state_abs, [proof])


def is_by_file(step: Step) -> bool:
    """Return whether passes of a step are reused for each file."""
    return step.gate.reuse.mode == BY_FILE and bool(step.paths)


def _release(candidate: Candidate) -> None:
    lock_abs, lock_fd = candidate.claim
    if lock_fd >= 0:
        remove_file(lock_abs)
        os.close(lock_fd)
