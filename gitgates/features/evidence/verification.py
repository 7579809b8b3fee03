"""Verify that commits passed their own hook's gates, and run missing ones.

Each commit is planned again, with its configuration and its changed paths. A gate in that plan
without a record is missing.
"""

from __future__ import annotations

from gitgates.config.load import load
from gitgates.core.errors import ConfigError
from gitgates.core.policy import providers
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Config, Event, Hook
from gitgates.drivers.git import HookCall, record, run_in_checkout
from gitgates.engine.plan.plan import find_hook, has_types, make_plan
from gitgates.features.evidence.checked_tree import Believed
from gitgates.features.evidence.commit_evidence import (
    ELSEWHERE,
    GATED,
    LET_PASS,
    MISSING,
    SKIPPED,
    SQUASHED,
    UNCHECKED,
    CommitEvidence,
)
from gitgates.git.commits import list_commits, trees_of
from gitgates.git.object_store import storing_git
from gitgates.git.settings import configurations
from gitgates.store.proofs import definition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import Plan
    from gitgates.engine.plan.listener import Listener
    from gitgates.git.commits import Commit
    from gitgates.git.repo import Repo

_SHORT = 7
_SIGNED = "signed_evidence"
_BEST_FIRST = (GATED, ELSEWHERE, LET_PASS, SKIPPED, UNCHECKED, MISSING)


class VerifiedCommit(Record):
    """A commit, and its gates' states."""

    commit: Commit
    event: Event  # its hook, and its paths
    config: Config
    gates: Mapping[str, str]  # gate that had to run → its state, as in commit_evidence.py
    problem: str = ""  # with its configuration, so that its gates are unknown
    signers: Mapping[str, str] = {}  # gate whose state is believed → who signed it
    refused: tuple[str, ...] = ()  # why other gates' proofs were not believed

    def missing(self, *, strict: bool = False) -> tuple[str, ...]:
        """Return the gates that did not check the commit; `strict`: not exactly this content."""
        return tuple(
            name
            for name, end in self.gates.items()
            if end in (MISSING, UNCHECKED) or (strict and end not in (GATED, LET_PASS))
        )

    @property
    def title(self) -> str:
        """The commit's id and subject, for display."""
        return f"{self.commit.id[:_SHORT]} {self.commit.subject}"


class Verifier:
    """All evidence about gates that ran: what this clone knows, and what others signed."""

    def __init__(
        self, repo: Repo, clone_evidence: CommitEvidence, say: Callable[[str], None]
    ) -> None:
        config = _config_here(repo)
        self._repo, self._clone_evidence = repo, clone_evidence
        # At most one policy provides this.
        self._signed = next(
            (provide(repo, config, say) for provide in providers(config, _SIGNED)), None
        )
        if self._signed:
            clone_evidence.trust_digest = lambda: self._signed.trust_digest if self._signed else ""

    def read(self, commits: list[Commit]) -> None:
        """Read what others have signed about commits, all at once."""
        if self._signed:
            self._signed.read(commit.tree for commit in commits)

    def has(self, tree: str) -> bool:
        """Return whether there is any evidence for a tree."""
        return bool(self._clone_evidence.of(tree) or (self._signed and self._signed.has(tree)))

    def judge(self, commit: Commit, config: Config | ConfigError) -> VerifiedCommit:
        """Plan a commit again, and find the evidence for each gate that had to run."""
        name = "pre-merge-commit" if len(commit.parents) > 1 else "pre-commit"
        event = Event("git", name, self._repo.root_abs, paths=commit.paths, deleted=commit.deleted)
        if isinstance(config, ConfigError):
            return VerifiedCommit(commit, event, Config(), {}, config.message)
        plan = _plan(self._repo, commit, config, event)
        gates: dict[str, str] = {}
        signers: dict[str, str] = {}
        refused: dict[str, None] = {}
        for step in plan.steps:
            gate, change = step.gate, (commit.parents[0], commit.tree)
            if gate.name not in plan.listed or step.skip:
                continue
            gates[gate.name] = state = self._clone_evidence.find(gate, change, step.paths)
            if not self._signed or state == GATED:
                continue
            believed = Believed(self._signed, gate)
            better = self._clone_evidence.find(gate, change, step.paths, believed)
            if _BEST_FIRST.index(better) < _BEST_FIRST.index(state):
                gates[gate.name], signers[gate.name] = better, ", ".join(believed.signers)
            else:
                refused |= believed.refused
        return VerifiedCommit(commit, event, config, gates, signers=signers, refused=tuple(refused))


def asks_others(repo: Repo) -> bool:
    """Return whether anybody else's evidence is believed."""
    return bool(providers(_config_here(repo), _SIGNED))


def _config_here(repo: Repo) -> Config:
    try:
        return load(repo.root_abs, repo.config_cache_abs) or Config()
    except ConfigError:
        return Config()  # nobody else is believed; each commit is judged by its own configuration


def verify(
    repo: Repo,
    revisions: tuple[str, ...],
    say: Callable[[str], None],
    *,
    writes: bool = True,
) -> list[VerifiedCommit]:
    """Return commits with their gates' states, parents first. `revisions`: as for git-log(1).

    `writes`: whether new evidence is stored.

    Raises: GitError.
    """
    repo = repo.as_stored  # without replace refs: a push sends the stored objects
    commits = list_commits(repo.git, *revisions) if revisions else []
    # Even without commits, so that evidence is stored before the log drops it.
    changes = ((commit.parents[0], commit.tree) for commit in commits)
    clone_evidence = CommitEvidence(repo, say, changes, writes=writes)
    verifier = Verifier(repo, clone_evidence, say)
    verified_commits = _judge(repo, commits, verifier)
    return _mark_squashes(repo, verified_commits, verifier)


