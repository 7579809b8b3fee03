"""Merge, squash and rebase commits onto another one, without touching anybody's files.

Git merges trees in memory since 2.38; for older versions, the caller provides a way to merge.
"""

from __future__ import annotations

import os
import re

from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.record import Record
from gitgates.git.object_store import storing_git
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Repo

    # Repository, two commits → the tree of their merge. Raises: ConflictError, GitError.
    Merge: TypeAlias = Callable[[Repo, str, str], str]

_SINCE = (2, 38)
_SHORT = 7


class ConflictError(GitgatesError):
    """Two commits conflict; has the paths, and the tree with git's conflict markers."""

    exit_status = 1

    def __init__(self, paths: list[str], tree: str) -> None:
        super().__init__(f"conflicts in {', '.join(paths)}")
        self.paths, self.tree = paths, tree


def merges_in_memory(repo: Repo) -> bool:
    """Return whether this git can merge trees without a working tree."""
    version = re.search(rb"(\d+)\.(\d+)", repo.git.out("version"))
    return not version or (int(version[1]), int(version[2])) >= _SINCE


def merge_trees(repo: Repo, ours: str, theirs: str) -> str:
    """Return the tree of a merge of two commits.

    Raises: ConflictError; GitError if they cannot be merged at all.
    """
    ask = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    completed = repo.git.ask(*ask)
    tree, *paths = nul_split(completed.stdout) or [""]
    if completed.exit_status == 1 and paths:
        raise ConflictError([*dict.fromkeys(paths)], tree)
    if completed.exit_status:
        raise GitError(f"{theirs[:_SHORT]}: {os.fsdecode(completed.stderr).strip()}")
    return tree


def is_ancestor(repo: Repo, commit: str, of: str) -> bool:
    """Return whether a commit is an ancestor of another one, or the same."""
    return not repo.git.ask("merge-base", "--is-ancestor", commit, of).exit_status


def conflicting_paths(repo: Repo, base: str, trees: tuple[str, str]) -> list[str]:
    """Return the paths at which two trees, both based on a commit, conflict."""
    repo = repo._replace(env=storing_git(repo).env)  # no object of the user's
    making = Building(repo, "gitgates <gitgates@localhost>", merge_trees)
    try:
        merge_trees(repo, *(making.commit(tree, [base], b"") for tree in trees))
    except ConflictError as error:
        return error.paths
    return []


class Building(Record):
    """Makes commits: by whom, and how two commits are merged."""

    repo: Repo
    by: str  # NAME <EMAIL>
    merge: Merge

    def merged(self, base: str, tip: str, message: str) -> str:
        """Return the merge of a tip into a base; the base if that changes nothing."""
        tree = self.merge(self.repo, base, tip)
        return self._unless_same(tree, [base, tip], os.fsencode(message))

    def squashed(self, base: str, tip: str, subject: str) -> str:
        """Return one commit with all of a tip's changes; lists the subjects of several commits."""
        git, tree = self.repo.git, self.merge(self.repo, base, tip)
        commits = git.lines("rev-list", "--reverse", "--no-merges", tip, "--not", base)
        subjects = git.out("log", "--reverse", "--no-merges", "--format=* %s", tip, "--not", base)
        message = os.fsencode(f"{subject}\n\n") + subjects
        if len(commits) == 1:
            message = self._message(commits[0])
        author = self._author(commits[-1]) if commits else {}
        return self._unless_same(tree, [base], message, author)

    def rebased(self, base: str, tip: str) -> str:
        """Return the last of a tip's commits, rebased onto a base without merges."""
        git, current = self.repo.git, base
        listing = ("rev-list", "--reverse", "--topo-order", "--no-merges", "--parents")
        for line in git.lines(*listing, tip, "--not", base):
            commit, *parents = line.split()
            if parents == [current]:
                current = commit  # already there
                continue
            # So that git takes the parent for the merge base.
            beside = self.commit(git.resolve(f"{current}^{{tree}}"), parents, b"")
            tree = self.merge(self.repo, beside, commit)
            author, message = self._author(commit), self._message(commit)
            current = self._unless_same(tree, [current], message, author)
        return current

    def _unless_same(
        self, tree: str, parents: list[str], message: bytes, author: Mapping[str, str] | None = None
    ) -> str:
        """Return a commit; its first parent if that has the same tree."""
        if tree == self.repo.git.resolve(f"{parents[0]}^{{tree}}"):
            return parents[0]
        return self.commit(tree, parents, message, author)

    def commit(
        self, tree: str, parents: list[str], message: bytes, author: Mapping[str, str] | None = None
    ) -> str:
        """Make a commit; its committer is `by`."""
        env = {**self.repo.env, **identity(self.by), **(author or {})}
        flags = [word for parent in parents for word in ("-p", parent)]
        git = self.repo.git._replace(env=env)
        return git.out("commit-tree", tree, *flags, "-F", "-", stdin=message).decode().strip()

    def _message(self, commit: str) -> bytes:
        return self.repo.git.out("log", "-1", "--format=%B", commit).rstrip(b"\n") + b"\n"

    def _author(self, commit: str) -> dict[str, str]:
        form = "--format=%an%x00%ae%x00%ad"
        fields = os.fsdecode(self.repo.git.out("log", "-1", form, "--date=raw", commit))
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        return dict(zip(names, fields.rstrip("\n").split("\0"), strict=True))


def identity(by: str) -> dict[str, str]:
    """Return git's variables that make somebody author and committer."""
    name, _, email = by.rstrip(">").rpartition(" <")
    whose = {"NAME": name, "EMAIL": email}
    roles = ("AUTHOR", "COMMITTER")
    return {f"GIT_{role}_{part}": value for role in roles for part, value in whose.items()}
