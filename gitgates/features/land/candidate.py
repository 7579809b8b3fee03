"""The commit that lands a branch, and what is said where it conflicts."""

from __future__ import annotations

import os
import re

from gitgates.core.clean import counted, plain_line
from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.policy import functions_of
from gitgates.git.merging import (
    Building,
    ConflictError,
    is_ancestor,
    merge_trees,
    merges_in_memory,
)
from gitgates.report.feedback import fenced
from gitgates.worktree.checkouts import check_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.features.land.queue import Landing
    from gitgates.git.repo import Repo

_SHORT = 7
_MOST_FILES = 10  # of a conflict that are shown
_MOST_LINES = 40  # of each
_MARKED = re.compile(rb"^<{7} .*?^>{7} .*?$", re.MULTILINE | re.DOTALL)


class BarredError(GitgatesError):
    """A branch cannot land, whatever its gates say."""

    exit_status = 1


def build(repo: Repo, base: str, entry: Landing, method: str) -> str:
    """Return the commit that lands an entry on a base; the base if there is nothing to land.

    Raises: ConflictError, BarredError; GitError.
    """
    if not repo.git.resolve(f"{entry.tip}^{{commit}}"):
        raise BarredError(f"its commit {entry.tip[:_SHORT]} is gone")
    if repo.git.ask("merge-base", entry.tip, base).exit_status == 1:
        raise BarredError(f"it has no commit in common with `{entry.target}`")
    if is_ancestor(repo, entry.tip, base):
        return base
    building = Building(
        repo, entry.by, merge_trees if merges_in_memory(repo) else merge_in_checkout
    )
    if method == "rebase":
        return building.rebased(base, entry.tip)
    if method == "squash":
        return building.squashed(base, entry.tip, f"Land branch '{entry.branch}'")
    onto = f" into {entry.target}" if entry.target not in ("main", "master") else ""
    return building.merged(base, entry.tip, f"Merge branch '{entry.branch}'{onto}\n")


def check_policies(repo: Repo, config: Config, *commits: str) -> None:
    """Check that what a merge changes was reviewed, if the target requires that.

    `commits`: before the merge, after it, and the branch. Raises: BarredError; GitError.
    """
    trees = [repo.git.resolve(f"{commit}^{{tree}}") for commit in commits]
    looks = functions_of(config, "bars_landing")
    if why := "; ".join(filter(None, (look(repo, config, trees) for look in looks))):
        hint = "Undo that, or have it reviewed in the session that made it: gitgates review status"
        raise BarredError(why, hint)


def describe_conflict(repo: Repo, base: str, entry: Landing, error: ConflictError) -> str:
    """Return the paths of a conflict and both sides, for whoever mends it."""
    branch, target = plain_line(entry.branch), plain_line(entry.target)
    files = counted(len(error.paths), "file")
    parts = [f"`{branch}` conflicts with `{target}` in {files}. No gate has run."]
    common = repo.git.ask("merge-base", base, entry.tip).stdout.decode().strip()
    since = ("--not", common) if common else ()
    for path in error.paths[:_MOST_FILES]:
        lines = [f"## {plain_line(path)}"]
        for name, side in ((target, base), (branch, entry.tip)):
            log = ("log", "--format=%h %s (%an)", "--max-count=3", side, *since, "--", path)
            lines += [f"{name}: {plain_line(line)}" for line in repo.git.lines(*log)]
        content = repo.git.ask("cat-file", "blob", f"{error.tree}:{path}").stdout
        if conflict := _MARKED.search(content):
            marked = conflict[0].decode("utf-8", "replace").splitlines()
            lines.append(fenced("\n".join(marked[:_MOST_LINES])))
        parts.append("\n".join(lines))
    if more := ", ".join(map(plain_line, error.paths[_MOST_FILES:])):
        parts.append(f"And: {more}")
    steps = f"git merge {target}, resolve the conflicts, commit, and run `gitgates land` again."
    return "\n\n".join((*parts, f"## What to do now\nOn `{branch}`: {steps}"))


def merge_in_checkout(repo: Repo, ours: str, theirs: str) -> str:
    """Return the tree of a merge that an old git makes in a private checkout.

    Raises: as `merge_trees`.
    """
    objects = repo.git.lines("rev-parse", "--git-path", "objects")[0]
    with check_out(repo, ours, None) as checkout:
        env = {**checkout.repo.env, "GIT_OBJECT_DIRECTORY": os.path.join(repo.root_abs, objects)}
        git = checkout.repo._replace(env=env).git
        completed = git.ask("merge", "--quiet", "--no-commit", "--no-ff", theirs)
        unmerged = git.names("diff", "--name-only", "--diff-filter=U", "-z")
        if completed.exit_status and not unmerged:
            raise GitError(f"{theirs[:_SHORT]}: {os.fsdecode(completed.stderr).strip()}")
        git.out("add", "--all")  # with git's marks
        tree = git.out("write-tree").decode().strip()
    if unmerged:
        raise ConflictError(unmerged, tree)
    return tree
