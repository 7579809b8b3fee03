"""Restored files that no longer exist: find them, and restore them again.

A git command that rewrites the tree (`stash`, `reset --hard`, `checkout`, `rebase`) reads it first.
If it did so while unstaged work was stashed, and writes after that was restored, it believes that
it knows what it removes. So a second link to everything that is restored stays for a day. It costs
no space as long as the file is there: both are one file, even if an editor writes into it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from typing import TYPE_CHECKING

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.store.rescue import (
    KILLED,
    Rescue,
    digest,
    mode_of,
    move_into_place,
    read_file,
    restored_s,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.git.repo import Git, Repo
    from gitgates.store.rescue import StashedPath

_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_BESIDE = ".recovered"
_LONGEST_S = 24 * 3600  # by which a stash or commit may be older than what was restored


class Restored(Record):
    """A file, link or folder that was restored."""

    entry: StashedPath
    second_abs: str  # the second link to it
    restored_s: float
    was_killed: bool  # the run that stashed it
    is_replaced: bool = False  # by git's own, or by nothing: nobody has edited it since

    @property
    def path(self) -> str:
        """The path of its place."""
        return self.entry.path

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be gone against a person's will: an editor may have had what was shown.

        If a run ends as usual, later edits are most likely intended.
        """
        return self.is_replaced or self.was_killed

    @property
    def when(self) -> str:
        """When the run began that restored it, for display."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.restored_s))


def list_missing(repo: Repo) -> list[Restored]:
    """Return what was restored within a day and is nowhere else now, the newest first.

    Elsewhere is: in its place, in the index, in a stash, in a commit since.
    """
    absent = [link for link in _second_links(repo) if not _is_in_place(repo, link)]
    if not absent:
        return []
    stored, clean = _stored_ids(repo, absent), _clean(repo.git, absent)
    by_content: dict[tuple[str, str], Restored] = {}
    for link in absent:
        path_abs = os.path.join(repo.root_abs, link.path)
        if not _ids(repo.git, link) & stored:
            is_there = mode_of(path_abs) is not None
            is_shown = is_there and digest(path_abs) == link.entry.staged_digest
            is_replaced = not is_there or is_shown or link.path in clean
            key = link.path, digest(link.second_abs)
            by_content.setdefault(key, link._replace(is_replaced=is_replaced))
    return list(by_content.values())


def bring_back(repo: Repo, missing: Restored) -> str:
    """Restore a missing file to its place, or next to an existing one; return its path.

    Raises: StateError if that is not possible; then it is still kept.
    """
    path, path_abs = missing.path, os.path.join(repo.root_abs, missing.path)
    try:
        os.makedirs(os.path.dirname(path_abs), exist_ok=True)
        while True:
            try:
                move_into_place(missing.second_abs, os.path.join(repo.root_abs, path))
            except FileExistsError:
                path = f"{path}+" if path != missing.path else f"{path}{_BESIDE}"
            else:
                return path
    except OSError as error:
        what = f"`{missing.path}` cannot be restored: {error.strerror}"
        raise StateError(what, f"It is in {missing.second_abs}") from error


def _second_links(repo: Repo) -> Iterator[Restored]:
    """Yield each second link, the newest first."""
    folder_abs = f"{repo.state_abs}/restored"
    names = os.listdir(folder_abs) if os.path.isdir(folder_abs) else []
    for name in sorted(names, key=restored_s, reverse=True):
        run = Rescue(f"{folder_abs}/{name}")
        try:
            entries = run.read().entries
        except StateError:
            continue  # it is being restored just now
        was_killed = os.path.lexists(run.at(KILLED))
        for entry in entries:
            if entry.saved and os.path.lexists(run.at(entry.saved)):
                yield Restored(entry, run.at(entry.saved), restored_s(name), was_killed)


def _is_in_place(repo: Repo, link: Restored) -> bool:
    """Return whether it is in its place, or was restored beside."""
    folder_abs, name = os.path.split(os.path.join(repo.root_abs, link.path))
    beside = os.listdir(folder_abs) if os.path.isdir(folder_abs) else []
    places = [name, *[sibling for sibling in beside if sibling.startswith(f"{name}{_BESIDE}")]]
    return any(_is_equal(link.second_abs, f"{folder_abs}/{place}") for place in places)


def _is_equal(second_abs: str, path_abs: str) -> bool:
    """Return whether a file or link has the same bytes, or a folder all of another one."""
    try:
        second, current = os.lstat(second_abs), os.lstat(path_abs)
        if os.path.samestat(second, current):
            return True
        if stat.S_IFMT(second.st_mode) != stat.S_IFMT(current.st_mode):
            return False
        if stat.S_ISLNK(second.st_mode):
            return os.readlink(second_abs) == os.readlink(path_abs)
        if stat.S_ISDIR(second.st_mode):
            names = os.listdir(second_abs)
            return all(_is_equal(f"{second_abs}/{name}", f"{path_abs}/{name}") for name in names)
        return second.st_size == current.st_size and read_file(second_abs) == read_file(path_abs)
    except OSError:
        return False


def _stored_ids(repo: Repo, links: list[Restored]) -> set[str]:
    """Return the blobs that the index has for these paths, and stashes and commits since."""
    paths = sorted({link.path for link in links})
    since = int(min(link.restored_s for link in links)) - _LONGEST_S
    walk = ("log", "--all", "--reflog", "-m", "--full-history", f"--since=@{since}")
    raw = ("--format=", "--raw", "--no-abbrev", "--no-renames", "-z")
    completed = repo.git.ask_all(
        ("ls-files", "-z", "--stage", "--", *paths), (*walk, *raw, "--", *paths)
    )
    return {name for process in completed for name in _ID.findall(os.fsdecode(process.stdout))}


def _ids(git: Git, link: Restored) -> set[str]:
    """Return the blobs that git would make of a file or link: of its bytes, and with filters."""
    if stat.S_ISLNK(os.lstat(link.second_abs).st_mode):
        target = os.fsencode(os.readlink(link.second_abs))
        completed = [git.ask("hash-object", "--stdin", stdin=target)]
    else:
        kinds = ("--no-filters", f"--path={link.path}")
        completed = git.ask_all(*[("hash-object", kind, "--", link.second_abs) for kind in kinds])
    return {os.fsdecode(process.stdout).strip() for process in completed} - {""}


def _clean(git: Git, links: list[Restored]) -> set[str]:
    """Return the paths whose files are as the index has them."""
    paths = sorted({link.path for link in links})
    # A path that is only announced (`add -N`) is an empty file in the index: as git writes it.
    options = ("--name-only", "-z", "--no-ext-diff", "--no-relative", "--no-renames")
    changed = git.names("diff", "--ita-visible-in-index", *options, "--", *paths)
    return set(git.names("ls-files", "-z", "--", *paths)).difference(changed)
