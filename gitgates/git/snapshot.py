"""Snapshots: the tree id of what the working tree holds, tracked and untracked, nothing ignored.

Made with an index and an object folder of our own; the user's files, index and objects are not
touched. The index is kept, so that the next snapshot looks only at what has changed. It lists what
the user's does, and besides:

- `extra`: untracked files. They go when they are ignored, or have grown too large.
- without `dropped`: what the user tracks and has deleted. It comes back with the file, ignored or
  not, which git would not see from our index alone.
"""

from __future__ import annotations

import os
import time

from gitgates.errors import GitError, LockError, StateError
from gitgates.git import object_store
from gitgates.git.repo import nul_ended
from gitgates.git.snapshot_index import SUBMODULE, SnapshotIndex
from gitgates.record import Record
from gitgates.store.files import lock_file, remove_tree
from gitgates.store.rescue import Rescue, StashedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo

# A data set or a core dump that nobody has added yet: to store it would cost more than it tells.
LIMIT_BYTES = 50 * 1024 * 1024
_WAIT_S = 60.0
_POLL_S = 0.01
_STORED_S = 24 * 3600.0  # far less than objects are kept without being asked for
_PATIENCE_S = 30.0  # while another run moves files: thousands take seconds
_HIDDEN = "another run has hidden unstaged work"  # a doubt that goes by itself
_FIRST_PATHS = 3  # of many, those that are named


class SnapshotError(GitError):
    """Git cannot read the whole working tree. There is no snapshot then, and never an old one."""


class Snapshot(Record):
    """What the working tree held."""

    tree: str
    head: str = ""  # the commit that was checked out; empty before the first
    why_unprovable: tuple[str, ...] = ()  # why this may change without another tree
    left_out: tuple[tuple[str, str], ...] = ()  # untracked path, relative to the root → why

    @property
    def provable(self) -> bool:
        """Return whether the same tree means the same content."""
        return not self.why_unprovable

    @property
    def not_seen(self) -> tuple[str, ...]:
        """What is there and in no tree, in words. Other words tell that something has changed."""
        return tuple(doubt for doubt in self.why_unprovable if doubt != _HIDDEN)


class _StashedPaths(Record):
    """What another run has hidden at one moment: it counts as if it were in its place.

    Two that are equal: nothing was moved between them.
    """

    entries: tuple[
        StashedPath, ...
    ] = ()  # what is moved out of the working tree, or never was in it
    journal: tuple[int, int] = (0, 0)  # inode and time of the journal


def take(repo: Repo) -> Snapshot:
    """Take a snapshot of the working tree. What another run has hidden counts as if in its place.

    In the run that hides, the snapshot is of what its gates see. Read the objects with
    `object_store.reading_git`; they are kept for a month after the last snapshot that has them.

    Raises: SnapshotError where something in the working tree cannot be read; StateError where the
    state folder cannot be written; LockError where another snapshot does not end.
    """
    try:
        lock_fd = _lock(repo)
        try:
            snapshot = _take_locked(repo)
            object_store.prune(repo)
        finally:
            os.close(lock_fd)
    except OSError as error:
        raise StateError(
            f"{error.filename or repo.state_abs}: no snapshot can be taken: {error.strerror}"
        ) from error
    return snapshot


def _lock(repo: Repo) -> int:
    os.makedirs(repo.state_abs, mode=0o700, exist_ok=True)
    fd = lock_file(f"{repo.state_abs}/snapshot.lock", wait_s=_WAIT_S)
    if fd < 0:
        raise LockError(
            f"another snapshot of {repo.root_abs} did not end in {_WAIT_S:.0f} s",
            "Wait for the other gitgates run to end, or end it.",
        )
    return fd


def _take_locked(repo: Repo) -> Snapshot:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        hidden = _find_hidden(repo.state_abs)
        try:
            snapshot = _take_from_cached_index(repo, hidden)
        except (GitError, OSError):
            if _find_hidden(repo.state_abs) == hidden:
                raise
        else:
            if _find_hidden(repo.state_abs) == hidden:
                return snapshot
        time.sleep(_POLL_S)
    raise SnapshotError(
        f"{repo.root_abs}: another gitgates run hides and puts back files all the time",
        "Wait for it to end.",
    )


