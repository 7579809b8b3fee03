"""What gates have checked in one tree: in one run, or as trusted signers state it."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.engine.reuse.signed_keys import definition_sha256, platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.core.types import Gate

_NOT_RUN = ("skipped", "unmatched", "not-run", "unchecked")
_FAILED = ("failed", "flaky", "timed-out", "killed", "not-started")


class CheckedTree(Record):
    """The gates' statuses in one run."""

    tree: str
    base: str  # the tree with which paths were compared; empty for none
    hook: str
    config: str  # the configuration's digest
    time: int
    gates: Mapping[str, str]  # gate → status; `unmatched`: no path matched it
    patch: str = ""  # a digest of the difference between the two trees
    # Gate whose run was replaced by others' pass → a digest of who was believed.
    believed: Mapping[str, str] = {}

    def as_now(self, trust_digest: str) -> CheckedTree:
        """Return it without others' passes, unless the same signers are believed now."""
        lost = [gate for gate, then in self.believed.items() if then != trust_digest]
        return self._replace(gates={**self.gates, **dict.fromkeys(lost, "not-run")})

    def has_run(self, gate: str, *, let_pass: bool = False) -> bool:
        """Return whether a gate passed; `let_pass`: or failed without blocking the commit."""
        status = self.gates.get(gate, "not-run")
        return status not in _NOT_RUN and (let_pass or status not in _FAILED)

    def covers(self, gate: str, *, let_pass: bool = False) -> bool:
        """Return whether a gate has run, as in `has_run`, or had no path to run on."""
        return self.gates.get(gate) == "unmatched" or self.has_run(gate, let_pass=let_pass)


class Believed:
    """Signed statements about a gate, as evidence: who signed those that count, why others do not.

    A statement counts if the signer's gate was configured identically, on the same kind of system.
    `signed`, from the feature that knows whose statements may be read, reads them by tree or patch.
    """

    def __init__(self, signed: Any, gate: Gate) -> None:  # noqa: ANN401 - of a feature, which is above
        self._signed, self._gate = signed, gate
        self._definition = definition_sha256(gate)
        self.signers: dict[str, None] = {}
        self.refused: dict[str, None] = {}

    def of_tree(self, tree: str) -> list[CheckedTree]:
        """Return the evidence for one tree."""
        statements, refused = self._signed.of_tree(tree)
        self.refused |= dict.fromkeys(refused)
        return self._checked(statements)

    def of_patch(self, patch: str) -> list[CheckedTree]:
        """Return the evidence for the same change on any base."""
        return self._checked(self._signed.of_patch(patch))

    def _checked(self, statements: Iterable[Any]) -> list[CheckedTree]:
        checked_trees = []
        for statement in statements:
            gates = {proof.gate: proof.status for proof in statement.gates}
            checked = CheckedTree(
                tree=statement.tree,
                base=statement.base,
                hook=statement.hook,
                config=statement.config,
                time=int(statement.time_s),
                gates={self._gate.name: gates.get(self._gate.name, "not-run")},
                patch=statement.patch,
            )
            try:
                self._require(statement, has_run=checked.has_run(self._gate.name))
            except GitgatesError as error:
                self.refused[error.message] = None
                continue
            self.signers[statement.signer] = None
            checked_trees.append(checked)
        return checked_trees

    def _require(self, statement: Any, *, has_run: bool) -> None:  # noqa: ANN401 - as above
        """Raise the error that says what differs. The system matters only if the gate has run."""
        name = self._gate.name
        proof = statement.require(name, definition=self._definition)
        why_not = proof.why_not
        if has_run and statement.platform != platform():
            why_not = why_not or f"it ran on {statement.platform}, but this is {platform()}"
        if why_not:
            raise GitgatesError(f"{statement.title}: gate `{name}`: {why_not}")
