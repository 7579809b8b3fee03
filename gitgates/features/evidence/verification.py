"""Verify that commits have passed the gates of their own hook, and run missing ones.

Each commit is planned again, with the configuration in it and the paths that it changes. A gate of
that plan without a record is missing.
"""

from __future__ import annotations

from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Config, Event, Hook
from gitgates.engine.plan import find_hook, has_types, make_plan
from gitgates.features.evidence.commit_evidence import (
    GATED,
    MISSING,
    SKIPPED,
    SQUASHED,
    UNCHECKED,
    CommitEvidence,
)
from gitgates.features.evidence.commit_settings import configurations
from gitgates.features.evidence.squash import gated_heads, merged_head
from gitgates.git.commits import list_commits
from gitgates.session.git_gates import run_in_checkout
from gitgates.session.git_hooks import HookCall, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import Plan
    from gitgates.engine.listener import Listener
    from gitgates.git.commits import Commit
    from gitgates.git.repo import Repo

_SHORT = 7


class VerifiedCommit(Record):
    """One commit, and the state of its gates."""

    commit: Commit
    event: Event  # its hook, and its paths
    config: Config
    gates: Mapping[str, str]  # those that had to run → their state, as in commit_evidence.py
    problem: str = ""  # with its configuration, so that its gates are unknown

    def missing(self, *, strict: bool = False) -> tuple[str, ...]:
        """Return the gates that have checked nothing; `strict`: of exactly this content."""
        return tuple(
            name
            for name, end in self.gates.items()
            if end in (MISSING, UNCHECKED) or (strict and end != GATED)
        )

    @property
    def title(self) -> str:
        """The id and the subject of the commit, for display."""
        return f"{self.commit.id[:_SHORT]} {self.commit.subject}"


def verify(
    repo: Repo, revisions: tuple[str, ...], say: Callable[[str], None], *, publishes: bool = True
) -> list[VerifiedCommit]:
    """Return commits with the state of their gates, parents first. `revisions`: as for git-log(1).

    `publishes`: new evidence is written to git notes.

    Raises: GitError.
    """
    commits = list_commits(repo.git, *revisions) if revisions else []
    # Even without commits, so that records of hooks are moved into notes.
    changes = ((commit.parents[0], commit.tree) for commit in commits)
    evidence = CommitEvidence(repo, say, changes, publishes=publishes)
    configs = configurations(repo.git, [commit.id for commit in commits])
    verified_commits = [
        _judge(repo, commit, config, evidence)
        for commit, config in zip(commits, configs, strict=True)
    ]
    return _mark_squashes(repo, verified_commits, evidence)


def _mark_squashes(
    repo: Repo, verified_commits: list[VerifiedCommit], evidence: CommitEvidence
) -> list[VerifiedCommit]:
    """Return the commits, with missing gates of a squash of gated commits marked as SQUASHED."""
    if not any(MISSING in verified.gates.values() for verified in verified_commits):
        return verified_commits
    heads = gated_heads(repo, evidence)
    return [
        _squash_of(repo, verified, heads, evidence) or verified for verified in verified_commits
    ]


def _squash_of(
    repo: Repo, verified: VerifiedCommit, heads: list[str], evidence: CommitEvidence
) -> VerifiedCommit | None:
    """Return a commit as the squash of one of these heads; None if it is not one."""
    if MISSING not in verified.gates.values() or len(verified.commit.parents) > 1:
        return None
    if not (head := merged_head(repo, verified.commit, heads)):
        return None
    commits = list_commits(repo.git, head, "--not", f"{verified.commit.id}^")
    configs = configurations(repo.git, [commit.id for commit in commits])
    judged = [
        _judge(repo, commit, config, evidence)
        for commit, config in zip(commits, configs, strict=True)
    ]
    if any(branch_commit.problem or branch_commit.missing() for branch_commit in judged):
        return None
    gated = {
        name
        for branch_commit in judged
        for name, end in branch_commit.gates.items()
        if end != SKIPPED
    }
    gates = {
        name: SQUASHED if end == MISSING and name in gated else end
        for name, end in verified.gates.items()
    }
    return verified._replace(gates=gates)


def _judge(
    repo: Repo, commit: Commit, config: Config | ConfigError, evidence: CommitEvidence
) -> VerifiedCommit:
    """Plan a commit again, and find the evidence of each gate that had to run."""
    name = "pre-merge-commit" if len(commit.parents) > 1 else "pre-commit"
    event = Event("git", name, repo.root_abs, paths=commit.paths, deleted=commit.deleted)
    if isinstance(config, ConfigError):
        return VerifiedCommit(commit, event, Config(), {}, config.message)
    plan = _plan(repo, commit, config, event)
    due = (step for step in plan.steps if step.gate.name in plan.listed and not step.skip)
    base, tree = commit.parents[0], commit.tree
    gates = {step.gate.name: evidence.find(step.gate, base, tree, step.paths) for step in due}
    return VerifiedCommit(commit, event, config, gates)


def _plan(repo: Repo, commit: Commit, config: Config, event: Event) -> Plan:
    hook = find_hook(config, event.name) or Hook(event.name)
    plan = make_plan(config, hook, event, {})
    if not has_types(plan):
        return plan
    from gitgates.git.checkout import check_out  # only to look at types of files

    with check_out(repo, commit.id) as checkout:
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
    gates = verified.missing(strict=strict)
    listener.message(f"{verified.title}: running {', '.join(gates)}")
    call = HookCall(verified.event, repo, listener, gates)
    call.configure(verified.config)
    call.decision = run_in_checkout(call, verified.event, verified.commit.id)
    if call.decision.verdict < BLOCK:
        record(call, verified.commit.tree, verified.commit.parents[0])
    return call