def _take_from_cached_index(repo: Repo, hidden: _StashedPaths) -> Snapshot:
    kept = SnapshotIndex(repo)
    if kept.is_usable():
        try:
            return _take_with(kept, repo, hidden)
        except GitError:
            pass  # maybe only what we kept is broken
    kept.seed()
    try:
        return _take_with(kept, repo, hidden)
    except GitError as error:
        raise SnapshotError(
            f"no snapshot of {repo.root_abs}: {error.message}",
            "Make it readable for git, or have git ignore it. Until then nothing is reused.",
        ) from error


def _take_with(kept: SnapshotIndex, repo: Repo, hidden: _StashedPaths) -> Snapshot:
    if hidden.entries:
        kept.begin()  # what it will hold is not what is there
    kept.refresh()
    dirty = _add_tracked(kept)
    left_out = _add_untracked(kept, hidden)
    if hidden.entries:
        _add_saved(kept.git, repo, hidden)
    tree = kept.stored[0]
    if kept.has_changed or hidden.entries or not (tree and object_store.has(repo, tree)):
        tree = kept.git.out("write-tree").decode().strip()
    _store_all(kept, repo, tree)
    if hidden.entries:
        kept.forget()  # it holds what is not in the working tree now
    else:
        kept.end()
    return Snapshot(
        tree=tree,
        head=kept.head,
        why_unprovable=tuple(_why_unprovable(kept, hidden, dirty, left_out)),
        left_out=tuple(left_out.items()),
    )


def _add_tracked(kept: SnapshotIndex) -> list[str]:
    """Bring what we list up to date; return the submodules with changes of their own."""
    modules = kept.modules
    kept.drop(kept.gone)
    kept.add([*kept.changed, *modules, *kept.returned()])
    if modules:
        kept.refresh_tracked()
    # What only has another commit checked out is in the tree now; the rest is not.
    return kept.modules


def _add_untracked(kept: SnapshotIndex, hidden: _StashedPaths) -> dict[str, str]:
    """Add what is untracked; return what is left out, and why."""
    is_old = kept.has_changed  # then what git said before does not hold any more
    kept.remove_extra(path for path in kept.ignored if path in kept.extra)
    large = f"larger than {LIMIT_BYTES >> 20} MiB"
    grown = [path for path in kept.extra if _size(kept, path) > LIMIT_BYTES]
    kept.remove_extra(grown)
    left_out = dict.fromkeys(grown, large)
    new: list[str] = []
    shown = {entry.path for entry in hidden.entries}
    # Of another name than .git, git takes its own folder for anybody's.
    git_dir = os.path.relpath(kept.git.env["GIT_DIR"], kept.git.cwd_abs) + "/"
    if is_old:
        kept.refresh_untracked()
    for path in kept.untracked:
        if path.endswith("/"):
            left_out[path.rstrip("/")] = "a repository of its own"
        elif not (path in left_out or path in shown or path.startswith(git_dir)):
            if _size(kept, path) > LIMIT_BYTES:
                left_out[path] = large
            else:
                new.append(path)
    kept.add_extra(new)
    return left_out


def _size(kept: SnapshotIndex, path: str) -> int:
    try:
        return os.lstat(os.path.join(kept.git.cwd_abs, path)).st_size
    except OSError:
        return 0


