"""The folder for what a repository needs outside of itself, and what can be made again.

It lies outside of the working tree and of `.git`, where linters would walk it:
`$XDG_CACHE_HOME/gitgates/REPOSITORY`. In a home that is itself the working tree, it is in `/tmp`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from gitgates.core.errors import StateError
from gitgates.store.files import lock_file, make_folder, read_or_empty, remove_tree, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

_OWNER = "repository"  # the file that has the common git folder of the repository


def cache_path(repo: Repo) -> str:
    """Return the folder for a repository, whether it is there or not."""
    common_abs = os.path.realpath(repo.common_dir_abs)
    name = hashlib.sha256(os.fsencode(common_abs)).hexdigest()[:16]
    folder_abs = f"{_base(repo.env)}/{name}"
    main_abs, git_folder = os.path.split(common_abs)
    trees = (repo.root_abs, main_abs) if git_folder == ".git" else (repo.root_abs,)
    is_inside = any(_is_in(folder_abs, root_abs) for root_abs in trees)
    return f"{_temporary()}/{name}" if is_inside else folder_abs


def cache_folder(repo: Repo) -> str:
    """Make the folder for a repository, and return it. Raises: StateError."""
    common_abs, folder_abs = os.path.realpath(repo.common_dir_abs), cache_path(repo)
    try:
        make_folder(folder_abs)
        above_abs = os.path.dirname(_temporary())
        if folder_abs.startswith(above_abs) and not _is_ours(above_abs):
            raise PermissionError(errno.EACCES, "another user may write to it", above_abs)
        if not os.path.exists(f"{folder_abs}/{_OWNER}"):
            replace_file(f"{folder_abs}/{_OWNER}", os.fsencode(common_abs), sync=False)
    except OSError as error:
        raise StateError(
            f"{folder_abs}: cannot be written: {error.strerror}",
            "Set XDG_CACHE_HOME to a folder that can.",
        ) from error
    return folder_abs


def remove_orphans(env: Mapping[str, str]) -> int:
    """Remove the folders of repositories that are gone; return how many.

    One in which anything is locked stays, and so does what cannot be removed.
    """
    removed = 0
    for base_abs in (_base(env), _temporary()):
        if base_abs == _temporary() and not _is_ours(os.path.dirname(base_abs)):
            continue
        for name in _names(base_abs):
            folder_abs = f"{base_abs}/{name}"
            owner = os.fsdecode(read_or_empty(f"{folder_abs}/{_OWNER}"))
            if not owner or os.path.exists(owner) or _is_used(folder_abs):
                continue
            try:
                remove_tree(folder_abs)
            except OSError:
                continue
            removed += 1
    return removed


def _base(env: Mapping[str, str]) -> str:
    cache_abs = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache_abs):
        cache_abs = f"{env.get('HOME') or os.path.expanduser('~')}/.cache"
    return f"{cache_abs}/gitgates"


def _temporary() -> str:
    return f"/tmp/gitgates-{os.geteuid()}/cache"  # noqa: S108 - `_is_ours` looks whose it is


def _is_ours(folder_abs: str) -> bool:
    """Return whether a folder is ours alone: no other user has made it, or may write to it."""
    try:
        status = os.lstat(folder_abs)
    except OSError:
        return False
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
    )


def _is_in(path_abs: str, root_abs: str) -> bool:
    return f"{os.path.realpath(path_abs)}/".startswith(f"{os.path.realpath(root_abs)}/")


def _names(folder_abs: str) -> list[str]:
    try:
        return os.listdir(folder_abs)
    except OSError:
        return []


def _is_used(folder_abs: str) -> bool:
    locks = [f"{folder_abs}/checkouts/{name}" for name in _names(f"{folder_abs}/checkouts")]
    for lock_abs in locks:
        if lock_abs.endswith(".lock"):
            try:
                fd = lock_file(lock_abs, flags=os.O_RDWR)
            except OSError:
                return True
            if fd < 0:
                return True
            os.close(fd)
    return False
