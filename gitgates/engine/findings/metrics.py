"""Numbers in the output of gates: found, compared, recorded for the content that was measured.

Cold: only a gate that names metrics loads this. A ratchet compares them with those of the merge
base. What has nothing to be compared with is no pass: its status is `unchecked`, unless the base
itself shows that there was nothing yet.
"""

from __future__ import annotations

import re

from gitgates.config.load import checked, load
from gitgates.core.clean import plain
from gitgates.core.errors import GitgatesError
from gitgates.core.policy import providers
from gitgates.core.record import lazy
from gitgates.core.types import Config
from gitgates.engine.findings.base import Base, checked_tree, find_base, merged_into
from gitgates.engine.plan.walk import describe
from gitgates.git.repo import without_git
from gitgates.git.settings import settings_in
from gitgates.proc.bounded import LIMIT_S, compute
from gitgates.store.proofs import append, definition_of, of_content, proof_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from gitgates.core.types import Gate, GateResult, Plan
    from gitgates.git.repo import Repo

MEASURE = "measure"
_DIGITS = 9  # of a difference; floats have 70.4 - 70.3 > 0.1
_NO_NUMBERS = ("timed-out", "killed", "not-started")
_MOST = 1e12
_SLOW = f"the patterns of its metrics took longer than {LIMIT_S:g} s on its output"


