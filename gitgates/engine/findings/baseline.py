"""The baseline of a failed gate: failures that do not count, because they are not new.

Accepted failures are in a file; others already existed at the merge base. How the gate ended there
is recorded, or it runs there, too. Failures in doubt count. Cold: loaded only when a gate with
`baseline` has failed. `features/gates/baseline.py` compares with the start of a session.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

from gitgates.config import BASELINE_FILE
from gitgates.core.clean import counted, plain, utf8
from gitgates.core.errors import ConfigError, GitgatesError
from gitgates.core.limits import parse_json
from gitgates.engine.findings.base import Base, checked_tree, find_base, merged_into
from gitgates.engine.findings.completeness import (
    read_signs,
    why_incomplete,
    why_several,
    why_stopped,
)
from gitgates.engine.findings.failures import MOST_FAILURES, MOST_RECOGNISED, number, recognise
from gitgates.engine.plan.plan import REUSE, is_given_paths
from gitgates.engine.plan.walk import describe
from gitgates.git.repo import without_git
from gitgates.store.files import read_or_empty, read_regular
from gitgates.store.proofs import append, definition_of, digest, of_content, proof_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import TypeAlias

    from gitgates.core.failure import Failure
    from gitgates.core.types import Gate, GateResult, Plan, Step
    from gitgates.git.repo import Repo

    # Gate → fingerprint → title, as it was when the failure was accepted.
    Accepted: TypeAlias = dict[str, dict[str, str]]

_LAST_OF_TOOLS = 125  # exit status; a shell adds 128 to a signal
_OPTIONS = ("PYTEST_ADDOPTS", "GOFLAGS")  # variables with options of tools
_GAP = re.compile(rb"\[\.\.\. \d+ bytes left out \.\.\.\]")  # ours, see proc/processes.py


class KnownFailures:
    """The failures of one gate, compared with those that do not count.

    `checkout`: the private checkout that the gate ran in, or None.
    """

    HOW = "failed; runs on"

    def __init__(self, step: Step, plan: Plan, repo: Repo, checkout: Repo | None) -> None:
        self._step, self._plan, self._repo, self._checkout = step, plan, repo, checkout
        self._now: tuple[Failure, ...] = ()
        self._accepted: Collection[str] = ()
        self._note = ""  # why none is accepted
        self.base = Base()
        self.is_due = False  # whether the gate must run on the base now

    def judge(self, result: GateResult) -> GateResult:
        """Return the result of a gate that failed: excused if none of its failures is new."""
        gate, root_abs = self._step.gate, (self._checkout or self._repo).root_abs
        now = failures_in(gate, result, root_abs, self._repo.env)
        if isinstance(now, str):
            return _unknown(result, now)
        if result.changed_paths:
            return _unknown(result, "it changed files")
        self._now = now
        try:
            accepted = (read_accepted(root_abs) or {}).get(gate.name, {})
        except ConfigError as error:
            return _unknown(result, error.message)
        if accepted and not self._is_known_to_git():
            self._note = f"; {BASELINE_FILE} does not count, as git does not know it: git add"
        else:
            self._accepted = accepted
        is_over = all(failure.fingerprint in self._accepted for failure in now)
        if is_over or gate.measures.baseline == "file" or self._plan.event.payload:
            return self._compare(result, ())
        try:
            why_not = self._find_base()
        except (GitgatesError, OSError) as error:
            why_not = str(error)
        if why_not:
            return self._compare(result, (), why_not)
        before = recorded_failures(gate, self._repo, self._base_content)
        if before is not None:
            return self._compare(result, before)
        self.is_due = True
        return result

    def judge_with_base(
        self, at_base: GateResult, base_root_abs: str, result: GateResult
    ) -> GateResult:
        """Return the same, with the result of the gate on the base, and where it ran."""
        self.is_due = False
        gate = self._step.gate
        passed = at_base.status == "passed"
        env = self._repo.env
        before = () if passed else failures_in(gate, at_base, base_root_abs, env)
        if isinstance(before, str):
            return self._compare(result, (), f"there, {before}")
        pairs = tuple((failure.fingerprint, failure.title) for failure in before)
        proof = proof_of(
            gate,
            at_base,
            content=self._base_content,
            hook=self._plan.event.name,
            root_abs=self._repo.root_abs,
            base=self.base.commit,
            failures=pairs,
        )
        with suppress(OSError):  # then it runs there again, the next time
            append(self._repo.shared_state_abs, [proof])
        return self._compare(result, pairs)

    def _is_known_to_git(self) -> bool:
        """Return whether git tracks the file, if a commit or a push is judged."""
        if self._checkout or self._plan.event.host not in ("git", "pre-commit"):
            return True
        return bool(self._repo.git.out("ls-files", "--", BASELINE_FILE))

    @property
    def _base_content(self) -> str:
        """What the gate sees of the base: everything, or the paths passed to it."""
        tree, step = self.base.tree, self._step
        return digest(tree, *step.paths) if is_given_paths(step.gate) else tree

    def _find_base(self) -> str:
        """Set the base; return why there is none. Raises: GitgatesError or OSError."""
        checkout, event = self._checkout, self._plan.event
        if checkout:
            checkout = checkout._replace(env=without_git(checkout.env))
        merged = merged_into(event, self._repo)
        base = find_base((checkout or self._repo).git, event.base, merged)
        if base is None:
            return "there is no commit yet"
        if not base.commit:
            return base.why_none
        if base.tree == checked_tree(event, self._repo, checkout):
            return f"this is the content of {base.name}"
        self.base = base
        return ""

    def _compare(
        self, result: GateResult, before: tuple[tuple[str, str], ...], why_not: str = ""
    ) -> GateResult:
        """Return the result with its new failures. `why_not`: why earlier ones are unknown."""
        at_base = {fingerprint for fingerprint, _title in before}.difference(self._accepted)
        by_file = [each.fingerprint for each in self._now if each.fingerprint in self._accepted]
        by_base = [each.fingerprint for each in self._now if each.fingerprint in at_base]
        accepted = (*by_file, *by_base)
        is_known = {*accepted}
        new = [each for each in self._now if each.fingerprint not in is_known]
        old = (each for each in self._now if each.fingerprint in is_known)
        result = result.with_findings(accepted=accepted, failures=(*new, *old)[:MOST_FAILURES])
        summary = counted(len(accepted), "accepted failure")
        if by_file and by_base:
            summary += f": {len(by_base)} at {self.base.name}, {len(by_file)} in {BASELINE_FILE}"
        else:
            summary += f" {'at ' + self.base.name if by_base else 'in ' + BASELINE_FILE}"
        if not new:
            return result._replace(reason=summary).with_findings(excused=summary)
        is_compared = self.base.commit or self._step.gate.measures.baseline == "file"
        reason = counted(len(new), "new failure" if is_compared and not why_not else "failure")
        reason += (f"; no baseline: {why_not}" if why_not else "") + self._note
        return result._replace(reason=f"{reason}; {summary}" if accepted else reason)


def _unknown(result: GateResult, why: str) -> GateResult:
    return result._replace(reason=f"no baseline: {why}")


def failures_in(
    gate: Gate, result: GateResult, root_abs: str, env: Mapping[str, str]
) -> tuple[Failure, ...] | str:
    """Return all failures of a gate that failed in `root_abs`, or why they are unknown."""
    if result.status != "failed" or not result.exit_status:
        return f"it {describe(result)}"
    if result.exit_status > _LAST_OF_TOOLS:
        return f"it ended with exit status {result.exit_status}, as after a crash"
    if not gate.measures.failures:
        return "`failures` does not say how to tell them apart"
    output = read_or_empty(result.log_abs) if result.dropped_bytes else result.output
    if not output or _GAP.search(output):
        return "its output is longer than its log (`max_log`)" if output else "it printed nothing"
    options = tuple((name, env[name]) for name in _OPTIONS if name in env)
    gate = gate.changed(env=(*options, *gate.program.env))  # of what it was run with
    try:
        return _recognised(gate, plain(output), root_abs, result.exit_status)
    except TimeoutError:
        return "its pattern `failures` takes too long"


def _recognised(
    gate: Gate, text: str, root_abs: str, exit_status: int
) -> tuple[Failure, ...] | str:
    signs = read_signs()
    if why := why_several(gate, text) or why_stopped(gate, text, signs):
        return why
    failures = recognise(text, gate, root_abs)
    if not failures:
        return "no failure is recognised in its output"
    if len(failures) >= MOST_RECOGNISED:
        return f"there are more than {MOST_RECOGNISED:,}"
    why = why_incomplete(gate, signs, text, failures=failures, exit_status=exit_status)
    return why or number(failures, gate)


def recorded_failures(gate: Gate, repo: Repo, content: str) -> tuple[tuple[str, str], ...] | None:
    """Return how the same gate ended on some content, as fingerprints and titles.

    None if that is not recorded, or records are not to be used.
    """
    if repo.env.get(REUSE) == "0":
        return None
    key = gate.name, definition_of(gate)
    for proof in reversed(of_content(repo.shared_state_abs, content)):
        is_known = proof.status == "passed" or proof.failures
        if is_known and (proof.gate, proof.definition) == key:
            return proof.failures
    return None


_VERSION = 1
_HINT = "Take the entries of both sides of a merge, or restore the file: git restore"


def read_accepted(root_abs: str) -> Accepted | None:
    """Return the accepted failures of a working tree; None if it has no such file.

    Raises: ConfigError if the file cannot be read.
    """
    try:
        content = read_regular(os.path.join(root_abs, BASELINE_FILE))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{BASELINE_FILE}: cannot be read: {error.strerror}") from error
    return parse_accepted(content)


def parse_accepted(content: bytes) -> Accepted:
    """Return the accepted failures in the content of a file. Raises: ConfigError."""
    hint = f"{_HINT} {BASELINE_FILE}"
    try:
        document = parse_json(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{BASELINE_FILE}: is not JSON: {error}", hint) from error
    if not isinstance(document, dict) or document.pop("version", None) != _VERSION:
        text = f'{BASELINE_FILE}: expected an object with `"version": {_VERSION}`'
        raise ConfigError(text, "A file of a newer version needs a newer gitgates.")
    accepted: Accepted = {}
    for key, title in document.items():
        gate, _, fingerprint = key.rpartition(" ")
        if not (gate and fingerprint and isinstance(title, str)):
            text = f'{BASELINE_FILE}: got `{key}`, expected `"GATE FINGERPRINT": "TITLE"`'
            raise ConfigError(text, hint)
        accepted.setdefault(gate, {})[fingerprint] = title
    return accepted


def render_accepted(accepted: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the content of a file with these failures."""
    rows = sorted(
        (gate, title, fingerprint)
        for gate, titles in accepted.items()
        for fingerprint, title in titles.items()
    )
    lines = [f"  {_text(f'{gate} {mark}')}: {_text(title)},\n" for gate, title, mark in rows]
    return ("{\n" + "".join(lines) + f'  "version": {_VERSION}\n}}\n').encode()


def _text(text: str) -> str:
    return json.dumps(utf8(text), ensure_ascii=False)
