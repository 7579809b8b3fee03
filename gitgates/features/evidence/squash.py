"""Find the commits that a squash was made of: a forge merges a branch, and commits that as one.

Git keeps no trace of it. But a branch that is still here, or was checked out here, merges with the
parent of the squash into the very same tree.
"""

from __future__ import annotations

from gitgates.git.commits import trees_of
from gitgates.git.object_store import storing_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.evidence.commit_evidence import CommitEvidence
    from gitgates.git.commits import Commit
    from gitgates.git.repo import Repo

_MOST_REFLOG = 200
_MOST_HEADS = 50  # each takes a process


def gated_heads(repo: Repo, evidence: CommitEvidence) -> list[str]:
    """Return the tips of branches, and former HEADs, on whose trees gates have run; newest first.

    Raises: GitError.
    """
    git = repo.git
    tips = git.lines("for-each-ref", "--sort=-committerdate", "--format=%(objectname)")
    logged = ("log", "--walk-reflogs", "--format=%H", f"--max-count={_MOST_REFLOG}", "HEAD")
    former = git.ask(*logged).stdout.decode().split()
    trees = trees_of(git, [*tips, *former])
    heads = [one for one in dict.fromkeys([*tips, *former]) if one in trees]
    evidence.read(trees.values())
    return [one for one in heads if evidence.of(trees[one])][:_MOST_HEADS]


def merged_head(repo: Repo, squash: Commit, heads: list[str]) -> str:
    """Return the head whose merge into the parent of a commit is its tree; empty if there is none.

    Git does that without a working tree since 2.38. Raises: GitError, OSError.
    """
    git = storing_git(repo)
    for head in heads:
        done = git.ask("merge-tree", "--write-tree", "--no-messages", f"{squash.id}^", head)
        if done.exit_status not in (0, 1):
            continue  # nothing in common, or this git cannot do it
        if done.stdout.decode().strip() == squash.tree:
            return head
    return ""
