"""Numbers in the output of gates: found, compared, recorded for the content that was measured.

Cold: only a gate that names metrics loads this.
"""

from __future__ import annotations

import os
import re

from gitgates.clean import plain
from gitgates.engine.command import without_git
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.errors import GitgatesError
from gitgates.git.index import committed_tree
from gitgates.git.snapshot import take
from gitgates.record import Record
from gitgates.store.log import read_metrics, write_metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo
    from gitgates.types import Gate, GateResult, Plan

_MOST = 1e12
_SHORT = 12  # digits of a commit's id


class Base(Record):
    """The content that numbers are compared with."""

    commit: str
    tree: str
    branch: str  # the default branch


class Measurement:
    """The numbers of one gate, from its start to its end."""

    def __init__(self, gate: Gate, plan: Plan, repo: Repo, checkout: Repo | None) -> None:
        self._gate, self._repo, self._hook = gate, repo, plan.event.name
        self._commit = self._tree = self._trouble = ""
        self._base: Base | None = None
        there = checkout._replace(env=without_git(checkout.env)) if checkout else repo
        is_commit = plan.event.name in BEFORE_A_COMMIT and plan.event.host in ("git", "pre-commit")
        try:
            self._commit = there.git.resolve("HEAD^{commit}")
            if checkout:
                self._tree = there.git.out("write-tree").decode().strip()
            else:
                self._tree = committed_tree(repo) if is_commit else take(repo).tree
            if gate.ratchet:
                self._base = _find_base(there.git)
        except (GitgatesError, OSError) as error:
            self._trouble = str(error)

    def judge(self, result: GateResult) -> GateResult:
        """Return the result of a gate with its numbers, failed where its ratchet does not hold."""
        if result.status not in ("passed", "failed"):
            return result
        found = find_numbers(self._gate, result.output)
        result = result._replace(metrics=found)
        if self._gate.ratchet and result.status == "passed" and (reason := self._worse(found)):
            result = result._replace(status="failed", exit_status=None, reason=reason)
        return result

    def record(self, result: GateResult, run_abs: str) -> None:
        """Record the numbers for the content that was measured.

        Raises: OSError where they cannot be written.
        """
        if result.metrics:
            entry: dict[str, object] = {"gate": self._gate.name, "metrics": dict(result.metrics)}
            entry |= {"commit": self._commit, "tree": self._tree, "hook": self._hook}
            write_metrics(self._repo.shared_state_abs, {**entry, "run": os.path.basename(run_abs)})

    def _worse(self, found: dict[str, float]) -> str:
        """Return which numbers are worse than those of the base; empty where none is."""
        if self._trouble:
            return f"its numbers cannot be compared: {self._trouble}"
        base = self._base
        if base is None or base.tree == self._tree:
            return ""
        recorded = read_metrics(self._repo.shared_state_abs, base.tree)
        known = [one["metrics"] for one in recorded if one["gate"] == self._gate.name]
        before: dict[str, float] = known[-1] if known else {}
        worse = []
        for name, _pattern, better in self._gate.metrics:
            if name not in before:
                continue
            was, now = before[name], found.get(name)
            if now is None:
                worse.append(f"`{name}` is not in its output, and was {was:.12g}")
            elif now < was if better == "higher" else now > was:
                worse.append(f"`{name}` is {now:.12g}, and was {was:.12g}")
        where = f" at the merge base with {base.branch} ({base.commit[:_SHORT]})"
        return "; ".join(worse) + where if worse else ""


def find_numbers(gate: Gate, output: bytes) -> dict[str, float]:
    """Return the last number of each metric that is in an output, by name."""
    text = plain(output)
    found: dict[str, float] = {}
    for name, pattern, _better in gate.metrics:
        for match in re.finditer(pattern, text, re.MULTILINE):
            try:
                number = float(match[1] or "")
            except ValueError:
                continue
            if abs(number) < _MOST:  # nan is not
                found[name] = int(number) if number.is_integer() else number
    return found


def _find_base(git: Git) -> Base | None:
    """Return the merge base of HEAD with the default branch; None where there is none."""
    configured = os.fsdecode(git.ask("config", "--get", "init.defaultBranch").stdout).strip()
    names = dict.fromkeys(name for name in (configured, "main", "master") if name)
    both = [f"refs/{kind}/{name}" for name in names for kind in ("remotes/origin", "heads")]
    for ref in ("refs/remotes/origin/HEAD", *both):
        if git.resolve(f"{ref}^{{commit}}"):
            commit = git.ask("merge-base", "HEAD", ref).stdout.decode().strip()
            branch = ref.split("/", 2)[2]
            return Base(commit, git.resolve(f"{commit}^{{tree}}"), branch) if commit else None
    return None
