"""The statements of trusted signers, by tree or by patch, for `gitgates verify`."""

from __future__ import annotations

import time

from gitgates.core.record import lazy
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.statement import RefusedError, Statement
from gitgates.features.proof.trust import Trust, trust_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitgates.git.repo import Repo

_LIMIT_S = 10.0  # for verifying: anybody who may push notes may have written any number


class SignedEvidence:
    """What trusted signers have stated in git notes; each envelope is verified once."""

    def __init__(self, repo: Repo, say: Callable[[str], None]) -> None:
        self._repo, self._say = repo, say
        self._notes = ProofNotes(repo)
        self._read: dict[bytes, Statement | str] = {}  # or why it is not believed
        self._left_s = _LIMIT_S

    @lazy
    def _trust(self) -> Trust:
        return trust_at(self._repo)

    @property
    def trust_digest(self) -> str:
        """A digest of everything that decides who is believed."""
        return self._trust.digest

    def read(self, trees: Iterable[str]) -> None:
        """Read all envelopes about these trees in one call."""
        self._notes.read(trees)

    def has(self, tree: str) -> bool:
        """Return whether anybody has signed anything about a tree."""
        return bool(self._envelopes(tree))

    def of_tree(self, tree: str) -> tuple[list[Statement], list[str]]:
        """Return what is believed about a tree, and why the rest is not. Raises: GitError."""
        verdicts = [self._believed(raw) for raw in self._envelopes(tree)]
        statements = [each for each in verdicts if isinstance(each, Statement)]
        swapped = [f"{s.title}: it is about another tree" for s in statements if s.tree != tree]
        refused = [each for each in verdicts if isinstance(each, str)]
        return [s for s in statements if s.tree == tree], [*refused, *swapped]

    def of_patch(self, patch: str) -> list[Statement]:
        """Return what is believed about the same change on any base. Raises: GitError."""
        verdicts = [self._believed(raw) for raw in self._notes.with_key(patch)]
        return [each for each in verdicts if isinstance(each, Statement) and each.patch == patch]

    def why_not(self, tree: str, raw: bytes, definitions: Mapping[str, str]) -> tuple[str, str]:
        """Return a proof's title and why it does not count for a tree; no reason if it does.

        `definitions`: gate → the digest of its current configuration.
        """
        verdict = self._believed(raw)
        if isinstance(verdict, str):
            title, _colon, why = verdict.partition(": ")
            return title, why
        proofs = {proof.gate: proof for proof in verdict.gates if proof.gate in definitions}
        changed = [gate for gate, proof in proofs.items() if proof.definition != definitions[gate]]
        why = ""
        if verdict.tree != tree:
            why = "it is about another tree"
        elif not proofs:
            why = "it says nothing about the gates that are configured here"
        elif changed:
            why = f"gate `{'`, `'.join(changed)}`: it had another definition"
        return verdict.title, why

    def _envelopes(self, tree: str) -> list[bytes]:
        envelopes = self._notes.of_tree(tree)
        if self._notes.trouble:
            self._say(f"others' proofs cannot be read: {self._notes.trouble}")
            self._notes.trouble = ""
        return envelopes

    def _believed(self, raw: bytes) -> Statement | str:
        if raw not in self._read:
            if self._left_s <= 0:
                return f"proofs were not read: verifying so many takes longer than {_LIMIT_S:g} s"
            began_s = time.monotonic()
            try:
                self._read[raw] = self._trust.believed(raw)
            except RefusedError as error:
                self._read[raw] = error.reason
            self._left_s -= time.monotonic() - began_s
        return self._read[raw]
