"""Evidence of what gates have checked, by content, from the log of proofs and trusted signers.

It contains the gates' statuses on a tree, and the tree with which the paths were compared: a gate
that takes paths has not checked what is the same in both. The log's entries on commits are kept in
a file beside it, with digests of patches, after the log has dropped them.
"""

from __future__ import annotations

import os

from gitgates.core.errors import ConfigError
from gitgates.engine.plan.plan import takes_paths
from gitgates.features.evidence.checked_tree import CheckedTree
from gitgates.git.commits import changed_blobs, patch_digests, trees_of
from gitgates.git.object_store import reading_git
from gitgates.git.settings import configurations
from gitgates.store.files import make_folder, read_cached, replace_cached
from gitgates.store.proofs import BELIEVED, FOLDER, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gitgates.core.types import Gate
    from gitgates.features.evidence.checked_tree import Believed
    from gitgates.git.commits import Blob
    from gitgates.git.repo import Repo
    from gitgates.store.proofs import Proof

GATED = "gated"
ELSEWHERE = "gated on another base"
SQUASHED = "squash of gated commits"
LET_PASS = "let pass"
SKIPPED = "skipped"
MISSING = "missing"
UNCHECKED = "nothing was checked"
_FILE = "commits"  # beside the log
_VERSION = 1  # of that file
_MOST_TREES = 10_000
_UNKNOWN = "?"  # a base that no longer exists
_MOST_AMENDS = 5  # across which the same patch is searched for: each takes a process
_AT_ONCE = 100  # patches computed by git, and in memory


