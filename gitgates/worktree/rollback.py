"""Roll a working tree back to a checkpoint: files, index, HEAD and branch, byte for byte.

Every step may be taken twice: a rollback that was killed is simply begun again. What is in the way
is moved into `replaced/` of the checkpoint, never written over.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from gitgates.errors import GitError, StateError
from gitgates.git.listing import list_ignored, list_paths
from gitgates.store.files import remove_file, remove_tree, replace_file
from gitgates.store.rescue import move_aside, move_into_place
from gitgates.worktree.checkpoint import (
    ITS_FILES,
    Checkpoint,
    Content,
    branches,
    compare,
    copy_file,
    folders,
    mode_at,
    read_content,
)

if TYPE_CHECKING:
    from gitgates.git.repo import Repo


_MOST_PASSES = 10  # ignore files below one another, or somebody who goes on writing


def roll_back(point: Checkpoint, repo: Repo) -> list[str]:
    """Restore a checkpoint; may be repeated, as after a kill. Return notes for the person.

    What was in the way is in `replaced/` then. Raises: GitError; StateError that names what could
    not be restored, when everything else is.
    """
    failed: list[str] = []
    notes = _restore_refs(point, repo, failed)
    for name in ITS_FILES:  # there was none of them
        path_abs = f"{repo.git_dir_abs}/{name}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            remove_tree(path_abs)
        else:
            remove_file(path_abs)
    restore_index(point, repo)
    algorithm = repo.object_format
    for path, content in point.paths.items():
        path_abs = os.path.join(repo.root_abs, path)
        try:
            _clear_way(point, repo, path)
            now = read_content(path_abs, algorithm)
            if now is None or now[:2] != content[:2]:
                _put_back(point, repo, path, content)
            if now != content:
                times = (content.time_ns, content.time_ns)
                os.utime(path_abs, ns=times, follow_symlinks=False)
        except (OSError, GitError) as error:
            failed.append(f"`{path}`: {error}")
    try:
        _remove_added(point, repo, failed)
        _restore_folders(point, repo)
    except OSError as error:
        failed.append(str(error))
    if failed:
        what = "not everything could be put back:\n  " + "\n  ".join(failed)
        hint = f"gitgates recover --roll-back {point.run} tries again."
        raise StateError(what, f"What there was is in {point.folder_abs}; {hint}")
    return notes


def _remove_added(point: Checkpoint, repo: Repo, failed: list[str]) -> None:
    """Move new files out, again until there are none: a restored .gitignore shows others."""
    added: tuple[str, ...] = ()
    for _ in range(_MOST_PASSES):
        added = compare(point, repo).added
        if not added:
            return
        for path in added:
            _replace(point, os.path.join(repo.root_abs, path))
    failed += [f"`{path}`: something makes such files again and again" for path in added]


def _restore_refs(point: Checkpoint, repo: Repo, failed: list[str]) -> list[str]:
    """Restore HEAD, its branch and deleted branches; return notes on other branches."""
    now = branches(repo)
    why = ("-m", f"gitgates: roll back {point.run}")
    lost = [name for name in point.branches if name == point.branch or name not in now]
    asked: list[tuple[str, ...]] = [
        ("update-ref", *why, name, point.branches[name]) for name in lost
    ]
    if point.branch:
        asked.append(("symbolic-ref", *why, "HEAD", point.branch))
        if not point.head:
            asked.append(("update-ref", "-d", point.branch))
    else:
        asked.append(("update-ref", *why, "--no-deref", "HEAD", point.head))
    for one in asked:
        try:
            repo.git.out(*one)
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
    made = sorted(now.keys() - point.branches.keys() - {point.branch})
    return notes + [f"{name} was made during the run" for name in made]


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


def _put_back(point: Checkpoint, repo: Repo, path: str, content: Content) -> None:
    """Move aside what is at a path, and restore its content there."""
    path_abs = os.path.join(repo.root_abs, path)
    if mode_at(path_abs):
        _replace(point, path_abs)
    saved_abs = f"{point.folder_abs}/files/{content.digest}"
    part_abs = f"{point.folder_abs}/part"
    remove_file(part_abs)
    if stat.S_ISLNK(content.mode):
        os.symlink(content.digest, part_abs)
    elif os.path.exists(saved_abs):
        copy_file(saved_abs, part_abs)
        os.chmod(part_abs, stat.S_IMODE(content.mode))
    else:
        raw = repo.git.out("cat-file", "blob", content.digest)
        replace_file(part_abs, raw, mode=stat.S_IMODE(content.mode))
    move_into_place(part_abs, path_abs)


def _clear_way(point: Checkpoint, repo: Repo, path: str) -> None:
    """Make the parent folders of a path; what is in their place is moved aside."""
    folder_abs = repo.root_abs
    for name in path.split("/")[:-1]:
        folder_abs = f"{folder_abs}/{name}"
        if not stat.S_ISDIR(mode_at(folder_abs)):
            if mode_at(folder_abs):
                _replace(point, folder_abs)
            os.mkdir(folder_abs)


def _replace(point: Checkpoint, path_abs: str) -> None:
    """Move what the run left into `replaced/`."""
    replaced_abs = f"{point.folder_abs}/replaced"
    os.makedirs(replaced_abs, mode=0o700, exist_ok=True)
    move_aside(path_abs, f"{replaced_abs}/{len(os.listdir(replaced_abs))}")


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
