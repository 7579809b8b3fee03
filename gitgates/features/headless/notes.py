"""Changes of a run other than files: git hooks and settings, branches, tags, the stash."""

from __future__ import annotations

import os

from gitgates.config.load import load
from gitgates.core.errors import ConfigError
from gitgates.worktree.checkpoint import find_unsavable, read_content
from gitgates.worktree.rollback import ref_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.core.types import Config, Visit
    from gitgates.git.listing import Listing
    from gitgates.git.repo import Repo
    from gitgates.worktree.checkpoint import Checkpoint

UNCHECKED = ("skipped", "not-run", "unchecked")  # a gate that ends so has checked nothing
_SETTINGS = ("config", "config.worktree", "info/exclude", "info/attributes")


def protected(repo: Repo, listing: Listing) -> dict[str, str]:
    """Return what no commit shows: git's hooks with a digest each, and what git cannot hold.

    Of a folder of hooks in the working tree, the name alone: its files are seen as others are.
    """
    output = repo.git.configured("rev-parse", "--git-path", "hooks").stdout
    folder_abs = os.path.join(repo.root_abs, os.fsdecode(output).rstrip("\n"))
    digests = {folder_abs: ""}
    is_own = folder_abs.startswith(repo.common_dir_abs) or not folder_abs.startswith(repo.root_abs)
    for name in sorted(os.listdir(folder_abs)) if is_own and os.path.isdir(folder_abs) else []:
        if not name.endswith(".sample"):
            digests |= _digest(f"{folder_abs}/{name}")
    return digests | dict.fromkeys(find_unsavable(repo, listing), "")


def git_settings(repo: Repo) -> dict[str, str]:
    """Return the settings of the repository, its tags and its stash, each with a digest."""
    digests: dict[str, str] = {}
    for folder_abs in dict.fromkeys((repo.common_dir_abs, repo.git_dir_abs)):
        for name in _SETTINGS:
            digests |= _digest(f"{folder_abs}/{name}")
    refs = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/tags", "refs/stash")
    return digests | dict(line.split(" ") for line in repo.git.lines(*refs))


def _digest(path_abs: str) -> dict[str, str]:
    content = read_content(path_abs, "sha256")
    return {path_abs: f"{content.mode:o} {content.digest}"} if content else {}


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of what has changed."""
    return sorted({name for name, _digest in before.items() ^ now.items()})


def configured(repo: Repo) -> Config | None:
    """Return the configuration of gitgates in the working tree; None where there is none."""
    try:
        return load(repo.root_abs)
    except ConfigError:
        return None


def head_notes(point: Checkpoint, repo: Repo) -> list[str]:
    """Return notes on HEAD and branches after a run that was not rolled back."""
    notes = []
    branch = repo.git.ask("symbolic-ref", "-q", "HEAD").stdout.decode().strip()
    if branch != point.branch:
        before, now = point.branch or "detached", branch or "detached"
        notes.append(f"HEAD was {before} before the run, and is now {now}")
    if point.head and repo.git.ask("merge-base", "--is-ancestor", point.head, "HEAD").exit_status:
        notes.append(f"{point.head} was HEAD before the run, and is no longer in its history")
    return notes + ref_notes(point, repo)


def unchecked_notes(visits: Iterable[Visit]) -> list[str]:
    """Return a note on each gate that has checked nothing of what the run has changed."""
    results = [visit.result for visit in visits if visit.result.status in UNCHECKED]
    return [
        f"gate `{result.gate}` checked nothing: {result.reason or result.status}"
        for result in results
    ]