class CommitEvidence:
    """Evidence in this clone. New entries in the log are first copied into the file.

    `changes`: the pairs of trees that will be looked up, in that order. `writes`: whether the file
    may be written.
    """

    def __init__(
        self,
        repo: Repo,
        say: Callable[[str], None],
        changes: Iterable[tuple[str, str]] = (),
        *,
        writes: bool = True,
    ) -> None:
        self._changes = list(changes)
        self._git = reading_git(repo)
        path_abs = f"{repo.shared_state_abs}/{FOLDER}/{_FILE}"
        old_marks: dict[str, tuple[int, bytes]] = {}  # in the log, up to which it was copied
        self._rows: dict[str, list[tuple[Any, ...]]] = {}  # by tree
        known = read_cached(path_abs)
        if known and known[0] == _VERSION:  # another version may have other parts
            _version, old_marks, self._rows = known
        marks = dict(old_marks)
        for checked in self._complete(_from_log(read_all(repo.shared_state_abs, marks))):
            rows = self._rows.setdefault(checked.tree, [])
            if tuple(checked) not in rows:
                rows.append(tuple(checked))
        try:
            if marks != old_marks and writes:
                # If killed before this, the next run adds them again.
                newest = dict([*self._rows.items()][-_MOST_TREES:])
                make_folder(os.path.dirname(path_abs))
                replace_cached(path_abs, (_VERSION, marks, newest), sync=False)
        except OSError as error:
            say(f"evidence about new commits cannot be stored: {error}")
        self._evidence: dict[str, list[CheckedTree]] = {}  # by tree
        self._patches: dict[str, list[CheckedTree]] | None = None
        self._digests: dict[tuple[str, str], str] = {}
        # gate → the blobs that it has checked, and the trees that they were in
        self._checked_blobs: dict[str, dict[Blob, set[str]]] = {}
        self.trust_digest: Callable[[], str] = str  # who is believed now; empty: nobody
        self._gates: dict[str, dict[str, Gate]] = {}  # by tree and name, as configured there

    def _complete(self, checked_trees: list[CheckedTree]) -> list[CheckedTree]:
        """Return evidence with bases as trees, and with patches."""
        trees = trees_of(self._git, (e.base for e in checked_trees if e.base))
        checked_trees = [
            e._replace(base=e.base and trees.get(e.base, _UNKNOWN)) for e in checked_trees
        ]
        digests = patch_digests(self._git, [(e.base, e.tree) for e in checked_trees])
        return [e._replace(patch=digests.get((e.base, e.tree), "")) for e in checked_trees]

    def of(self, tree: str) -> list[CheckedTree]:
        """Return the evidence for one tree."""
        if tree not in self._evidence:
            rows = [CheckedTree(*fields) for fields in self._rows.get(tree, ())]
            self._evidence[tree] = [
                row.as_now(self.trust_digest()) if row.believed else row for row in rows
            ]
        return self._evidence[tree]

    def _all(self) -> list[CheckedTree]:
        """Return the evidence for all trees."""
        return [e for tree in self._rows for e in self.of(tree)]

    def find(
        self,
        gate: Gate,
        change: tuple[str, str],
        paths: Iterable[str] = (),
        believed: Believed | None = None,
    ) -> str:
        """Return a gate's state for the change from one tree to another.

        `paths`: the changed paths that the gate matches. `believed`: what others have signed about
        this gate; files that they checked in other trees count as not checked.
        """
        base, tree = change
        if state := self._passed(gate, change, believed):
            return state
        evidence = self._of(tree, believed)
        if takes_paths(gate) and self._has_checked(gate, base, tree, paths):
            # For example, a revert. Files that were never in one tree count as on another base.
            return GATED if any(e.covers(gate.name) for e in evidence) else ELSEWHERE
        if self._passed(gate, change, believed, let_pass=True):
            return LET_PASS
        ends = {e.gates.get(gate.name) for e in evidence}
        if "unchecked" in ends:
            return UNCHECKED
        return SKIPPED if "skipped" in ends else MISSING

    def _passed(
        self,
        gate: Gate,
        change: tuple[str, str],
        believed: Believed | None,
        *,
        let_pass: bool = False,
    ) -> str:
        """Return GATED if the gate passed on this content, ELSEWHERE if on the same change.

        Empty if neither. `let_pass`: a failure counts, too.
        """
        base, tree = change
        evidence = self._of(tree, believed)
        runs = (e.has_run(gate.name, let_pass=let_pass) for e in evidence)
        if not takes_paths(gate) and any(runs):
            return GATED
        steps = self._steps(gate.name, change, believed, let_pass=let_pass)
        if steps[-1] == (base, True):
            return GATED
        for at, has_run in steps[:_MOST_AMENDS]:
            for e in self._with_patch(base, at, believed):
                runs_now = e.has_run(gate.name, let_pass=let_pass)
                if e.covers(gate.name, let_pass=let_pass) and (has_run or runs_now):
                    return ELSEWHERE
        return ""

    def _of(self, tree: str, believed: Believed | None) -> list[CheckedTree]:
        return [*self.of(tree), *(believed.of_tree(tree) if believed else ())]

    def _steps(
        self,
        gate: str,
        change: tuple[str, str],
        believed: Believed | None,
        *,
        let_pass: bool,
    ) -> list[tuple[str, bool]]:
        """Return the trees from one back to `base`, by the tree with which each was compared.

        More than one step means an amend, which checked only its own changes; earlier steps checked
        the rest. Each comes with whether the gate has run on the way.
        """
        base, tree = change
        steps = [(tree, False)]
        visited = set(steps)
        for at, has_run in steps:  # grows during the iteration
            for e in self._of(at, believed):
                step = e.base, has_run or e.has_run(gate, let_pass=let_pass)
                if e.covers(gate, let_pass=let_pass) and step not in visited:
                    visited.add(step)
                    steps.append(step)
                    if step == (base, True):
                        return steps
        return steps

    def _has_checked(self, gate: Gate, base: str, tree: str, paths: Iterable[str]) -> bool:
        """Return whether an equal gate has checked each of these paths, with this content."""
        raw_paths = {os.fsencode(path) for path in paths}
        changed = changed_blobs(self._git, [(base, tree)]).get((base, tree), set())
        blobs = {blob for blob in changed if blob[0] in raw_paths}
        trees_by_blob = self._blobs_checked_by(gate.name)
        if not blobs or not blobs <= trees_by_blob.keys():
            return False
        self._read_gates(set().union(*(trees_by_blob[blob] for blob in blobs)))
        return all(
            any(self._is_same(gate, other_tree) for other_tree in trees_by_blob[blob])
            for blob in blobs
        )

    def _blobs_checked_by(self, gate: str) -> dict[Blob, set[str]]:
        """Return each blob that a gate has ever checked, with the trees that it was in."""
        if gate not in self._checked_blobs:
            pairs = [(e.base, e.tree) for e in self._all() if e.has_run(gate)]
            trees_by_blob: dict[Blob, set[str]] = {}
            for pair, blobs in changed_blobs(self._git, pairs).items():
                for blob in blobs:
                    trees_by_blob.setdefault(blob, set()).add(pair[1])
            self._checked_blobs[gate] = trees_by_blob
        return self._checked_blobs[gate]

    def _read_gates(self, trees: set[str]) -> None:
        """Read the gates in the configurations of these trees."""
        unread = sorted(trees - self._gates.keys())
        for tree, config in zip(unread, configurations(self._git, unread), strict=True):
            gates = () if isinstance(config, ConfigError) else config.gates
            self._gates[tree] = {gate.name: gate for gate in gates}

    def _is_same(self, gate: Gate, tree: str) -> bool:
        """Return whether the gate with that name in another tree runs the same check."""
        other = self._gates[tree].get(gate.name)
        return other is not None and _checks(other) == _checks(gate)

    def _with_patch(self, base: str, tree: str, believed: Believed | None) -> list[CheckedTree]:
        """Return the evidence for the same change on any base."""
        if self._patches is None:
            self._patches = {}
            for e in self._all():
                self._patches.setdefault(e.patch, []).append(e)
        if (self._patches or believed) and (base, tree) not in self._digests:
            change = base, tree
            at = self._changes.index(change) if change in self._changes else len(self._changes)
            batch = self._changes[at : at + _AT_ONCE] or [change]
            self._digests |= {**dict.fromkeys(batch, _UNKNOWN), **patch_digests(self._git, batch)}
        digest = self._digests.get((base, tree), _UNKNOWN)
        of_others = believed.of_patch(digest) if believed and digest != _UNKNOWN else ()
        return [*self._patches.get(digest, ()), *of_others]


def _checks(gate: Gate) -> tuple[object, ...]:
    """Return the fields that define a gate's check, without its name."""
    return (
        gate.program.command,
        gate.program.pre_commit,
        gate.program.runner,
        gate.program.working_dir,
        gate.program.env,
        gate.program.pass_files,
    )


def _from_log(proofs: Iterable[Proof]) -> list[CheckedTree]:
    """Return the log's evidence about commits; all that a run recorded has the same time."""
    ends_by_run: dict[tuple[str, str, str, str, float], dict[str, str]] = {}
    believed_by_run: dict[tuple[str, str, str, str, float], dict[str, str]] = {}
    for proof in proofs:
        if proof.config:
            run = proof.content, proof.base, proof.hook, proof.config, proof.time_s
            ends_by_run.setdefault(run, {})[proof.gate] = proof.status
            if proof.sharing.maker.startswith(BELIEVED):
                believed_by_run.setdefault(run, {})[proof.gate] = proof.sharing.key
    return [
        CheckedTree(*(*run[:-1], int(run[-1]), gates), believed=believed_by_run.get(run, {}))
        for run, gates in ends_by_run.items()
    ]
