"""Stash unstaged work, so gates see the files as they are being committed.

Nothing is rewritten and nothing is written over. What gates must see is checked out first; then the
journal is written and synced; only then is each file of the person's renamed into the rescue
folder, and what is being committed linked into its place. Whatever fails before the journal has
moved nothing; whatever fails after it is restored by `restore`.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import GitError, StateError
from gitgates.git.repo import nul_ended
from gitgates.store.files import make_folder
from gitgates.store.rescue import (
    Rescue,
    StashedPath,
    StashJournal,
    digest,
    mode_of,
    move_aside,
    move_into_place,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.git.index import Unstaged
    from gitgates.git.repo import Git


def stash(
    git: Git,
    rescue: Rescue,
    unstaged: Unstaged,
    *,
    draft: StashJournal,
    step: Callable[[str], None],
) -> StashJournal:
    """Move unstaged work aside and check out what is being committed; return the journal.

    `draft` is the journal without entries. `step` is called before each step.

    Raises: GitError or StateError. If a journal is left, `restore` puts everything back.
    """
    root_abs = git.cwd_abs
    step("lay-out")
    _check_out(git, rescue, unstaged)
    entries, new_folders = _plan(root_abs, rescue, unstaged)
    journal = draft._replace(entries=entries, made_folders=new_folders)
    step("journal")
    rescue.write(journal)
    for entry in entries:
        _stash_one(root_abs, rescue, entry, step)
    step("hidden")
    return journal


def _check_out(git: Git, rescue: Rescue, unstaged: Unstaged) -> None:
    """Check out what is being committed into the rescue folder, with filters and line endings."""
    try:
        make_folder(rescue.at("shown"), exist_ok=False)
    except FileExistsError:
        raise StateError(
            f"{rescue.folder_abs}: is left from another run, without a journal",
            f"Nothing was moved then. Remove it with: rm -r '{rescue.folder_abs}'",
        ) from None
    except OSError as error:
        raise StateError(
            f"{rescue.folder_abs}: cannot be created: {error.strerror}",
            "Nothing was checked. Commit with no unstaged changes, or make its folder writable.",
        ) from error
    if not unstaged.modified:
        return
    prefix = f"--prefix={rescue.at('shown')}/"
    git.out("checkout-index", "-z", "--stdin", prefix, stdin=nul_ended(unstaged.modified))
    for path in unstaged.modified:
        if not os.path.lexists(rescue.at("shown", path)):
            raise GitError(f"git wrote no copy of `{path}` as it is being committed")


def _plan(
    root_abs: str, rescue: Rescue, unstaged: Unstaged
) -> tuple[tuple[StashedPath, ...], tuple[str, ...]]:
    """Return the paths to move and to check out, and the folders to create for that."""
    entries: list[StashedPath] = []
    new_folders: dict[str, None] = {}
    for path in (*unstaged.unseen, *unstaged.modified):
        for folder in _folders(path):
            mode = mode_of(os.path.join(root_abs, folder))
            if mode is None:
                new_folders[folder] = None
            elif not stat.S_ISDIR(mode) and not any(e.path == folder for e in entries):
                # The person has a file or link in the place of a folder of the commit.
                folder_digest = digest(os.path.join(root_abs, folder))
                entries.append(
                    StashedPath(path=folder, saved=str(len(entries)), digest=folder_digest)
                )
                new_folders[folder] = None
        blocked = any(folder in new_folders for folder in _folders(path))
        exists = not blocked and mode_of(os.path.join(root_abs, path)) is not None
        blob, staged_abs = unstaged.modified.get(path, ""), rescue.at("shown", path)
        entries.append(
            StashedPath(
                path=path,
                saved=str(len(entries)) if exists else "",
                blob=blob,
                staged_digest=digest(staged_abs) if blob else "",
                mode=os.lstat(staged_abs).st_mode if blob else 0,
                digest=digest(os.path.join(root_abs, path)) if exists else "",
            )
        )
    return tuple(entries), tuple(new_folders)


def _stash_one(
    root_abs: str, rescue: Rescue, entry: StashedPath, step: Callable[[str], None]
) -> None:
    path_abs = os.path.join(root_abs, entry.path)
    try:
        if entry.saved:
            step("move-aside")
            move_aside(path_abs, rescue.at("saved", entry.saved))
        if entry.blob:
            os.makedirs(os.path.dirname(path_abs), exist_ok=True)
            step("show")
            move_into_place(rescue.at("shown", entry.path), path_abs)
    except OSError as error:
        raise StateError(
            f"`{entry.path}` cannot be stashed: {error.strerror}",
            'Everything was restored; nothing was checked. Alternative: unstaged = "keep"',
        ) from error


def _folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
