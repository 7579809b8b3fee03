"""Detect what gates change: the files that an event is about, and the index being committed.

A gate that changes files without declaring it (`writes`) has not checked what is being committed;
nor have gates that ran beside it.
"""

from __future__ import annotations

from gitgates.core.types import BLOCK
from gitgates.engine.plan.plan import action_to_repeat
from gitgates.engine.plan.walk import (
    BEFORE_A_COMMIT,
    changed_meanwhile,
    conflicts_with_unstaged,
    undeclared,
    undeclared_staging,
)
from gitgates.git.index import CommittedIndex, Contents, WatchedFiles, named_index, restage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision, Gate, GateResult, Plan
    from gitgates.git.repo import Repo
    from gitgates.worktree.isolate import Isolation


class GateChanges:
    """What changed while one gate ran."""

    def __init__(self, gate: Gate, paths: tuple[str, ...], *, is_remote: bool) -> None:
        self.gate = gate
        self.is_remote = is_remote  # it runs on a server, and cannot be the cause
        self.paths = paths  # that the gate is given
        self.before: Contents | None = None  # of a gate that writes
        self.undeclared: set[str] = set()  # although the gate has no `writes`
        self.concurrent: set[str] = set()  # gates that ran at the same time, and may be the cause


class ChangeDetector:
    """Watches the files of one run, and the index that git commits from."""

    def __init__(
        self,
        plan: Plan,
        repo: Repo,
        isolation: Isolation,
        *,
        checkout: Repo | None,
        as_committed: bool,
        began_ns: int,
    ) -> None:
        self._plan = plan
        self._isolation = isolation
        self._repo = checkout or repo  # where gates run
        self._running: list[GateChanges] = []
        self._is_commit = plan.event.host == "git" and plan.event.name in BEFORE_A_COMMIT
        self._again = action_to_repeat(plan.event)  # then a gate may not change the event's files
        self._files = self._event_files()
        self._altered: set[str] = set()  # what changed while gates ran that may not change it
        # What somebody else changed before any gate ran: they would check something else.
        self._strays: tuple[str, ...] = ()
        self.index: CommittedIndex | None = None  # if it is not simply the worktree's own
        if not checkout:  # which has an index of its own
            if as_committed:
                # Then the files are as in the index, as git has just said.
                self._strays = self._files.written_since(began_ns, isolation.hidden)
            self.index = self._committed_index(repo)

    def _event_files(self) -> WatchedFiles:
        """Return the event's files that gates must leave as they are."""
        event = self._plan.event
        is_watched = self._again or event.payload
        paths = (self._isolation.staged or event.paths or ()) if is_watched else ()
        return WatchedFiles(self._repo.git, paths)

    def _committed_index(self, repo: Repo) -> CommittedIndex | None:
        copies = any(step.gate.program.git_env == "commit" for step in self._plan.steps)
        _named_abs, is_other = named_index(repo)
        if self._is_commit or copies or is_other:
            return CommittedIndex(repo, copies=copies)
        return None

    def close(self) -> None:
        """Remove the temporary copies."""
        if self.index:
            self.index.remove()

    def why_none_starts(self) -> str:
        """Return why no gate may start: the content to check is not in place."""
        return changed_meanwhile(self._strays, self._again) if self._strays else ""

    def begin(self, gate: Gate, paths: tuple[str, ...], *, is_remote: bool) -> GateChanges:
        """Record that a gate starts, here or on a server."""
        self._files.read()
        changes = GateChanges(gate, paths, is_remote=is_remote)
        if gate.program.writes:
            changes.before = Contents(self._repo.git, self._watched(paths))
        self._running.append(changes)
        return changes

    def finish(self, changes: GateChanges, result: GateResult) -> GateResult:
        """Return the result of a gate that has ended, with the files that it changed."""
        if not changes.gate.program.writes:
            self._note()
        self._running.remove(changes)
        staged = self._staged_by(changes.gate)
        if changes.before:
            result = self._detect_file_changes(changes, result, changes.before)
            self._files.accept()
        result = _judge_staging(changes.gate, self._judge(changes, result), staged)
        if result.status in ("passed", "failed"):  # it ended by itself
            for path in result.changed_paths:
                self._isolation.changed_by[path] = changes.gate.name, changes.gate.program.writes
        return result

    def drop(self, changes: GateChanges) -> None:
        """Forget a gate that has not run after all."""
        self._running.remove(changes)

    def judge_run(self, decision: Decision) -> Decision:
        """Block if somebody else changed, or may have changed, the content to check."""
        reason = changed_meanwhile(self._strays or self._altered, self._again)
        # Even if no gate blocks for that, others have passed on different content.
        if self._strays or (self._altered and decision.verdict < BLOCK):
            return decision._replace(verdict=max(decision.verdict, BLOCK), reason=reason)
        return decision

    def _note(self) -> None:
        """Record what changed since the last check; any running gate may have done it."""
        changed = set(self._files.changed())
        if changed and self._plan.event.with_untracked:  # caches and reports of gates among them
            changed &= set(self._repo.git.names("ls-files", "-z"))
        if not changed:
            return
        names = {changes.gate.name for changes in self._running if not changes.is_remote}
        for changes in self._running:
            changes.undeclared.update(changed)
            changes.concurrent |= names - {changes.gate.name}

    def _judge(self, changes: GateChanges, result: GateResult) -> GateResult:
        """Fail a gate without `writes` that changed the event's files."""
        if not changes.undeclared:
            return result
        if self._again:
            self._altered |= changes.undeclared
        if changes.is_remote:
            return result
        paths = tuple(sorted(changes.undeclared))
        result = result._replace(changed_paths=paths)
        if not self._again:
            return result
        return _failed(result, undeclared(paths, changes.concurrent))

    def _watched(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return a gate's files with those that an agent wrote, which may be untracked."""
        return (*paths, *(self._files.paths if self._plan.event.payload else ()))

    def _detect_file_changes(
        self, changes: GateChanges, result: GateResult, before: Contents
    ) -> GateResult:
        """Detect what a fixer changed, and restage it if configured."""
        after = Contents(self._repo.git, self._watched(changes.paths))
        changed_paths = after.changed_since(before)
        result = result._replace(changed_paths=changed_paths)
        if not (changes.gate.program.restage and self._is_commit and result.status == "passed"):
            return result
        staged = set(changed_paths) & set(self._files.paths) - before.unstaged
        conflicting = self._isolation.conflicting(staged)
        restaged = restage(self._repo, tuple(sorted(staged - conflicting)))
        if self.index and restaged:
            self.index.take()
        reason = conflicts_with_unstaged(conflicting) if conflicting else result.reason
        return result._replace(restaged_paths=restaged, reason=reason)

    def _staged_by(self, gate: Gate) -> tuple[str, ...]:
        """Return the entries of the index being committed that a gate itself changed."""
        if not self.index or not self._is_commit:
            return ()
        staged = self.index.changed_paths()
        if staged and gate.program.writes:
            self.index.copy_back()
        elif staged:
            self.index.take()
        return staged


def _judge_staging(gate: Gate, result: GateResult, staged: tuple[str, ...]) -> GateResult:
    """Let only a gate that restages change what is being committed."""
    if not staged:
        return result
    result = result._replace(changed_paths=tuple(sorted({*result.changed_paths, *staged})))
    if gate.program.writes and gate.program.restage:
        return result._replace(restaged_paths=tuple(sorted({*result.restaged_paths, *staged})))
    return _failed(result, undeclared_staging(staged))


def _failed(result: GateResult, reason: str) -> GateResult:
    """Turn a pass into a failure with a reason; leave other results unchanged."""
    if result.status != "passed":
        return result
    return result._replace(status="failed", exit_status=None, reason=reason)
