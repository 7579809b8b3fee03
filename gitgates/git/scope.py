"""The paths of an event: which question to ask git, by the hook's subject."""

from __future__ import annotations

import os

from gitgates.git import paths as facts
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.paths import Paths
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.types import Event

_BRANCH_CHECKOUT = "1"


def with_paths(event: Event, repo: Repo) -> Event:
    """Return the event with the paths that it is about, if any."""
    if (paths := _paths_of(event, repo)) is None:
        return event
    return event._replace(paths=paths[0], gone=paths[1])


def _paths_of(event: Event, repo: Repo) -> Paths | None:
    git = repo.git
    match HOOK_POINTS[event.name].scope:
        case "staged":
            merging = event.name == "pre-merge-commit"
            return facts.staged_paths(repo, merging=merging)
        case "message" if event.message_file_abs:
            return (os.path.relpath(event.message_file_abs, repo.root_abs),), ()
        case "pushed":
            return facts.pushed_paths(git, event.refs, event.argv[0] if event.argv else "")
        case "head":
            return facts.head_paths(git)
        case "merged":
            return facts.merged_paths(git)
        case "two-commits":
            return _checkout_paths(event, git)
        case "caller":
            return facts.changed_paths(git)
        case _:
            return None


def _checkout_paths(event: Event, git: Git) -> Paths | None:
    """Return what a checkout of another commit changed. Source: githooks(5), post-checkout."""
    old, new, flag = (*event.argv, "", "", "")[:3]
    if flag != _BRANCH_CHECKOUT or not old.strip("0"):
        return None
    return facts.range_paths(git, old, new)


def pushed_id(git: Git) -> str:
    """Return the id that is pushed; of a first push the framework names only the branch."""
    named = git.env.get("PRE_COMMIT_TO_REF", "")
    branch = git.env.get("PRE_COMMIT_LOCAL_BRANCH", "")
    if named or not branch:
        return named
    asked = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", branch)
    return os.fsdecode(asked.stdout).strip()


def is_as_committed(git: Git, tip: str) -> bool:
    """Tell whether the working tree holds exactly the commit `tip`: nothing more, nothing less.

    A tag of something that is no commit has no content of its own to check: True.
    """
    commit = git.ask("rev-parse", "--verify", "--quiet", f"{tip}^{{commit}}")
    if commit.exit_status:
        return True
    head = git.ask("rev-parse", "--verify", "--quiet", "HEAD")
    if head.stdout != commit.stdout:
        return False
    return not git.out("status", "--porcelain", "-z", "--untracked-files=normal")
