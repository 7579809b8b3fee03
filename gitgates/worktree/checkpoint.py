"""Checkpoints: save a working tree, its index, HEAD and branches, to restore them byte for byte.

A tree of git is not enough: a checkout applies filters and line endings, and a tree has neither all
modes nor empty folders. So each file is identified by the hash of its raw bytes, and copied unless
HEAD holds that object. A ref keeps the objects of HEAD until the checkpoint is dropped.

    checkpoints/RUN/checkpoint.json   modes and hashes, folders, HEAD, branches; written last
    checkpoints/RUN/files/HASH        raw bytes that HEAD does not hold
    checkpoints/RUN/index             the index as it was; staged.pack: its objects beside HEAD's
    checkpoints/RUN/hooks/…            git's hooks: worktree/hook_files.py
    checkpoints/RUN/replaced/N        what a rollback found in place of a file, or beside them

Ignored files are neither saved nor touched. What else cannot be restored is listed beforehand.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from typing import TYPE_CHECKING

from gitgates.core.errors import StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.git.listing import SUBMODULE, list_changed, list_ignored, list_paths, wholly_ignored
from gitgates.git.repo import nul_split
from gitgates.store.files import (
    lock_file,
    make_folder,
    remove_file,
    remove_tree,
    replace_file,
    sync_files,
    sync_folder,
)
from gitgates.worktree.hook_files import SAVED, save_hooks
from gitgates.worktree.locks import changed_ns, remove_abandoned, shared_locks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.git.listing import Listing
    from gitgates.git.repo import Repo

REFS = "refs/gitgates/checkpoint"
_VERSION = 1
# What git keeps while a command waits to be continued. Source: git's wt-status.c, refs.c.
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "sequencer": "cherry-pick or revert",
    "BISECT_LOG": "bisect",
}
_BISECT = ("START", "TERMS", "NAMES", "EXPECTED_REV", "ANCESTORS_OK", "FIRST_PARENT", "RUN")
_OF_MERGE = ("MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "SQUASH_MSG")
ITS_FILES = (*_UNDER_WAY, *_OF_MERGE, *(f"BISECT_{name}" for name in _BISECT), "index.lock")


class Content(Record):
    """Mode, content and time of one path."""

    mode: int  # as lstat(2) says: type and permissions
    digest: str  # git's object id of the raw bytes; of a link: where it leads
    time_ns: int  # of its last modification


class Checkpoint(Record):
    """The state before a run, and the folder of the copies."""

    run: str
    root_abs: str
    head: str  # the commit; empty before the first
    branch: str  # the ref that HEAD names; empty where it is detached
    branches: Mapping[str, str]  # ref → commit
    paths: Mapping[str, Content]
    tracked: frozenset[str]
    dirty: frozenset[str]  # what `git status` named: differs from HEAD, staged or not, or untracked
    ignored: frozenset[str]  # files, and with a slash at the end folders, that git ignored
    folders: Mapping[str, int]  # path → permissions
    folder_abs: str
    apart: bool = False  # of a worktree that was made for the run: other branches are others'

    def was_ignored(self, path: str) -> bool:
        """Return whether git ignored what was at a path, or a folder above it.

        It is not the run's, whatever that has done to the rules.
        """
        parts = path.split("/")
        above = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
        return path in self.ignored or any(folder in self.ignored for folder in above)


class Difference(Record):
    """The paths that differ from a checkpoint."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    deleted: tuple[str, ...]
    untracked: tuple[str, ...]  # was tracked, is there, and is ignored instead

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them, sorted."""
        return tuple(sorted({*self.changed, *self.added, *self.deleted, *self.untracked}))


def folder_of(repo: Repo, run: str = "") -> str:
    """Return the folder of a run's checkpoint; without a run, of all those of this worktree."""
    return f"{repo.state_abs}/checkpoints/{run}".rstrip("/")


def under_way(repo: Repo) -> str:
    """Return the git command in progress here, such as `merge`; empty if there is none."""
    for name, command in _UNDER_WAY.items():
        if os.path.lexists(f"{repo.git_dir_abs}/{name}"):
            return command
    return ""


def find_unsavable(repo: Repo, listing: Listing) -> list[str]:
    """Return messages about what a rollback could not restore if the run changed it."""
    others = [path for path in listing.others if path.endswith("/")]
    messages = [f"{path}: a repository of its own" for path in others]
    messages += [f"{path}: a submodule" for path in listing.submodules]
    for path in listing.paths:
        path_abs = os.path.join(repo.root_abs, path)
        mode = mode_at(path_abs)
        if mode and stat.S_ISREG(mode) and not os.access(path_abs, os.R_OK):
            messages.append(f"{path}: cannot be read")
        elif mode and not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            messages.append(f"{path}: neither a file nor a link")
    return messages