def _judge(repo: Repo, commits: list[Commit], verifier: Verifier) -> list[VerifiedCommit]:
    verifier.read(commits)
    configs = configurations(repo.git, [commit.id for commit in commits])
    return [verifier.judge(commit, config) for commit, config in zip(commits, configs, strict=True)]


def _mark_squashes(
    repo: Repo, verified_commits: list[VerifiedCommit], verifier: Verifier
) -> list[VerifiedCommit]:
    """Return the commits; in a squash of gated commits, mark missing gates as SQUASHED."""
    if not any(MISSING in verified.gates.values() for verified in verified_commits):
        return verified_commits
    heads = gated_heads(repo, verifier.has)
    return [
        _squash_of(repo, verified, heads, verifier) or verified for verified in verified_commits
    ]


def _squash_of(
    repo: Repo, verified: VerifiedCommit, heads: list[str], verifier: Verifier
) -> VerifiedCommit | None:
    """Return a commit, marked as the squash of one of these heads; None if it is none."""
    if MISSING not in verified.gates.values() or len(verified.commit.parents) > 1:
        return None
    if not (head := merged_head(repo, verified.commit, heads)):
        return None
    commits = list_commits(repo.git, head, "--not", f"{verified.commit.id}^")
    judged = _judge(repo, commits, verifier)
    if any(branch_commit.problem or branch_commit.missing() for branch_commit in judged):
        return None
    ends = [pair for branch_commit in judged for pair in branch_commit.gates.items()]
    gated = {name for name, end in ends if end != SKIPPED}
    let_pass = {name for name, end in ends if end == LET_PASS}
    for branch_commit in judged:  # a gate with that name may have changed since
        gated &= _same_gates(verified.config, branch_commit.config)
    gates = {
        name: (LET_PASS if name in let_pass else SQUASHED)
        if end == MISSING and name in gated
        else end
        for name, end in verified.gates.items()
    }
    signers = dict(verified.signers)
    for one in judged:
        signers |= {name: who for name, who in one.signers.items() if gates.get(name) == SQUASHED}
    return verified._replace(gates=gates, signers=signers)


def _same_gates(config: Config, other: Config) -> set[str]:
    """Return the names of the gates that are configured identically in two commits."""
    others = {gate.name: definition(gate) for gate in other.gates}
    return {gate.name for gate in config.gates if others.get(gate.name) == definition(gate)}


def _plan(repo: Repo, commit: Commit, config: Config, event: Event) -> Plan:
    hook = find_hook(config, event.name) or Hook(event.name)
    plan = make_plan(config, hook, event, {})
    if not has_types(plan):
        return plan
    from gitgates.worktree.checkouts import check_out  # only to read file types

    with check_out(repo, commit.id, None) as checkout:
        files_abs = checkout.repo.root_abs
        return make_plan(config, hook, event._replace(files_abs=files_abs), {})._replace(
            event=event
        )


def run_missing(
    verified: VerifiedCommit, repo: Repo, listener: Listener, *, strict: bool = False
) -> HookCall:
    """Run missing gates on a commit, in a private checkout, and record them if they pass.

    Raises: as `run_plan` and `check_out`.
    """
    repo, gates = repo.as_stored, verified.missing(strict=strict)
    listener.message(f"{verified.title}: running {', '.join(gates)}")
    call = HookCall(verified.event, repo, listener, gates)
    call.configure(verified.config)
    call.decision = run_in_checkout(call, verified.event, verified.commit.id)
    if call.decision.verdict < BLOCK:
        record(call, call.decision.visits, verified.commit.tree, verified.commit.parents[0])
    return call


_MOST_REFLOG = 200
_MOST_HEADS = 50  # each takes a process


def gated_heads(repo: Repo, has_evidence: Callable[[str], bool]) -> list[str]:
    """Return branch tips and former HEADs on whose trees gates have run, newest first.

    Raises: GitError.
    """
    git = repo.git
    tips = git.lines("for-each-ref", "--sort=-committerdate", "--format=%(objectname)")
    logged = ("log", "--walk-reflogs", "--format=%H", f"--max-count={_MOST_REFLOG}", "HEAD")
    former = git.ask(*logged).stdout.decode().split()
    trees = trees_of(git, [*tips, *former])
    heads = [head for head in dict.fromkeys([*tips, *former]) if head in trees]
    return [head for head in heads if has_evidence(trees[head])][:_MOST_HEADS]


def merged_head(repo: Repo, squash: Commit, heads: list[str]) -> str:
    """Return the head whose merge into a commit's parent gives its tree; empty if there is none.

    Git can do that without a working tree since 2.38. Raises: GitError.
    """
    try:
        git = storing_git(repo)
    except OSError:  # merge objects cannot be written: the squash's gates count as missing
        return ""
    for head in heads:
        merge = git.ask("merge-tree", "--write-tree", "--no-messages", f"{squash.id}^", head)
        if merge.exit_status not in (0, 1):
            continue  # no common history, or git is too old
        if merge.stdout.decode().strip() == squash.tree:
            return head
    return ""
