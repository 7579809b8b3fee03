"""What trusted signers have signed of one gate, as evidence like that of this clone.

It counts where the gate is configured as it was for them, and runs the same programs. Only this is
asked here: whose statements are read at all is for the feature that lends them.
"""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.engine.portable import definition_sha256
from gitgates.features.evidence.checked_tree import CheckedTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gitgates.core.types import Gate


class Believed:
    """The statements about a gate that count, who has signed them, and why others do not.

    `lent` reads statements by tree or patch; `tool` returns a digest of the programs of the gate
    here, empty if it is not known, and why.
    """

    def __init__(self, lent: Any, gate: Gate, tool: Callable[[], tuple[str, str]]) -> None:  # noqa: ANN401 - of a feature, which is above
        self._lent, self._gate, self._tool = lent, gate, tool
        self._definition = definition_sha256(gate)
        self.signers: dict[str, None] = {}
        self.refused: dict[str, None] = {}

    def of_tree(self, tree: str) -> list[CheckedTree]:
        """Return the evidence of one tree."""
        statements, refused = self._lent.of_tree(tree)
        self.refused |= dict.fromkeys(refused)
        return self._checked(statements)

    def of_patch(self, patch: str) -> list[CheckedTree]:
        """Return the evidence of the same change on any base."""
        return self._checked(self._lent.of_patch(patch))

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
        """Raise the error that says what differs. A gate that has not run has used no program."""
        name = self._gate.name
        proof = statement.require(name, definition=self._definition)
        if proof.why_not:
            raise GitgatesError(f"{statement.title}: gate `{name}`: {proof.why_not}")
        if has_run:
            tool, why_not = self._tool()
            if not tool:
                text = f"gate `{name}`: its programs are not known: {why_not}"
                raise GitgatesError(f"{statement.title}: {text}")
            statement.require(name, tool=tool)
