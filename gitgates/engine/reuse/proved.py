"""Passes proved for exactly one tree: by this clone, and by trusted signers."""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.core.policy import providers
from gitgates.core.record import Record
from gitgates.core.types import GateResult, ResultOrigin
from gitgates.engine.plan.plan import REUSE, takes_paths
from gitgates.engine.reuse.signed_keys import definition_sha256, platform
from gitgates.store.proofs import age, definition_of, of_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.core.types import Config, Gate
    from gitgates.git.repo import Repo


def signed_results(
    repo: Repo, config: Config, names: Iterable[str], base: str, *, say: Callable[[str], None]
) -> dict[tuple[str, int], GateResult]:
    """Return the first results of gates that trusted signers have proved to pass on `HEAD`.

    None if tracked files are changed, or reuse is off or audited. `base`: the commit that paths are
    compared with; empty: none.
    """
    is_changed = repo.git.out_of_files("status", "--porcelain", "--untracked-files=no")
    if repo.env.get(REUSE) or is_changed:
        return {}
    tree = ProvedTree(repo, repo.git.resolve("HEAD^{tree}"), base, say)
    gates = [gate for gate in config.gates if gate.name in names]
    passes = [result for gate in gates if (result := tree.believed(gate, config))]
    return {(result.gate, 0): result for result in passes}


class ProvedTree(Record):
    """A tree, and the one that its paths are compared with."""

    repo: Repo
    tree: str
    base: str
    say: Callable[[str], None]

    def find(self, gate: Gate, config: Config) -> GateResult | None:
        """Return the pass of a gate that need not run on this tree; None if it must."""
        definition, name = definition_of(gate), gate.name
        for row in reversed(of_content(self.repo.shared_state_abs, self.tree)):
            if (row.gate, row.definition) != (name, definition):
                continue
            if row.status == "failed":
                return None
            if row.status == "passed" and row.sharing.exact and self._covers(gate, row.base):
                source = f"{row.hook}, {age(row.time_s)}"
                return GateResult(name, "passed", origin=ResultOrigin(source))
        return self.believed(gate, config)

    def believed(self, gate: Gate, config: Config) -> GateResult | None:
        """Return the pass that a trusted signer has proved; None if none has."""
        for lend in providers(config, "signed_evidence"):
            for statement in lend(self.repo, config, self.say).of_tree(self.tree)[0]:
                try:
                    proof = statement.require(gate.name, definition=definition_sha256(gate))
                except GitgatesError:
                    continue
                is_pass = proof.status == "passed" and not proof.why_not
                is_here = statement.platform == platform()
                if is_pass and is_here and self._covers(gate, statement.base):
                    source = f"signed by {statement.signer}"
                    return GateResult(gate.name, "passed", origin=ResultOrigin(source))
        return None

    def _covers(self, gate: Gate, base: str) -> bool:
        """Return whether paths were compared with what they are compared with now."""
        if not takes_paths(gate):
            return True
        git = self.repo.git
        return bool(base) and git.resolve(f"{base}^{{tree}}") == git.resolve(
            f"{self.base}^{{tree}}"
        )