class Measurement:
    """The numbers of one gate, from its start to its end. `is_stopped`: nobody waits for them."""

    HOW = "measures"

    def __init__(
        self,
        gate: Gate,
        plan: Plan,
        repo: Repo,
        checkout: Repo | None,
        *,
        say: Callable[[str], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._gate, self._repo, self._hook = gate, repo, plan.event.name
        self._say, self._is_stopped = say, is_stopped
        self._commit = self._tree = self._trouble = ""
        self.base = Base()  # the content that its ratchet compares the numbers with
        self.is_due = False  # whether the gate must run on that now
        measured_repo = checkout._replace(env=without_git(checkout.env)) if checkout else repo
        self._git = measured_repo.git
        try:
            self._commit = self._git.resolve("HEAD^{commit}")
            self._tree = checked_tree(plan.event, repo, measured_repo if checkout else None)
            if gate.measures.ratchet:
                merged = merged_into(plan.event, repo)
                self.base = find_base(self._git, merged=merged) or Base()
        except (GitgatesError, OSError) as error:
            self._trouble = str(error)

    def judge(self, result: GateResult) -> GateResult:
        """Return the result of a gate with its numbers, failed if its ratchet does not hold.

        The numbers are recorded for the content that was measured.
        """
        if result.status not in ("passed", "unchecked", "failed"):
            return result
        numbers = find_numbers(self._gate, result.output, self._is_stopped)
        result = result.with_findings(metrics=numbers or {})
        if result.status != "failed":
            result = self._judge(result, is_slow=numbers is None)
        if numbers:
            try:
                self._record(result, numbers, Base(commit=self._commit, tree=self._tree))
            except OSError as error:
                self._say(f"the metrics of {result.gate} were not recorded: {error.strerror}")
        return result

    def _judge(self, result: GateResult, *, is_slow: bool) -> GateResult:
        """Return the result of a gate that passed, or had nothing to check."""
        reason = _SLOW if is_slow else ""
        if not self._gate.measures.ratchet:
            return result._replace(reason=reason or result.reason)
        if reason or self._trouble:
            reason = reason or f"its metrics cannot be compared: {self._trouble}"
            return result._replace(status="failed", exit_status=None, reason=reason)
        if not self._commit:
            return _begin(result, "no earlier commit found")
        if not self.base.commit:
            return _not_compared(result, self.base.why_none)
        if self.base.tree == self._tree:
            return result
        return self._compare(result, *self._recorded(self.base.tree))

    def judge_with_base(
        self, at_base: GateResult, _base_root_abs: str, result: GateResult
    ) -> GateResult:
        """Return the judged result of a gate that has also run on the base."""
        self.is_due = False
        numbers = find_numbers(self._gate, at_base.output, self._is_stopped)
        if numbers is None:
            at_base = at_base._replace(status="timed-out", reason=_SLOW)
        if numbers is None or at_base.status in _NO_NUMBERS:
            return _not_compared(result, f"at {self.base.name}, it {describe(at_base)}")
        try:
            self._record(at_base, numbers, self.base, MEASURE)
        except OSError as error:
            return _not_compared(result, f"metrics cannot be recorded: {error.strerror}")
        return self._compare(result, numbers, definition_of(self._gate))

    def _record(
        self, result: GateResult, numbers: Mapping[str, float], content: Base, hook: str = ""
    ) -> None:
        proof = proof_of(
            self._gate,
            result,
            content=content.tree,
            hook=hook or self._hook,
            root_abs=self._repo.root_abs,
            base=content.commit,
            numbers=dict(numbers),
        )
        append(self._repo.shared_state_abs, [proof])

    def _compare(
        self, result: GateResult, before: Mapping[str, float], definition: str
    ) -> GateResult:
        absent = [
            name for name, _pattern, _better in self._gate.measures.metrics if name not in before
        ]
        is_measured = definition == definition_of(self._gate)
        if absent and self._gate.measures.ratchet == MEASURE and not is_measured:
            self.is_due = True
            return result
        if worse := self._worse(result.findings.metrics, before):
            reason = f"{'; '.join(worse)} at {self.base.name}"
            return result._replace(status="failed", exit_status=None, reason=reason)
        if not absent:
            return result
        names = ", ".join(f"`{name}`" for name in absent)
        if is_measured:
            return _begin(result, f"{self.base.name} has no {names} yet")
        if not (unknown := [name for name in absent if name in self._base_metrics]):
            return _begin(result, f"{self.base.name} does not ask for {names}")
        names = ", ".join(f"`{name}`" for name in unknown)
        why = f'no {names} is recorded for {self.base.name}; `ratchet = "{MEASURE}"` measures it'
        return _not_compared(result, why)

    def _worse(self, numbers: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
        worse = []
        for name, _pattern, better in self._gate.measures.metrics:
            if name not in before:
                continue
            base_number, number = before[name], numbers.get(name)
            sign = 1 if better == "higher" else -1
            if number is None:
                worse.append(f"`{name}` is not in its output, and was {base_number:.12g}")
            elif round(sign * (base_number - number), _DIGITS) > self._gate.measures.tolerance:
                worse.append(f"`{name}` is {number:.12g}, and was {base_number:.12g}")
        return worse

    def _recorded(self, tree: str) -> tuple[Mapping[str, float], str]:
        """Return the gate's newest numbers for a tree, and the definition that measured them.

        Those of this clone, or of a trusted signer.
        """
        proofs = of_content(self._repo.shared_state_abs, tree)
        mine = [proof for proof in proofs if proof.gate == self._gate.name]
        if found := [proof for proof in mine if proof.numbers or proof.hook == MEASURE]:
            return found[-1].numbers, found[-1].definition
        try:
            newest = max(self._signed(tree), key=lambda proof: proof.time_s, default=None)
        except GitgatesError:
            newest = None  # what others have measured cannot be read: it is not compared with
        return (newest.numbers, "") if newest else ({}, "")

    def _signed(self, tree: str) -> Iterator[Any]:
        """Yield what trusted signers have measured with this gate on a tree."""
        repo = self._repo
        config = load(repo.root_abs, repo.config_cache_abs) or Config()
        for provide in providers(config, "signed_evidence"):
            for statement in provide(repo, config, lambda _text: None).of_tree(tree)[0]:
                yield from [
                    proof
                    for proof in statement.gates
                    if proof.gate == self._gate.name and proof.numbers and not proof.origin
                ]

    @lazy
    def _base_metrics(self) -> tuple[str, ...]:
        """Return the metrics that the configuration of the base measures, or may measure."""
        current_names = tuple(name for name, _pattern, _better in self._gate.measures.metrics)
        try:
            config = checked(*settings_in(self._git, (self.base.commit,)))
        except GitgatesError:
            return current_names  # assume the same
        gates = config.gates if config else ()
        return tuple(
            name
            for gate in gates
            if gate.name == self._gate.name
            for name, *_rest in gate.measures.metrics
        )


def _begin(result: GateResult, why: str) -> GateResult:
    if result.status == "unchecked":
        return result
    return result._replace(reason=f"comparison starts with the next run: {why}")


def _not_compared(result: GateResult, why: str) -> GateResult:
    if result.status == "unchecked":
        return result
    return result._replace(status="unchecked", reason=f"nothing was compared: {why}")


def find_numbers(
    gate: Gate, output: bytes, is_stopped: Callable[[], bool] = lambda: False
) -> dict[str, float] | None:
    """Return the last number of each metric that is in an output; None if that takes too long."""
    text = plain(output)
    try:
        return compute(lambda: _numbers(gate, text), LIMIT_S, is_stopped)
    except TimeoutError:
        return None


def _numbers(gate: Gate, text: str) -> dict[str, float]:
    last = {name: _last_number(pattern, text) for name, pattern, _better in gate.measures.metrics}
    return {name: number for name, number in last.items() if number is not None}


def _last_number(pattern: str, text: str) -> float | None:
    last = None
    for match in re.finditer(pattern, text, re.MULTILINE):
        try:
            number = float(match[1] or "")
        except ValueError:
            continue
        if abs(number) < _MOST:  # nan is not
            last = int(number) if number.is_integer() else number
    return last