def _store_all(kept: SnapshotIndex, repo: Repo, tree: str) -> None:
    """Have everything that HEAD does not hold in our own folder, where git's gc does not come.

    Some of it may be in the user's, staged once: git does not store it again by itself.
    """
    if kept.stored[:2] == (tree, kept.head) and time.time() - kept.stored[2] < _STORED_S:
        return
    missing = object_store.keep(repo, _ids_beside_head(kept, tree))
    if missing:
        ids = "".join(f"{object_id}\n" for object_id in missing).encode()
        pack = kept.git.out("pack-objects", "--stdout", "-q", stdin=ids)
        env = {**kept.git.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
        kept.git._replace(env=env).out("unpack-objects", "-q", stdin=pack)
    kept.stored = (tree, kept.head, time.time())


def _ids_beside_head(kept: SnapshotIndex, tree: str) -> list[str]:
    """Return the ids in `tree`, its own too, that the commit that is checked out does not have."""
    if not kept.head:
        listed = kept.git.out("ls-tree", "-r", "-t", "-z", tree).split(b"\0")
        metas = [entry.partition(b"\t")[0].split(b" ") for entry in listed if entry]
        ids = [meta[2].decode() for meta in metas if meta[0] != SUBMODULE]
    else:
        raw = ("diff-tree", "-r", "-t", "--raw", "-z", "--no-renames", "--no-abbrev")
        fields = kept.git.out(*raw, kept.head, tree).split(b"\0")[0::2]
        news = [meta.split(b" ") for meta in fields if meta]
        ids = [new[3].decode() for new in news if new[1] not in (SUBMODULE, b"000000")]
    return [tree, *ids]


def _why_unprovable(
    kept: SnapshotIndex, hidden: _StashedPaths, dirty: list[str], left_out: dict[str, str]
) -> list[str]:
    doubts = []
    if kept.flagged:
        doubts.append(f"git is told not to look at {_first_few(kept.flagged)}")
    if dirty:
        doubts.append(f"submodules have changes of their own: {_first_few(dirty)}")
    if left_out:
        doubts.append(f"left out: {_first_few(list(left_out))}")
    if hidden.entries:
        doubts.append(_HIDDEN)
    return doubts


def _first_few(paths: list[str]) -> str:
    shown = ", ".join(f"`{path}`" for path in paths[:_FIRST_PATHS])
    return shown + (", …" if len(paths) > _FIRST_PATHS else "")


def _find_hidden(state_abs: str) -> _StashedPaths:
    """Return what another run has hidden; what this one has is hidden on purpose.

    Raises: StateError where the journal cannot be understood.
    """
    rescue = Rescue(f"{state_abs}/rescue")
    try:
        found = os.stat(rescue.at("journal"))
    except OSError:
        return _StashedPaths()
    journal = rescue.read()
    if journal.pid == os.getpid():
        return _StashedPaths()
    moved = [entry for entry in journal.entries if not entry.saved or _is_saved(rescue, entry)]
    return _StashedPaths(tuple(moved), (found.st_ino, found.st_mtime_ns))


def _add_saved(git: Git, repo: Repo, hidden: _StashedPaths) -> None:
    """Put what is saved in place of what is shown, in the index that `git` works on.

    Raises: GitError or OSError; the run that hides may put it back meanwhile.
    """
    rescue = Rescue(f"{repo.state_abs}/rescue")
    folder_abs = f"{repo.state_abs}/snapshot.saved"
    paths = nul_ended(entry.path for entry in hidden.entries)
    git.out("update-index", "--force-remove", "-z", "--stdin", stdin=paths)
    if os.path.lexists(folder_abs):
        remove_tree(folder_abs)
    os.mkdir(folder_abs, mode=0o700)
    try:
        names: list[str] = []
        for entry in hidden.entries:
            if entry.saved:
                found = _link(rescue.at("saved", entry.saved), folder_abs, entry.path)
                if found != [entry.path]:  # a folder, of which git may ignore something
                    ignored = set(git.ignored(found, "--no-index"))
                    found = [name for name in found if name not in ignored]
                names += found
        # As a working tree of its own, so that filters see each file under its name.
        there = git._replace(cwd_abs=folder_abs, env={**git.env, "GIT_WORK_TREE": folder_abs})
        there.out("update-index", "--add", "--replace", "-z", "--stdin", stdin=nul_ended(names))
    finally:
        remove_tree(folder_abs)


def _is_saved(rescue: Rescue, entry: StashedPath) -> bool:
    return os.path.lexists(rescue.at("saved", entry.saved))


def _link(saved_abs: str, folder_abs: str, path: str) -> list[str]:
    """Link a saved file, or all in a saved folder, below `folder_abs`; return the paths."""
    if os.path.isdir(saved_abs) and not os.path.islink(saved_abs):
        found: list[str] = []
        inside = sorted(os.listdir(saved_abs))
        if ".git" in inside:
            return []  # a repository of its own is in no snapshot
        for name in inside:
            found += _link(f"{saved_abs}/{name}", folder_abs, f"{path}/{name}")
        return found
    target_abs = os.path.join(folder_abs, path)
    os.makedirs(os.path.dirname(target_abs), exist_ok=True)
    os.link(saved_abs, target_abs, follow_symlinks=False)
    return [path]
