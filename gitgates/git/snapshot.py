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
from gitgates.git import object_store as own_objects
from gitgates.git.hidden import Hidden, find_hidden, show_saved
from gitgates.git.snapshot_index import KeptIndex, Look
from gitgates.record import Record
from gitgates.store.files import lock_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

# A data set or a core dump that nobody has added yet: to store it would cost more than it tells.
LIMIT_BYTES = 50 * 1024 * 1024
_WAIT_S = 60.0
_LOOK_AGAIN_S = 0.01
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
        """Tell whether the same tree means the same content."""
        return not self.why_unprovable

    @property
    def not_seen(self) -> tuple[str, ...]:
        """What is there and in no tree, in words. Other words tell that something has changed."""
        return tuple(doubt for doubt in self.why_unprovable if doubt != _HIDDEN)


def take(repo: Repo) -> Snapshot:
    """Take a snapshot of the working tree. What another run has hidden counts as if in its place.

    In the run that hides, the snapshot is of what its gates see. Read the objects with
    `own_objects.reading_git`; they are kept for a month after the last snapshot that has them.

    Raises: SnapshotError where something in the working tree cannot be read; StateError where the
    state folder cannot be written; LockError where another snapshot does not end.
    """
    try:
        lock_fd = _lock(repo)
        try:
            snapshot = _take_locked(repo)
            own_objects.prune(repo)
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
        hidden = find_hidden(repo.state_abs)
        try:
            snapshot = _take_from_kept(repo, hidden)
        except (GitError, OSError):
            if find_hidden(repo.state_abs) == hidden:
                raise
        else:
            if find_hidden(repo.state_abs) == hidden:
                return snapshot
        time.sleep(_LOOK_AGAIN_S)
    raise SnapshotError(
        f"{repo.root_abs}: another gitgates run hides and puts back files all the time",
        "Wait for it to end.",
    )


def _take_from_kept(repo: Repo, hidden: Hidden) -> Snapshot:
    kept = KeptIndex(repo)
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


def _take_with(kept: KeptIndex, repo: Repo, hidden: Hidden) -> Snapshot:
    if hidden.entries:
        kept.begin()  # what it will hold is not what is there
    look = kept.look()
    dirty = _add_tracked(kept, look)
    left_out = _add_untracked(kept, hidden, look)
    if hidden.entries:
        show_saved(kept.git, repo, hidden)
    tree = kept.stored[0]
    if kept.has_changed or hidden.entries or not (tree and own_objects.has(repo, tree)):
        tree = kept.git.out("write-tree").decode().strip()
    _store_all(kept, repo, (tree, look.head))
    if hidden.entries:
        kept.forget()  # it holds what is not in the working tree now
    else:
        kept.end()
    return Snapshot(
        tree=tree,
        head=look.head,
        why_unprovable=tuple(_doubts(kept, hidden, (dirty, left_out))),
        left_out=tuple(left_out.items()),
    )


def _add_tracked(kept: KeptIndex, look: Look) -> list[str]:
    """Bring what we list up to date; return the submodules with changes of their own."""
    gone, changed, modules = look.differences
    kept.drop(gone)
    kept.add([*changed, *modules, *kept.returned()])
    # What only has another commit checked out is in the tree now; the rest is not.
    return kept.differences()[2] if modules else []


def _add_untracked(kept: KeptIndex, hidden: Hidden, look: Look) -> dict[str, str]:
    """Add what is untracked; return what is left out, and why."""
    was_listed = not kept.has_changed  # then what git said before still holds
    kept.remove_extra(path for path in look.ignored if path in kept.extra)
    large = f"larger than {LIMIT_BYTES >> 20} MiB"
    grown = [path for path in kept.extra if _size(kept, path) > LIMIT_BYTES]
    kept.remove_extra(grown)
    left_out = dict.fromkeys(grown, large)
    new: list[str] = []
    shown = {entry.path for entry in hidden.entries}
    # Of another name than .git, git takes its own folder for anybody's.
    git_dir = os.path.relpath(kept.git.env["GIT_DIR"], kept.git.cwd_abs) + "/"
    for path in look.untracked if was_listed else kept.untracked():
        if path.endswith("/"):
            left_out[path.rstrip("/")] = "a repository of its own"
        elif not (path in left_out or path in shown or path.startswith(git_dir)):
            if _size(kept, path) > LIMIT_BYTES:
                left_out[path] = large
            else:
                new.append(path)
    kept.add_extra(new)
    return left_out


def _size(kept: KeptIndex, path: str) -> int:
    try:
        return os.lstat(os.path.join(kept.git.cwd_abs, path)).st_size
    except OSError:
        return 0


def _store_all(kept: KeptIndex, repo: Repo, now: tuple[str, str]) -> None:
    """Have everything that HEAD does not hold in our own folder, where git's gc does not come.

    Some of it may be in the user's, staged once: git does not store it again by itself.
    """
    tree, head = now
    if kept.stored[:2] == (tree, head) and time.time() - kept.stored[2] < _STORED_S:
        return
    missing = own_objects.keep(repo, kept.not_in(head, tree))
    if missing:
        ids = "".join(f"{object_id}\n" for object_id in missing).encode()
        pack = kept.git.out("pack-objects", "--stdout", "-q", stdin=ids)
        env = {**kept.git.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
        kept.git._replace(env=env).out("unpack-objects", "-q", stdin=pack)
    kept.stored = (tree, head, time.time())


def _doubts(kept: KeptIndex, hidden: Hidden, found: tuple[list[str], dict[str, str]]) -> list[str]:
    dirty, left_out = found
    doubts = []
    if kept.flagged:
        doubts.append(f"git is told not to look at {_some(kept.flagged)}")
    if dirty:
        doubts.append(f"submodules have changes of their own: {_some(dirty)}")
    if left_out:
        doubts.append(f"left out: {_some(list(left_out))}")
    if hidden.entries:
        doubts.append(_HIDDEN)
    return doubts


def _some(paths: list[str]) -> str:
    shown = ", ".join(f"`{path}`" for path in paths[:_FIRST_PATHS])
    return shown + (", …" if len(paths) > _FIRST_PATHS else "")
