"""The folder for what a repository needs outside of itself, and what can be made again.

It lies outside of the working tree and of `.git`, where linters would walk it:
`$XDG_CACHE_HOME/gitgates/REPOSITORY`, or below `~/.cache` if that is in the working tree.
"""

from __future__ import annotations

import hashlib
import os

from gitgates.core.errors import StateError
from gitgates.store.files import make_folder, read_or_empty, remove_tree, replace_file
from gitgates.store.slots import kept_slots, prune_slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

_OWNER = "repository"  # the file that has the common git folder of the repository
_HINT = "Set XDG_CACHE_HOME to a folder outside the working tree that can be written."


def cache_path(repo: Repo) -> str:
    """Return the folder for a repository, whether it is there or not."""
    common_abs = os.path.realpath(repo.common_dir_abs)
    name = hashlib.sha256(os.fsencode(common_abs)).hexdigest()[:16]
    places = [f"{base_abs}/{name}" for base_abs in _bases(repo.env)]
    return next((place for place in places if not _is_inside(repo, place)), places[-1])


def cache_folder(repo: Repo) -> str:
    """Make the folder for a repository, and return it. Raises: StateError."""
    common_abs, folder_abs = os.path.realpath(repo.common_dir_abs), cache_path(repo)
    if _is_inside(repo, folder_abs):
        raise StateError(
            f"{folder_abs}: is in the working tree, where linters would walk it", _HINT
        )
    try:
        make_folder(folder_abs)
        if not os.path.exists(f"{folder_abs}/{_OWNER}"):
            replace_file(f"{folder_abs}/{_OWNER}", os.fsencode(common_abs), sync=False)
    except OSError as error:
        raise StateError(f"{folder_abs}: cannot be written: {error.strerror}", _HINT) from error
    return folder_abs


def _is_inside(repo: Repo, path_abs: str) -> bool:
    main_abs, git_folder = os.path.split(os.path.realpath(repo.common_dir_abs))
    trees = (repo.root_abs, main_abs) if git_folder == ".git" else (repo.root_abs,)
    return any(_is_in(path_abs, tree) for tree in trees)


def remove_orphans(env: Mapping[str, str]) -> int:
    """Remove the folders of repositories that are gone; return how many.

    One with a checkout that is in use stays, and so does what cannot be removed.
    """
    removed = 0
    for base_abs in _bases(env):
        for name in _names(base_abs):
            folder_abs = f"{base_abs}/{name}"
            owner = os.fsdecode(read_or_empty(f"{folder_abs}/{_OWNER}"))
            if not owner or os.path.exists(owner):
                continue
            prune_slots(f"{folder_abs}/checkouts", 0)
            if kept_slots(f"{folder_abs}/checkouts"):
                continue
            try:
                remove_tree(folder_abs)
            except OSError:
                continue
            removed += 1
    return removed


def _bases(env: Mapping[str, str]) -> list[str]:
    home_abs = env.get("HOME") or os.path.expanduser("~")
    caches = dict.fromkeys((env.get("XDG_CACHE_HOME", ""), f"{home_abs}/.cache"))
    return [f"{cache_abs}/gitgates" for cache_abs in caches if os.path.isabs(cache_abs)]


def _is_in(path_abs: str, root_abs: str) -> bool:
    return f"{os.path.realpath(path_abs)}/".startswith(f"{os.path.realpath(root_abs)}/")


def _names(folder_abs: str) -> list[str]:
    try:
        return os.listdir(folder_abs)
    except OSError:
        return []
