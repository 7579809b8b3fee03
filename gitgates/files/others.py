"""What is not in our index: untracked files, and what git ignores.

Git lists folders that have nothing of the index as a whole. What each of them is, is known as long
as the rules are the same.
"""

from __future__ import annotations

import os

from gitgates.git.repo import nul_ended, nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.files.facts import LookFacts
    from gitgates.files.index import Index
    from gitgates.git.repo import Repo

# Kinds.
IGNORED = "ignored"  # a file, or a folder as a whole, by a rule
FILE = "file"  # untracked
OPEN = "open"  # a folder that may have files which are not ignored
NESTED = "nested"  # another repository
OURS = "ours"  # the git folder of this repository, or another worktree of it
_LISTING = ("ls-files", "-z", "--others", "--exclude-standard")
_MOST_ARGS = 64 << 10


def classify(repo: Repo, index: Index, facts: LookFacts, others: list[str]) -> list[str]:
    """Note the kind of each; return the untracked files in it, which are to be stored.

    Raises: UnseenError, TimeOver, OSError.
    """
    kinds = {item: facts.kinds[item] for item in others if item in facts.kinds}
    for item in [item for item, kind in kinds.items() if kind == NESTED]:
        if not nested_kind(repo, item):
            del kinds[item]
    new = [item for item in others if item not in kinds]
    own = own_folders(repo)
    for item in new:
        if item.startswith(own):
            kinds[item] = OURS
        elif item.endswith("/") and (kind := nested_kind(repo, item)):
            kinds[item] = kind
    new = [item for item in new if item not in kinds]
    open_items = [*new, *(item for item, kind in kinds.items() if kind == OPEN)]
    open_items = [item for item in open_items if not (item.endswith("/") and _is_empty(repo, item))]
    untracked_items = list_untracked(index, open_items) if open_items else []
    if new:
        ignored = set(_ignored(index, new))
        untracked = set(untracked_items)
        for item in new:
            if item.endswith("/"):
                kinds[item] = IGNORED if item in ignored else OPEN
            else:
                kinds[item] = FILE if item in untracked else IGNORED
    facts.kinds = kinds
    files = [item for item, kind in kinds.items() if kind == FILE]
    inside = [path for path in untracked_items if path not in kinds]
    return [path for path in (*files, *inside) if not path.startswith(own)]


def list_untracked(index: Index, items: list[str]) -> list[str]:
    """Return the untracked files among these items; another repository has a slash at the end."""
    paths = items if sum(map(len, items)) < _MOST_ARGS else []
    return nul_split(index.out(*_LISTING, "--", *paths))


def own_folders(repo: Repo) -> tuple[str, ...]:
    """Return where git's folders are, which may have another name than .git; with a slash."""
    folders = {repo.git_dir_abs, repo.common_dir_abs}
    return tuple(f"{os.path.relpath(folder, repo.root_abs)}/" for folder in folders)


def nested_kind(repo: Repo, folder: str) -> str:
    """Return NESTED or OURS for a folder that is the root of a repository; empty: it is none."""
    folder_abs = f"{repo.root_abs}/{folder.rstrip('/')}"
    git_abs = f"{folder_abs}/.git"
    if os.path.isdir(git_abs):
        return NESTED if os.path.isfile(f"{git_abs}/HEAD") else ""
    try:
        with open(git_abs, "rb") as file:
            line = os.fsdecode(file.read(4096))
    except OSError:
        return ""
    if not line.startswith("gitdir: "):
        return ""
    git_dir_abs = os.path.join(folder_abs, line.removeprefix("gitdir: ").rstrip("\r\n"))
    try:
        with open(f"{git_dir_abs}/commondir", "rb") as file:
            common = os.fsdecode(file.read(4096)).rstrip("\r\n")
        if os.path.samefile(os.path.join(git_dir_abs, common), repo.common_dir_abs):
            return OURS
    except OSError:
        pass
    return NESTED


def _is_empty(repo: Repo, folder: str) -> bool:
    try:
        with os.scandir(f"{repo.root_abs}/{folder}") as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _ignored(index: Index, items: Iterable[str]) -> list[str]:
    """Return the folders that a rule ignores as a whole."""
    names = {item.rstrip("/"): item for item in items if item.endswith("/")}
    if not names:
        return []
    # Without the slash: with it, a .gitignore inside would count. It refuses literal pathspecs.
    ask = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    return [names[name] for name in nul_split(index.ask(*ask, stdin=nul_ended(names)).stdout)]
