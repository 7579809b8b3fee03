"""The content that a gate is compared with: the merge base with another branch. Cold."""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.git.index import committed_tree
from gitgates.git.paths import merged_commits
from gitgates.git.snapshot import take_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.types import Event
    from gitgates.git.repo import Git, Repo

_SHORT = 12  # digits of a commit's id


class Base(Record):
    """The content that a gate is compared with."""

    commit: str = ""  # empty: there is none
    tree: str = ""
    branch: str = ""  # that it is the merge base with
    why_none: str = ""

    @property
    def name(self) -> str:
        """Its name for display."""
        return f"the merge base with {self.branch} ({self.commit[:_SHORT]})"


def find_base(
    git: Git, named: str = "", merged: Iterable[str] = (), *, of_remote: bool = False
) -> Base | None:
    """Return the merge base of HEAD with the default branch; None before the first commit.

    `named`: a commit to take in place of the default branch. `merged`: commits that are being
    merged into HEAD; the merge base is that of the merge, as what they bring is not new.
    `of_remote`: only what was fetched of it, and no branch of this repository.
    """
    if not git.resolve("HEAD^{commit}"):
        return None
    configured = os.fsdecode(git.ask("config", "--get", "init.defaultBranch").stdout).strip()
    names = dict.fromkeys(name for name in (configured, "main", "master") if name)
    kinds = ("remotes/origin",) if of_remote else ("remotes/origin", "heads")
    both = [f"refs/{kind}/{name}" for name in names for kind in kinds]
    for ref in (named,) if named else ("refs/remotes/origin/HEAD", *both):
        if git.resolve(f"{ref}^{{commit}}"):
            commit = git.ask("merge-base", ref, "HEAD", *merged).stdout.decode().strip()
            branch = ref if named else ref.split("/", 2)[2]
            tree = git.resolve(f"{commit}^{{tree}}") if commit else ""
            why_none = (
                f"HEAD and {branch} have no common commit here; in a shallow clone: git "
                "fetch --unshallow"
            )
            return Base(commit=commit, tree=tree, branch=branch, why_none=why_none)
    why_none = f"no default branch found: {', '.join(names)}"
    hint = "; to find it: git remote set-head origin --auto" if of_remote else ""
    return Base(why_none=why_none + hint)


def merged_into(event: Event, repo: Repo) -> list[str]:
    """Return the commits that are being merged into what gates see."""
    if event.host == "manual":
        return merged_commits(repo, merging=False)
    if event.name not in BEFORE_A_COMMIT:
        return []
    return merged_commits(repo, merging=event.name == "pre-merge-commit")


def checked_tree(event: Event, repo: Repo, checkout: Repo | None) -> str:
    """Return the tree of the content that gates see. Raises: GitgatesError or OSError."""
    if checkout:
        return checkout.git.out("write-tree").decode().strip()
    is_commit = event.name in BEFORE_A_COMMIT and event.host in ("git", "pre-commit")
    return committed_tree(repo) if is_commit else take_snapshot(repo).tree
