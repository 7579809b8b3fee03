"""Roll a working tree back to a checkpoint: files, index, HEAD and branch, byte for byte.

Every step may be taken twice: a rollback that was killed is simply begun again. What is in the way
is moved into `replaced/` of the checkpoint, never written over.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from gitgates.errors import GitError, StateError
from gitgates.store.files import remove_file, remove_tree, replace_file
from gitgates.store.rescue import move_aside, move_into_place
from gitgates.worktree.checkpoint import (
    ITS_FILES,
    Checkpoint,
    Content,
    branches,
    copy_file,
    folders,
    hash_algorithm,
    mode_at,
    read_content,
    read_paths,
)

if TYPE_CHECKING:
    from gitgates.git.repo import Repo


def roll_back(point: Checkpoint, repo: Repo) -> list[str]:
    """Put everything back as it was; may be repeated, as after a kill. Return what to say.

    What was in the way is in `replaced/` then. Raises: StateError that names what could not be put
    back, everything else is; GitError.
    """
    notes = _restore_refs(point, repo)
    for name in ITS_FILES:  # there was none of them
        path_abs = f"{repo.git_dir_abs}/{name}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            remove_tree(path_abs)
        else:
            remove_file(path_abs)
    pack_abs = f"{point.folder_abs}/staged.pack"
    if os.path.exists(pack_abs):
        with open(pack_abs, "rb") as file:
            repo.git.out("unpack-objects", "-q", stdin=file.read())
    _restore_index(point, repo)
    failed: list[str] = []
    algorithm = hash_algorithm(repo)
    for path, content in point.paths.items():
        path_abs = os.path.join(repo.root_abs, path)
        try:
            now = read_content(path_abs, algorithm)
            if now is None or now[:2] != content[:2]:
                _put_back(point, repo, path, content)
            if now != content:
                times = (content.time_ns, content.time_ns)
                os.utime(path_abs, ns=times, follow_symlinks=False)
        except (OSError, GitError) as error:
            failed.append(f"`{path}`: {error}")
    for path in read_paths(repo).keys() - point.paths.keys():
        _replace(point, os.path.join(repo.root_abs, path))
    _restore_folders(point, repo)
    if failed:
        what = "not everything could be put back:\n  " + "\n  ".join(failed)
        raise StateError(
            what, f"What there was is in {point.folder_abs}; gitgates recover tries again."
        )
    return notes


def _restore_refs(point: Checkpoint, repo: Repo) -> list[str]:
    """Have HEAD, its branch and what was deleted as they were; return what to say of others."""
    git, notes = repo.git, []
    now = branches(repo)
    for name, commit in point.branches.items():
        if name == point.branch or name not in now:
            git.out("update-ref", "-m", f"gitgates: roll back {point.run}", name, commit)
        elif now[name] != commit:
            notes.append(f"{name} was moved during the run, to {now[name][:12]}; it stays there")
    if point.branch:
        git.out("symbolic-ref", "HEAD", point.branch)
        if not point.head:
            git.out("update-ref", "-d", point.branch)
    else:
        git.out("update-ref", "--no-deref", "HEAD", point.head)
    made = sorted(now.keys() - point.branches.keys() - {point.branch})
    return notes + [f"{name} was made during the run; it stays" for name in made]


def _restore_index(point: Checkpoint, repo: Repo) -> None:
    names = os.listdir(point.folder_abs)
    saved = [name for name in names if name == "index" or name.startswith("sharedindex.")]
    if "index" not in saved:
        remove_file(f"{repo.git_dir_abs}/index")
    for name in saved:
        with open(f"{point.folder_abs}/{name}", "rb") as file:
            replace_file(f"{repo.git_dir_abs}/{name}", file.read(), mode=0o644)


def _put_back(point: Checkpoint, repo: Repo, path: str, content: Content) -> None:
    """Move out what is in the place of a path, and put what was there into it."""
    path_abs = os.path.join(repo.root_abs, path)
    _clear_way(point, repo, path)
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
    """Make the folders that a path needs; what stands in their place is moved out."""
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
    """Have the folders that there were, with their permissions, and no empty ones besides."""
    for path, mode in point.folders.items():
        path_abs = os.path.join(repo.root_abs, path)
        if not mode_at(path_abs):
            os.makedirs(path_abs)
        if stat.S_ISDIR(mode_at(path_abs)) and stat.S_IMODE(mode_at(path_abs)) != mode:
            os.chmod(path_abs, mode)
    for path in sorted(folders(repo).keys() - point.folders.keys(), reverse=True):
        try:
            os.rmdir(os.path.join(repo.root_abs, path))
        except OSError:
            continue  # something ignored is in it
