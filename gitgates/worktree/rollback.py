"""Roll a working tree back to a checkpoint: files, index, HEAD and branch, byte for byte.

Every step may be taken twice: a rollback that was killed is simply begun again. What is in the way
is moved into `replaced/` of the checkpoint, never written over.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from gitgates.core.errors import GitError, StateError
from gitgates.git.listing import list_ignored, list_paths
from gitgates.git.object_store import iterate_blobs
from gitgates.store.files import make_folder, remove_file, remove_tree, replace_file, sync_files
from gitgates.store.rescue import (
    StashedPath,
    StashJournal,
    announce_restored,
    move_aside,
    move_into_place,
    restored_folder,
)
from gitgates.worktree.checkpoint import (
    ITS_FILES,
    REFS,
    Checkpoint,
    Content,
    branches,
    copy_file,
    find_added,
    folders,
    mode_at,
    read_content,
)
from gitgates.worktree.hook_files import SAVED, restore_hooks
from gitgates.worktree.locks import changed_ns, remove_abandoned, shared_locks

if TYPE_CHECKING:
    from gitgates.git.repo import Repo


_MOST_PASSES = 10  # ignore files below one another, or somebody who goes on writing


def roll_back(point: Checkpoint, repo: Repo) -> list[str]:
    """Restore a checkpoint; may be repeated, as after a kill. Return notes for the person.

    What was in the way is in `replaced/` then. Raises: GitError; StateError that names what could
    not be restored, when everything else is.
    """
    failed: list[str] = []
    notes = _remove_locks(point, repo)
    notes += _restore_refs(point, repo, failed)
    for name in ITS_FILES:  # there was none of them
        path_abs = f"{repo.git_dir_abs}/{name}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            remove_tree(path_abs)
        else:
            remove_file(path_abs)
    restore_index(point, repo)
    tree = _Tree(point, repo)
    tree.restore(failed)
    try:
        saved_abs = f"{point.folder_abs}/{SAVED}"
        notes += restore_hooks(repo, saved_abs, point.run, apart=point.apart)
        _remove_added(tree, failed)
        _restore_folders(point, repo)
    except OSError as error:
        failed.append(str(error))
    sync_files(tree.restored)
    if failed:
        what = "not everything could be restored:\n  " + "\n  ".join(failed)
        hint = f"gitgates recover --roll-back {point.run} tries again."
        raise StateError(what, f"The saved state is in {point.folder_abs}; {hint}")
    return notes


class _Tree:
    """A working tree that is being restored."""

    def __init__(self, point: Checkpoint, repo: Repo) -> None:
        self.point, self.repo = point, repo
        self._algorithm = repo.object_format
        self.restored: list[str] = []  # absolute paths of files
        self._cleared = ""  # the folder that is known to be there
        self._seconds = _second_links(point, repo)
        self._replaced_abs = f"{point.folder_abs}/replaced"
        # Only ever added to: what an earlier try has moved there keeps its number.
        is_there = os.path.isdir(self._replaced_abs)
        self._next = len(os.listdir(self._replaced_abs)) if is_there else 0

    def restore(self, failed: list[str]) -> None:
        """Restore each path; git is asked at the end for all that only it has."""
        in_git: dict[str, list[str]] = {}
        saved = set(os.listdir(f"{self.point.folder_abs}/files"))
        for path, content in self.point.paths.items():
            try:
                if self._is_as_before(path, content):
                    continue
                if stat.S_ISLNK(content.mode) or content.digest in saved:
                    self._put_back(path, content)
                else:
                    in_git.setdefault(content.digest, []).append(path)
            except OSError as error:
                failed.append(f"`{path}`: {error}")
        for digest, raw in iterate_blobs(self.repo.git, in_git, sys.maxsize):
            self._put_all_back(in_git.pop(digest), raw, failed)
        for digest, paths in in_git.items():
            failed += [f"`{path}`: git no longer has the object {digest}" for path in paths]

    def _put_all_back(self, paths: list[str], raw: bytes, failed: list[str]) -> None:
        """Restore files of the same content, which git has."""
        for path in paths:
            try:
                self._put_back(path, self.point.paths[path], raw)
            except OSError as error:
                failed.append(f"`{path}`: {error}")

    def _is_as_before(self, path: str, content: Content) -> bool:
        """Return whether a path has its mode and content; then it gets its time as well."""
        self._clear_way(path)
        path_abs = os.path.join(self.repo.root_abs, path)
        now = read_content(path_abs, self._algorithm)
        if now is None or now[:2] != content[:2]:
            return False
        if now != content:
            _set_time(path_abs, content)
        return True

    def _put_back(self, path: str, content: Content, raw: bytes | None = None) -> None:
        """Move aside what is at a path, and restore its content there; `raw` is that, from git."""
        path_abs = os.path.join(self.repo.root_abs, path)
        if mode_at(path_abs):
            self.replace(path_abs)
        if raw is not None:
            _make_file(path_abs, raw, stat.S_IMODE(content.mode))
        else:
            self._copy_back(path, content)
        _set_time(path_abs, content)
        if stat.S_ISREG(content.mode):
            self.restored.append(path_abs)

    def _copy_back(self, path: str, content: Content) -> None:
        """Restore a link, or a file that the checkpoint has; it appears in its place whole."""
        part_abs = f"{self.point.folder_abs}/part"
        remove_file(part_abs)
        if stat.S_ISLNK(content.mode):
            os.symlink(content.digest, part_abs)
        else:
            copy_file(f"{self.point.folder_abs}/files/{content.digest}", part_abs, sync=False)
            os.chmod(part_abs, stat.S_IMODE(content.mode))
        path_abs = os.path.join(self.repo.root_abs, path)
        move_into_place(part_abs, path_abs, self._seconds.get(path, ""))

    def _clear_way(self, path: str) -> None:
        """Make the parent folders of a path; what is in their place is moved aside."""
        inside = os.path.dirname(path)
        if inside == self._cleared:  # git lists a folder's files one after another
            return
        self._cleared = inside
        folder_abs = self.repo.root_abs
        for name in path.split("/")[:-1]:
            folder_abs = f"{folder_abs}/{name}"
            if not stat.S_ISDIR(mode_at(folder_abs)):
                if mode_at(folder_abs):
                    self.replace(folder_abs)
                os.mkdir(folder_abs)

    def replace(self, path_abs: str) -> None:
        """Move what the run left into `replaced/`."""
        make_folder(self._replaced_abs)
        move_aside(path_abs, f"{self._replaced_abs}/{self._next}")
        self._next += 1


def _make_file(path_abs: str, raw: bytes, mode: int) -> None:
    """Write a new file in its place; of one that a kill leaves half, git has the whole.

    Raises: OSError, also where something is there.
    """
    fd = os.open(path_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(fd, "wb") as file:
        os.fchmod(fd, mode)
        file.write(raw)


def _set_time(path_abs: str, content: Content) -> None:
    os.utime(path_abs, ns=(content.time_ns, content.time_ns), follow_symlinks=False)


def _remove_added(tree: _Tree, failed: list[str]) -> None:
    """Move new files out, again until there are none: a restored .gitignore shows others."""
    added: tuple[str, ...] = ()
    for _ in range(_MOST_PASSES):
        added = find_added(tree.point, tree.repo)
        if not added:
            return
        for path in added:
            tree.replace(os.path.join(tree.repo.root_abs, path))
    failed += [f"`{path}`: such files are created continuously" for path in added]


def _remove_locks(point: Checkpoint, repo: Repo) -> list[str]:
    """Remove the locks that a git has left which was killed during the run; return messages."""
    ref_lock_abs = f"{repo.common_dir_abs}/{REFS}/{point.run}.lock"
    paths = [f"{repo.git_dir_abs}/HEAD.lock", ref_lock_abs, *shared_locks(repo)]
    if point.branch:
        paths.append(f"{repo.common_dir_abs}/{point.branch}.lock")
    return remove_abandoned(paths, changed_ns(f"{point.folder_abs}/checkpoint.json"))


def _restore_refs(point: Checkpoint, repo: Repo, failed: list[str]) -> list[str]:
    """Restore HEAD, its branch and deleted branches; return notes on other branches.

    A run in a worktree of its own restores its own branch alone: somebody else works in the
    repository meanwhile, and may have deleted the others.
    """
    now = branches(repo)
    why = ("-m", f"gitgates: roll back {point.run}")
    deleted = set() if point.apart else point.branches.keys() - now.keys()
    lost = [name for name in point.branches if name == point.branch or name in deleted]
    commands: list[tuple[str, ...]] = [
        ("update-ref", *why, name, point.branches[name]) for name in lost
    ]
    if point.branch:
        commands.append(("symbolic-ref", *why, "HEAD", point.branch))
        if not point.head:
            commands.append(("update-ref", "-d", point.branch))
    else:
        commands.append(("update-ref", *why, "--no-deref", "HEAD", point.head))
    for command in commands:
        try:
            repo.git.out(*command)
        except GitError as error:
            failed.append(error.message)
    return ref_notes(point, repo)


def ref_notes(point: Checkpoint, repo: Repo) -> list[str]:
    """Return notes on branches that differ from the checkpoint."""
    now, notes = branches(repo), []
    for name, commit in point.branches.items():
        if name not in now:
            notes.append(f"{name} was deleted during the run; it was at {commit}")
        elif now[name] != commit and name != point.branch:
            notes.append(f"{name} was moved during the run, from {commit} to {now[name][:12]}")
    created = sorted(now.keys() - point.branches.keys() - {point.branch})
    return notes + [f"{name} was created during the run" for name in created]


def restore_index(point: Checkpoint, repo: Repo) -> None:
    """Restore the index, and the objects that it lists.

    Raises: GitError, OSError.
    """
    pack_abs = f"{point.folder_abs}/staged.pack"
    if os.path.exists(pack_abs):
        with open(pack_abs, "rb") as file:
            repo.git.out("unpack-objects", "-q", stdin=file.read())
    names = os.listdir(point.folder_abs)
    saved = [name for name in names if name == "index" or name.startswith("sharedindex.")]
    if "index" not in saved:
        remove_file(f"{repo.git_dir_abs}/index")
    for name in saved:
        with open(f"{point.folder_abs}/{name}", "rb") as file:
            replace_file(f"{repo.git_dir_abs}/{name}", file.read(), mode=0o644)


def _second_links(point: Checkpoint, repo: Repo) -> dict[str, str]:
    """Return where a second link stays to each path that HEAD did not hold, if it is restored.

    A git command beside may write what it has read before. See worktree/restored.py.
    """
    # Of others git has the bytes, or there are none.
    paths = sorted(point.dirty & point.paths.keys())
    restored = restored_folder(repo.state_abs, "")
    entries = tuple(StashedPath(path, saved=str(n)) for n, path in enumerate(paths))
    journal = StashJournal(point.root_abs, os.getpid(), point.run, entries=entries)
    if entries:
        announce_restored(restored, journal)
    return {entry.path: restored.at(entry.saved) for entry in entries}


def _restore_folders(point: Checkpoint, repo: Repo) -> None:
    """Restore folders and their permissions, and remove new empty ones."""
    for path, mode in point.folders.items():
        path_abs = os.path.join(repo.root_abs, path)
        if not mode_at(path_abs):
            os.makedirs(path_abs)
        if stat.S_ISDIR(mode_at(path_abs)) and stat.S_IMODE(mode_at(path_abs)) != mode:
            os.chmod(path_abs, mode)
    now = folders(repo, list_paths(repo), list_ignored(repo))
    for path in sorted(now.keys() - point.folders.keys(), reverse=True):
        try:
            os.rmdir(os.path.join(repo.root_abs, path))
        except OSError:
            continue  # something ignored is in it
