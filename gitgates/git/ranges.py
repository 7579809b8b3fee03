"""Ranges of commits: those that a push adds, that are not pushed yet, or that a person names."""

from __future__ import annotations

import os

from gitgates.core.errors import UsageError
from gitgates.git.paths import known_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import RefUpdate
    from gitgates.git.repo import Git


def pushed(refs: tuple[RefUpdate, ...], remote: str, git: Git) -> tuple[str, ...]:
    """Return the revisions that a push adds to a remote; nothing if it adds no commit."""
    tips = [
        git.resolve(f"{ref.local_id}^{{commit}}")
        for ref in refs
        if ref.local_id.strip("0") and ref.has_code
    ]
    commit_ids = [tip for tip in dict.fromkeys(tips) if tip]
    edges = known_to(refs, remote, git)
    return ("--ignore-missing", *commit_ids, "--not", *edges) if commit_ids else ()


def unpushed(git: Git) -> tuple[str, ...]:
    """Return the revisions from the upstream of the current branch to HEAD.

    Without an upstream: those that no remote has. Nothing before the first commit.
    """
    if not git.resolve("HEAD"):
        return ()
    upstream = git.resolve("@{upstream}^{commit}")
    return ("HEAD", "--not", upstream or "--remotes")


def range_of(git: Git, text: str) -> tuple[str, ...]:
    """Return the revisions of a range from the command line.

    Raises: UsageError if it is not one.
    """
    warn = ("-c", "core.warnAmbiguousRefs=true")
    parsed = git.ask(*warn, "rev-parse", "--revs-only", "--end-of-options", text)
    if b"is ambiguous" in parsed.stderr:
        # Git would take the tag, which whoever has pushed it may have named so.
        what = f"`{text}`: {os.fsdecode(parsed.stderr).strip().removeprefix('warning: ')}"
        raise UsageError(what, "Remove the tag of that name, or write refs/remotes/… in full.")
    revisions = tuple(line for line in parsed.stdout.decode().split() if not line.startswith("--"))
    ids = [revision.lstrip("^") for revision in revisions]
    if (
        parsed.exit_status
        or not ids
        or not all(git.resolve(f"{commit_id}^{{commit}}") for commit_id in ids)
    ):
        raise UsageError(f"`{text}` is not a range of commits", "For example: origin/main..HEAD")
    return revisions
