"""Verify that commits have passed the gates of their own hook, and run what is missing.

Each commit is planned again, with the configuration that is in it and the paths that it changes.
What of that plan nobody has recorded is missing.
"""

from __future__ import annotations

from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Config, Event, Hook
from gitgates.engine.plan import find_hook, make_plan
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
from gitgates.session.git_hooks import HookCall, gates_met, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.types import RefUpdate
    from gitgates.engine.listener import Listener
    from gitgates.git.commits import Commit
    from gitgates.git.repo import Git, Repo

_SHORT = 7
_NOT_CODE = "refs/notes/"


class Verified(Record):
    """What is known of one commit."""

    commit: Commit
    event: Event  # its hook, and its paths
    config: Config
    gates: Mapping[str, str]  # those that had to run → as in commit_evidence.py
    problem: str = ""  # with its configuration, so that its gates are not known

    def missing(self, *, strict: bool = False) -> tuple[str, ...]:
        """Return the gates that have checked nothing; `strict`: of this very content."""
        return tuple(
            name
            for name, found in self.gates.items()
            if found in (MISSING, UNCHECKED) or (strict and found != GATED)
        )

    @property
    def title(self) -> str:
        """The id and the subject of the commit, for display."""
        return f"{self.commit.id[:_SHORT]} {self.commit.subject}"


def verify(repo: Repo, revisions: tuple[str, ...], say: Callable[[str], None]) -> list[Verified]:
    """Return what is known of commits, parents first. `revisions` as git-log(1) takes them.

    Raises: GitError.
    """
    commits = list_commits(repo.git, *revisions) if revisions else []
    # Even without commits, so that what hooks have recorded is in notes.
    evidence = CommitEvidence(repo, say, ((c.parents[0], c.tree) for c in commits))
    configs = configurations(repo.git, [one.id for one in commits])
    found = [_judge(repo, *one, evidence) for one in zip(commits, configs, strict=True)]
    return _name_squashes(repo, found, evidence)


def _name_squashes(repo: Repo, found: list[Verified], evidence: CommitEvidence) -> list[Verified]:
    """Return the same, with what is missing of a squash whose commits were all gated, as that."""
    if not any(MISSING in one.gates.values() for one in found):
        return found
    heads = gated_heads(repo, evidence)
    return [_squash_of(repo, one, heads, evidence) or one for one in found]


def _squash_of(
    repo: Repo, found: Verified, heads: list[str], evidence: CommitEvidence
) -> Verified | None:
    """Return a commit as the squash of one of these heads; None if it is none."""
    if MISSING not in found.gates.values() or len(found.commit.parents) > 1:
        return None
    if not (head := merged_head(repo, found.commit, heads)):
        return None
    commits = list_commits(repo.git, head, "--not", f"{found.commit.id}^")
    configs = configurations(repo.git, [one.id for one in commits])
    judged = [_judge(repo, *one, evidence) for one in zip(commits, configs, strict=True)]
    if any(one.problem or one.missing() for one in judged):
        return None
    gated = {name for one in judged for name, end in one.gates.items() if end != SKIPPED}
    gates = {
        name: SQUASHED if end == MISSING and name in gated else end
        for name, end in found.gates.items()
    }
    return found._replace(gates=gates)


def _judge(
    repo: Repo, commit: Commit, config: Config | ConfigError, evidence: CommitEvidence
) -> Verified:
    """Plan a commit again, and look for evidence of each gate that had to run."""
    name = "pre-merge-commit" if len(commit.parents) > 1 else "pre-commit"
    event = Event("git", name, repo.root_abs, paths=commit.paths, gone=commit.gone)
    if isinstance(config, ConfigError):
        return Verified(commit, event, Config(), {}, config.message)
    plan = make_plan(config, find_hook(config, name) or Hook(name), event, {})
    due = (step for step in plan.steps if step.gate.name in plan.listed and not step.skip)
    base, tree = commit.parents[0], commit.tree
    gates = {step.gate.name: evidence.find(step.gate, base, tree, step.paths) for step in due}
    return Verified(commit, event, config, gates)


def run_missing(
    found: Verified, repo: Repo, listener: Listener, *, strict: bool = False
) -> HookCall:
    """Run what is missing on a commit, in a private checkout, and record it if it passes.

    Raises: as `run_plan` and `check_out`.
    """
    gates = found.missing(strict=strict)
    listener.said(f"{found.title}: running {', '.join(gates)}")
    call = HookCall(found.event, repo, listener, gates)
    call.configure(found.config)
    call.decision = run_in_checkout(call, found.event, found.commit.id)
    if call.decision.verdict < BLOCK:
        record(
            *(repo, found.commit.tree, found.commit.parents[0]),
            hook=found.event.name,
            config=found.config.digest,
            gates=gates_met(call.decision, repo.env),
        )
    return call


def pushed(refs: tuple[RefUpdate, ...], remote: str, git: Git) -> tuple[str, ...]:
    """Return the revisions that a push brings to a remote; nothing where it brings no commit."""
    tips = [
        git.resolve(f"{ref.local_id}^{{commit}}")
        for ref in refs
        if ref.local_id.strip("0") and not ref.remote_ref.startswith(_NOT_CODE)
    ]
    known = [ref.remote_id for ref in refs if ref.remote_id.strip("0")]
    found = [tip for tip in dict.fromkeys(tips) if tip]
    return ("--ignore-missing", *found, "--not", *known, f"--remotes={remote}") if found else ()


def unpushed(git: Git) -> tuple[str, ...]:
    """Return the revisions from the upstream of the current branch to HEAD.

    Without one: what no remote has. Nothing before the first commit.
    """
    if not git.resolve("HEAD"):
        return ()
    upstream = git.resolve("@{upstream}^{commit}")
    return ("HEAD", "--not", upstream or "--remotes")


def range_of(git: Git, text: str) -> tuple[str, ...]:
    """Return the revisions of a range that a person named.

    Raises: UsageError where it names none.
    """
    asked = git.ask("rev-parse", "--revs-only", "--end-of-options", text)
    revisions = tuple(line for line in asked.stdout.decode().split() if not line.startswith("--"))
    ids = [revision.lstrip("^") for revision in revisions]
    if asked.exit_status or not ids or not all(git.resolve(f"{one}^{{commit}}") for one in ids):
        raise UsageError(f"`{text}` is not a range of commits", "For example: origin/main..HEAD")
    return revisions
