"""Find the commits of a squash: a forge merges a branch, and commits it as one commit.

Git does not record that. But a branch that still exists, or was checked out here, merges with the
parent of the squash into the same tree.
"""

from __future__ import annotations

from gitgates.git.commits import trees_of
from gitgates.git.object_store import storing_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.git.commits import Commit
    from gitgates.git.repo import Repo

_MOST_REFLOG = 200
_MOST_HEADS = 50  # each takes a process


def gated_heads(repo: Repo, has_evidence: Callable[[str], bool]) -> list[str]:
    """Return the tips of branches, and former HEADs, on whose trees gates have run; newest first.

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
    """Return the head whose merge into the parent of a commit is its tree; empty if there is none.

    Git can do that without a working tree since 2.38. Raises: GitError.
    """
    try:
        git = storing_git(repo)
    except OSError:  # the merge would have to be written: the gates of the squash are missing
        return ""
    for head in heads:
        merge = git.ask("merge-tree", "--write-tree", "--no-messages", f"{squash.id}^", head)
        if merge.exit_status not in (0, 1):
            continue  # no common history, or git is too old
        if merge.stdout.decode().strip() == squash.tree:
            return head
    return ""
