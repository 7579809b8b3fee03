"""Make statements from this machine's log, and sign them."""

from __future__ import annotations

import time

from gitgates.config.load import checked
from gitgates.core.errors import ConfigError
from gitgates.engine.plan.walk import BEFORE_A_COMMIT
from gitgates.engine.reuse.signed_keys import definition_sha256, platform
from gitgates.features.proof.envelope import Envelope
from gitgates.features.proof.ssh_keys import sign, signing_key
from gitgates.features.proof.statement import GateProof, Statement, to_payload
from gitgates.features.proof.trust import trust_at
from gitgates.git.commits import list_commits, patch_digests, trees_of
from gitgates.git.settings import settings_in
from gitgates.store import proofs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gitgates.core.types import Gate
    from gitgates.git.commits import Commit
    from gitgates.git.repo import Repo
    from gitgates.store.proofs import Proof

_MOST_AMENDS = 5  # of one commit in a row


def signed(repo: Repo, statements: Sequence[Statement]) -> list[bytes]:
    """Return statements in envelopes, signed now with this machine's key.

    Raises: ConfigError if there is no key, or it cannot be used; GitError.
    """
    if not statements:
        return []
    key = signing_key(repo, trust_at(repo).allowed_signers)
    envelopes = []
    for statement in statements:
        whole = statement._replace(
            signer=key.identity,
            time_s=round(time.time(), 3),
            platform=platform(),
        )
        envelope = Envelope(to_payload(whole), b"", key.fingerprint)
        signature = sign(repo, key.settings, envelope.signed)
        envelopes.append(envelope._replace(signature=signature).to_line())
    return envelopes


def statements_of(repo: Repo, commits: Sequence[Commit]) -> list[Statement]:
    """Return what the log says about commits' trees, one statement for each base of a tree.

    Only gates whose definition in the commit is the logged one are included.

    Raises: GitError.
    """
    commits = [*_amended(repo, commits), *commits]
    by_tree = {commit.tree: commit for commit in commits}
    raws = settings_in(repo.git, [commit.id for commit in by_tree.values()])
    statements: list[Statement] = []
    for tree, raw in zip(by_tree, raws, strict=True):
        try:
            config = checked(raw)
        except ConfigError:
            continue  # its gates are unknown
        gates = {gate.name: gate for gate in config.gates} if config else {}
        ids = tuple(commit.id for commit in commits if commit.tree == tree)
        rows = proofs.of_content(repo.shared_state_abs, tree)
        statements += [each._replace(tree=tree, commits=ids) for each in _by_base(rows, gates)]
    return _with_patches(repo, statements)


def _amended(repo: Repo, commits: Sequence[Commit]) -> list[Commit]:
    """Return the commits that others amend: the gates checked the other paths on those.

    Raises: GitError.
    """
    found: dict[str, Commit] = {}
    newest = [*commits]
    for _ in range(_MOST_AMENDS):
        bases: dict[str, None] = {}
        for commit in newest:
            for row in proofs.of_content(repo.shared_state_abs, commit.tree):
                if row.config and row.hook in BEFORE_A_COMMIT and row.base:
                    bases[row.base] = None
        trees = trees_of(repo.git, bases)
        parents = {parent for commit in newest for parent in commit.parents}
        known = {commit.id for commit in commits} | found.keys()
        names = [base for base, tree in trees.items() if tree not in parents and base not in known]
        newest = list_commits(repo.git, "--no-walk", *names) if names else []
        found |= {commit.id: commit for commit in newest}
    return [*found.values()]


def _by_base(rows: list[Proof], gates: dict[str, Gate]) -> Iterator[Statement]:
    """Yield a statement for each hook, base and configuration: how each gate ended last."""
    runs: dict[tuple[str, str, str], dict[str, GateProof]] = {}
    numbers = {(row.gate, row.definition): row.numbers for row in rows if row.numbers}
    for row in rows:  # the oldest first
        if row.config and (proof := _gate_proof(row, gates.get(row.gate))):
            measured = numbers.get((row.gate, row.definition), {})  # from separate rows
            proof = proof._replace(numbers=measured)
            runs.setdefault((row.hook, row.base, row.config), {})[row.gate] = proof
    for (hook, base, config), ends in runs.items():
        statement = Statement(hook=hook, base=base, config=config, gates=tuple(ends.values()))
        if statement.has_run:
            yield statement


def _gate_proof(row: Proof, gate: Gate | None) -> GateProof | None:
    """Return a row of the log for signing; None if the commit has another gate, or none."""
    if gate is None or proofs.definition_of(gate) != row.definition:
        return None
    is_believed = row.sharing.maker.startswith(proofs.BELIEVED)
    return GateProof(
        gate=row.gate,
        status=row.status,
        definition=definition_sha256(gate),
        is_exact=bool(row.sharing.exact),
        keys=() if is_believed else tuple(row.sharing.key.split()),
        origin=row.sharing.maker.removeprefix(proofs.BELIEVED) if is_believed else "",
        maker="" if is_believed else row.sharing.maker,
        time_s=round(row.time_s, 3),
        duration_s=round(row.duration_s, 3),
        numbers=row.numbers,
    )


def _with_patches(repo: Repo, statements: list[Statement]) -> list[Statement]:
    """Return statements with their bases as trees, and with the digests of their patches."""
    trees = trees_of(repo.git, (each.base for each in statements if each.base))
    complete = [each._replace(base=trees.get(each.base, "")) for each in statements]
    pairs = [(each.base, each.tree) for each in complete]
    digests = patch_digests(repo.git, pairs)
    return [
        each._replace(patch=digests.get(pair, ""))
        for each, before, pair in zip(complete, statements, pairs, strict=True)
        if each.base or not before.base  # else the base is gone
    ]
