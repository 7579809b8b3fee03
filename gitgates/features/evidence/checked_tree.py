"""What gates have checked of one tree, in one run."""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_RUN = ("skipped", "unmatched", "not-run", "unchecked")
_FAILED = ("failed", "flaky", "timed-out", "killed", "not-started")


class CheckedTree(Record):
    """The status of gates in one run."""

    tree: str
    base: str  # the tree that paths were compared with; empty for none
    hook: str
    config: str  # the digest of the configuration
    time: int
    gates: Mapping[str, str]  # gate → status; `unmatched`: no path matched it
    patch: str = ""  # a digest of the difference between the two trees
    # Gate → a digest of who was believed, if others' pass stood for a run.
    believed: Mapping[str, str] = {}

    def as_now(self, trust_digest: str) -> CheckedTree:
        """Return it without others' passes, if not the same ones are believed now."""
        lost = [gate for gate, then in self.believed.items() if then != trust_digest]
        return self._replace(gates={**self.gates, **dict.fromkeys(lost, "not-run")})

    def has_run(self, gate: str, *, let_pass: bool = False) -> bool:
        """Return whether a gate has passed; `let_pass`: or its failure did not block the commit."""
        status = self.gates.get(gate, "not-run")
        return status not in _NOT_RUN and (let_pass or status not in _FAILED)

    def covers(self, gate: str, *, let_pass: bool = False) -> bool:
        """Return whether a gate has so run, or had no path to run on."""
        return self.gates.get(gate) == "unmatched" or self.has_run(gate, let_pass=let_pass)