def take(repo: Repo, run: str, *, apart: bool = False) -> Checkpoint:
    """Take a checkpoint; return it when all of it is synced to the disk.

    `apart`: the worktree was made for the run.
    Raises: GitError or StateError; then nothing was touched, and nothing is left.
    """
    folder_abs = folder_of(repo, run)
    git, head = repo.git, repo.head
    listing, ignored = list_paths(repo), list_ignored(repo)
    point = Checkpoint(
        run=run,
        root_abs=repo.root_abs,
        head=head,
        branch=git.ask("symbolic-ref", "--quiet", "HEAD").stdout.decode().strip(),
        branches=branches(repo),
        paths=read_paths(repo, listing),
        tracked=frozenset(listing.tracked),
        dirty=frozenset([*list_changed(repo), *listing.others, *listing.flagged]),
        ignored=frozenset(wholly_ignored(repo, ignored)),
        folders=folders(repo, listing, ignored),
        folder_abs=folder_abs,
        apart=apart,
    )
    try:
        make_folder(f"{folder_abs}/files", exist_ok=False)
        stored, copies = _blobs_in(repo, head), list[str]()
        for path, content in point.paths.items():
            if content.digest not in stored and not stat.S_ISLNK(content.mode):
                stored.add(content.digest)
                copies.append(f"{folder_abs}/files/{content.digest}")
                copy_file(os.path.join(repo.root_abs, path), copies[-1], sync=False)
        sync_files(copies)
        _save_index(repo, folder_abs, stored)
        save_hooks(repo, f"{folder_abs}/{SAVED}")
        if head:
            git.out("update-ref", f"{REFS}/{run}", head)
        replace_file(f"{folder_abs}/checkpoint.json", _as_json(point))
        sync_folder(folder_abs)
    except BaseException as error:
        shutil.rmtree(folder_abs, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        what = f"{error.filename or folder_abs}: cannot be saved: {error.strerror}"
        raise StateError(
            what, "Nothing was changed. Free some disk space, or make it readable."
        ) from error
    return point


def load(folder_abs: str) -> Checkpoint:
    """Read a checkpoint.

    Raises: StateError where it cannot be understood; its files are left alone.
    """
    try:
        with open(f"{folder_abs}/checkpoint.json", "rb") as file:
            plain = parse_json(os.fsdecode(file.read()))
        del plain["v"]  # 1, the only one so far
        plain["paths"] = {path: Content(*pair) for path, pair in plain["paths"].items()}
        plain |= {name: frozenset(plain[name]) for name in ("tracked", "dirty", "ignored")}
        return Checkpoint(**plain, folder_abs=folder_abs)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"{folder_abs}/checkpoint.json: cannot be read: {error}"
        hint = f"Raw copies are in {folder_abs}/files. To continue without it: rm -r '{folder_abs}'"
        raise StateError(what, hint) from error


def compare(point: Checkpoint, repo: Repo) -> Difference:
    """Return the paths that differ from the checkpoint, without ignored ones."""
    listing = list_paths(repo)
    now, tracked = read_paths(repo, listing), listing.tracked
    present = {**now, **_read(repo, [path for path in point.paths if path not in now])}
    # Without the index, or with nothing in it, git says nothing of what is tracked.
    unlisted = [p for p in point.tracked if p in present and p not in tracked] if tracked else []
    return Difference(
        changed=tuple(
            p for p, saved in point.paths.items() if p in present and present[p][:2] != saved[:2]
        ),
        added=tuple(p for p in now if p not in point.paths and not point.was_ignored(p)),
        deleted=tuple(path for path in point.paths if path not in present),
        untracked=tuple(repo.git.ignored(unlisted, "--no-index")),
    )


def find_added(point: Checkpoint, repo: Repo) -> tuple[str, ...]:
    """Return what `compare` has as added, without reading anything else."""
    paths = [path for path in list_paths(repo).paths if path not in point.paths]
    return tuple(path for path in _read(repo, paths) if not point.was_ignored(path))


def drop(point: Checkpoint, repo: Repo) -> None:
    """Remove a checkpoint, and the ref that keeps its objects."""
    remove_file(f"{point.folder_abs}/checkpoint.json")  # first: half of one is none
    repo.git.ask("update-ref", "-d", f"{REFS}/{point.run}")
    remove_tree(point.folder_abs)


def left_behind(state_abs: str) -> Iterator[Checkpoint]:
    """Yield the checkpoints of a worktree that no run has dropped, the oldest first.

    What has no description is none: it was being taken, and the run had not begun.
    """
    folder_abs = f"{state_abs}/checkpoints"
    for run in sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else []:
        if os.path.lexists(f"{folder_abs}/{run}/checkpoint.json"):
            yield load(f"{folder_abs}/{run}")


def is_there(point: Checkpoint) -> bool:
    """Return whether nobody has removed a checkpoint."""
    return os.path.lexists(f"{point.folder_abs}/checkpoint.json")


def is_in_progress(point: Checkpoint) -> bool:
    """Return whether the run is alive that a checkpoint is of."""
    state_abs = os.path.dirname(os.path.dirname(point.folder_abs))
    lock = lock_file(f"{state_abs}/headless.lock")
    if lock >= 0:
        os.close(lock)
    return lock < 0


def remove_unfinished(repo: Repo) -> None:
    """Remove what a run left that was killed before its checkpoint was whole.

    Only for who holds the lock of headless runs.
    """
    folder_abs = folder_of(repo)
    for run in os.listdir(folder_abs) if os.path.isdir(folder_abs) else []:
        if not os.path.lexists(f"{folder_abs}/{run}/checkpoint.json"):
            ref_lock_abs = f"{repo.common_dir_abs}/{REFS}/{run}.lock"
            remove_abandoned([ref_lock_abs, *shared_locks(repo)], changed_ns(f"{folder_abs}/{run}"))
            repo.git.ask("update-ref", "-d", f"{REFS}/{run}")
            remove_tree(f"{folder_abs}/{run}")


# What is there.


def mode_at(path_abs: str) -> int:
    """Return the type and permissions of what is at a path; 0 for nothing."""
    try:
        return os.lstat(path_abs).st_mode
    except OSError:
        return 0


def read_content(path_abs: str, algorithm: str) -> Content | None:
    """Return the content of a path; None if there is no file or link."""
    try:
        status = os.lstat(path_abs)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return Content(status.st_mode, os.readlink(path_abs), status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return None
    with open(path_abs, "rb") as file:
        hasher = hashlib.new(algorithm, b"blob %d\0" % status.st_size, usedforsecurity=False)
        while data := file.read(1 << 20):
            hasher.update(data)
    return Content(status.st_mode, hasher.hexdigest(), status.st_mtime_ns)


def read_paths(repo: Repo, listing: Listing) -> dict[str, Content]:
    """Return the content of each file and link that git lists."""
    return _read(repo, listing.paths)


def _read(repo: Repo, paths: list[str]) -> dict[str, Content]:
    """Return the content of files and links; a path behind a symlink has none."""
    algorithm, folders = repo.object_format, {"": True}

    def is_real(folder: str) -> bool:
        if folder not in folders:
            mode = mode_at(os.path.join(repo.root_abs, folder))
            folders[folder] = is_real(os.path.dirname(folder)) and stat.S_ISDIR(mode)
        return folders[folder]

    contents = (
        (path, read_content(os.path.join(repo.root_abs, path), algorithm))
        for path in paths
        if is_real(os.path.dirname(path))
    )
    return {path: content for path, content in contents if content}


def branches(repo: Repo) -> dict[str, str]:
    """Return each branch with its commit."""
    lines = repo.git.lines("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    return dict(line.split(" ") for line in lines)


def folders(repo: Repo, listing: Listing, ignored: list[str]) -> dict[str, int]:
    """Return each folder with its permissions; not those that git ignores, or of others."""
    skipped = {path.rstrip("/") for path in (*ignored, *listing.others, *listing.submodules)}
    modes = {}
    for folder_abs, names, _files in os.walk(repo.root_abs):
        inside = os.path.relpath(folder_abs, repo.root_abs)
        modes[inside] = stat.S_IMODE(os.lstat(folder_abs).st_mode)
        names[:] = [
            name
            for name in names
            if name != ".git"
            and os.path.normpath(f"{inside}/{name}") not in skipped
            and not os.path.islink(f"{folder_abs}/{name}")
        ]
    return modes


def _blobs_in(repo: Repo, head: str) -> set[str]:
    """Return the ids of the blobs in a commit."""
    if not head:
        return set()
    entries = nul_split(repo.git.out("ls-tree", "-r", "-z", head))
    return {entry.partition("\t")[0].split(" ")[2] for entry in entries}


# Saving.


def copy_file(path_abs: str, saved_abs: str, *, sync: bool = True) -> None:
    """Copy a file's bytes to a new file; without `sync`, whoever calls does that for all."""
    with open(path_abs, "rb") as source, open(saved_abs, "xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        if sync:
            os.fsync(target.fileno())


def _save_index(repo: Repo, folder_abs: str, stored: set[str]) -> None:
    """Copy the index, and pack the objects that it lists and HEAD does not have."""
    for name in os.listdir(repo.git_dir_abs):
        if name == "index" or name.startswith("sharedindex."):
            copy_file(f"{repo.git_dir_abs}/{name}", f"{folder_abs}/{name}")
    entries = nul_split(repo.git.out("ls-files", "-z", "--stage"))
    metas = [entry.partition("\t")[0].split(" ") for entry in entries]
    head_ids = stored - set(os.listdir(f"{folder_abs}/files"))
    ids = {digest for mode, digest, _stage in metas if mode != SUBMODULE} - head_ids
    if ids:
        id_lines = "".join(f"{object_id}\n" for object_id in sorted(ids)).encode()
        pack = repo.git.out("pack-objects", "--stdout", "-q", stdin=id_lines)
        replace_file(f"{folder_abs}/staged.pack", pack)


def _as_json(point: Checkpoint) -> bytes:
    plain: dict[str, Any] = {"v": _VERSION, **point._asdict()}
    del plain["folder_abs"]
    plain["paths"] = {path: list(content) for path, content in point.paths.items()}
    plain |= {name: sorted(getattr(point, name)) for name in ("tracked", "dirty", "ignored")}
    return os.fsencode(json.dumps(plain, ensure_ascii=False))
