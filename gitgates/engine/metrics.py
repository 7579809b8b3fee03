"""Numbers in the output of gates: found, compared, recorded for the content that was measured.

Cold: only a gate that names metrics loads this.
"""

from __future__ import annotations

import re
import time
from functools import partial

from gitgates.core.clean import plain
from gitgates.core.errors import GitgatesError
from gitgates.engine.base import checked_tree, find_base, merged_into
from gitgates.git.repo import without_git
from gitgates.proc.bounded import LIMIT_S, compute
from gitgates.store.proofs import append, proof_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.core.types import Gate, GateResult, Plan
    from gitgates.engine.base import Base
    from gitgates.engine.ratchet import Ratchet
    from gitgates.git.repo import Repo

_MOST = 1e12


class Measurement:
    """The numbers of one gate, from its start to its end."""

    def __init__(self, gate: Gate, plan: Plan, repo: Repo, checkout: Repo | None) -> None:
        self._gate, self._repo, self._hook = gate, repo, plan.event.name
        self._commit = self._tree = self._trouble = ""
        self._ratchet: Ratchet | None = None
        measured_repo = checkout._replace(env=without_git(checkout.env)) if checkout else repo
        git = measured_repo.git
        try:
            self._commit = git.resolve("HEAD^{commit}")
            self._tree = checked_tree(plan.event, repo, measured_repo if checkout else None)
            if gate.ratchet:
                from gitgates.engine.ratchet import Ratchet  # most metrics are only recorded

                base = find_base(git, merged=merged_into(plan.event, repo))
                self._ratchet = Ratchet(gate, repo, git, self._tree, base=base)
        except (GitgatesError, OSError) as error:
            self._trouble = str(error)

    @property
    def base_to_run(self) -> Base | None:
        """The content that the gate is to run on as well, before it can be judged."""
        return self._ratchet.base if self._ratchet and self._ratchet.is_due else None

    def judge(
        self, result: GateResult, is_stopped: Callable[[], bool] = lambda: False
    ) -> GateResult:
        """Return the result of a gate with its numbers, failed where its ratchet does not hold."""
        if result.status not in ("passed", "unchecked", "failed"):
            return result
        numbers, slow = find_numbers(self._gate, result.output, is_stopped)
        result = result._replace(metrics=numbers)
        if result.status == "failed":
            return result
        reason = _say_slow(slow) if slow else ""
        if self._gate.ratchet and (reason or self._trouble):
            reason = reason or f"its metrics cannot be compared: {self._trouble}"
            return result._replace(status="failed", exit_status=None, reason=reason)
        if reason or not self._ratchet:
            return result._replace(reason=reason or result.reason)
        return self._ratchet.judge(result)

    def judge_with_base(
        self, at_base: GateResult, result: GateResult, is_stopped: Callable[[], bool]
    ) -> GateResult:
        """Return the judged result of a gate that has run on the base, too.

        Raises: OSError where the numbers of the base cannot be recorded.
        """
        base_numbers, slow = find_numbers(self._gate, at_base.output, is_stopped)
        if slow:
            at_base = at_base._replace(status="timed-out", reason=_say_slow(slow))
        return self._ratchet.judge_with(base_numbers, at_base, result) if self._ratchet else result

    def record(self, result: GateResult) -> None:
        """Record the numbers for the content that was measured.

        Raises: OSError where they cannot be written.
        """
        if not result.metrics:
            return
        seen = {"content": self._tree, "base": self._commit, "root_abs": self._repo.root_abs}
        proof = proof_of(self._gate, result, hook=self._hook, numbers=dict(result.metrics), **seen)
        append(self._repo.shared_state_abs, [proof])


def _say_slow(name: str) -> str:
    return f"the pattern of `{name}` took longer than {LIMIT_S:g} s on its output"


def find_numbers(
    gate: Gate, output: bytes, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[dict[str, float], str]:
    """Return the last number of each metric that is in an output, by name; and what timed out.

    The second is the first metric whose pattern did not finish in time; the others were not tried.
    """
    text = plain(output)
    numbers: dict[str, float] = {}
    until = time.monotonic() + LIMIT_S
    for name, pattern, _better in gate.metrics:
        task = partial(_last_number, pattern, text)
        try:
            number = compute(task, until - time.monotonic(), is_stopped)
        except TimeoutError:
            return numbers, name
        if number is not None:
            numbers[name] = number
    return numbers, ""


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
