"""The content to compare a gate with: the merge base with another branch. Cold."""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.engine.plan.walk import BEFORE_A_COMMIT
from gitgates.files.stored import look_as_stored
from gitgates.git.index import committed_tree
from gitgates.git.paths import merged_commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.types import Event
    from gitgates.git.repo import Git, Repo

_SHORT = 12  # digits of a commit's id
_REMOTE_HEAD = "refs/remotes/origin/HEAD"
_SET_HEAD = "git remote set-head origin --auto"
# Also works in a single-branch clone.
_FETCH = "git fetch origin NAME:refs/remotes/origin/NAME && git remote set-head origin NAME"


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

    `named`: a commit to use instead of the default branch. `merged`: commits that are being
    merged into HEAD: what they bring is not new, so the merge base is that of the merge.
    `of_remote`: only branches that were fetched, no local ones.
    """
    if not git.resolve("HEAD^{commit}"):
        return None
    configured = os.fsdecode(git.ask("config", "--get", "init.defaultBranch").stdout).strip()
    names = dict.fromkeys(name for name in (configured, "main", "master") if name)
    kinds = ("remotes/origin",) if of_remote else ("remotes/origin", "heads")
    both = [f"refs/{kind}/{name}" for name in names for kind in kinds]
    if named:
        tips = {named: git.resolve(f"{named}^{{commit}}")}
    else:
        tips = _tips(git, (_REMOTE_HEAD, *both))
    if of_remote and _REMOTE_HEAD not in tips and len(tips) > 1:
        # Anybody who may push could have created a branch with such a name.
        why_none = f"which of {', '.join(map(_short, tips))} is the default branch? {_SET_HEAD}"
        return Base(why_none=why_none)
    ref, tip = next(iter(tips.items()), ("", ""))
    if not tip:
        why_none = f"no default branch found: {', '.join(names)}"
        hint = f"; to have it: {_FETCH}" if of_remote else ""
        return Base(why_none=why_none + hint)
    commit = git.ask("merge-base", tip, "HEAD", *merged).stdout.decode().strip()
    branch = ref if named else _short(ref)
    tree = git.resolve(f"{commit}^{{tree}}") if commit else ""
    why_none = (
        f"HEAD and {branch} have no common commit here; in a shallow clone: git fetch --unshallow"
    )
    return Base(commit=commit, tree=tree, branch=branch, why_none=why_none)


def _short(ref: str) -> str:
    return ref.split("/", 2)[2]


def _tips(git: Git, refs: Iterable[str]) -> dict[str, str]:
    """Return ref → commit for those that exist, by their full names.

    Git itself takes a tag `refs/remotes/origin/HEAD` if there is no other ref of that name. One
    that leads to no other ref is a branch `HEAD` that somebody has pushed.
    """
    pattern = "--format=%(refname) %(objectname) %(symref)"
    unique = list(dict.fromkeys(refs))
    lines = (line.split(" ") for line in git.lines("for-each-ref", pattern, *unique))
    found = {ref: tip for ref, tip, leads_to in lines if leads_to or ref != _REMOTE_HEAD}
    return {ref: found[ref] for ref in unique if ref in found}


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
    return committed_tree(repo) if is_commit else look_as_stored(repo).tree
