"""What trusted signers have signed of one gate, as evidence like that of this clone.

It counts if the gate is configured as it was for them, and their system is the same. Only this
is asked here: whose statements are read at all is for the feature that provides them.
"""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.engine.signed_keys import definition_sha256, platform
from gitgates.features.evidence.checked_tree import CheckedTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.core.types import Gate


class Believed:
    """The statements about a gate that count, who has signed them, and why others do not.

    `signed` reads statements by tree or patch.
    """

    def __init__(self, signed: Any, gate: Gate) -> None:  # noqa: ANN401 - of a feature, which is above
        self._signed, self._gate = signed, gate
        self._definition = definition_sha256(gate)
        self.signers: dict[str, None] = {}
        self.refused: dict[str, None] = {}

    def of_tree(self, tree: str) -> list[CheckedTree]:
        """Return the evidence of one tree."""
        statements, refused = self._signed.of_tree(tree)
        self.refused |= dict.fromkeys(refused)
        return self._checked(statements)

    def of_patch(self, patch: str) -> list[CheckedTree]:
        """Return the evidence of the same change on any base."""
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
        """Raise the error that says what differs. A gate that has not run, has on no system."""
        name = self._gate.name
        proof = statement.require(name, definition=self._definition)
        why_not = proof.why_not
        if has_run and statement.platform != platform():
            why_not = why_not or f"it ran on {statement.platform}, and this is {platform()}"
        if why_not:
            raise GitgatesError(f"{statement.title}: gate `{name}`: {why_not}")
