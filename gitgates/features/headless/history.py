"""The commits that a run has made: what each of them changed, though a later one undoes it."""

from __future__ import annotations

from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo
    from gitgates.worktree.checkpoint import Checkpoint

_EACH = ("--no-replace-objects", "diff-tree", "--stdin", "-r", "--root", "--no-commit-id")


def own_commits(point: Checkpoint, repo: Repo) -> list[str]:
    """Return the commits in the history of HEAD that were on no branch before the run.

    Raises: GitError.
    """
    head = repo.head
    before = sorted({point.head, *point.branches.values()} - {""})
    if not head or head in before:
        return []
    revisions = "".join([f"{head}\n", *(f"^{commit}\n" for commit in before)])
    # A commit in `before` may no longer exist, if its branch was deleted.
    ask = ("--no-replace-objects", "rev-list", "--ignore-missing", "--stdin")
    return repo.git.out(*ask, stdin=revisions.encode()).decode().split()


def paths_in_commits(commits: list[str], git: Git) -> set[str]:
    """Return each path that one of the commits changed; of a merge: that no parent has so."""
    ask = (*_EACH, "-c", "-z", "--name-only", "--no-renames")
    return set(nul_split(git.out(*ask, stdin=_lines(commits)))) if commits else set()


def lines_in_commits(commits: list[str], git: Git) -> int:
    """Return how many lines the commits added and removed, each by itself, without merges."""
    ask = (*_EACH, "--numstat", "--no-renames", "--no-ext-diff")
    return sum_lines(git.out(*ask, stdin=_lines(commits)).decode("utf-8", "replace"))


def sum_lines(numstat: str) -> int:
    """Return the sum of all lines that `--numstat` names; a binary file has none."""
    counts = [field for line in numstat.splitlines() for field in line.split("\t")[:2]]
    return sum(int(count) for count in counts if count.isdigit())


def _lines(commits: list[str]) -> bytes:
    return "".join(f"{commit}\n" for commit in commits).encode()
