"""What our index lacks, and what it has only because the user's index has it.

It lacks untracked files, and what git ignores. Git lists a folder as a whole if the index has
nothing in it; whether it is ignored is remembered as long as the rules are the same. From the
user's index come submodules, and ignored files that are tracked.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.git.repo import nul_ended, nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from gitgates.files.facts import LookFacts
    from gitgates.files.index import Index
    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo

# Kinds.
IGNORED = "ignored"  # a file, or a folder as a whole, by a rule
FILE = "file"  # untracked
OPEN = "open"  # a folder that may have files which are not ignored
NESTED = "nested"  # another repository
OURS = "ours"  # the git folder of this repository, or another worktree of it
_LISTING = ("ls-files", "-z", "--others", "--exclude-standard")
_TRACKED_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_MOST_ARGS = 64 << 10
_SUBMODULE = "160000"


def classify(repo: Repo, index: Index, facts: LookFacts, others: list[str]) -> list[str]:
    """Note the kind of each; return the untracked files in it, which must be stored.

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
    """Return NESTED or OURS for a folder that is a repository's root; empty for any other."""
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


class Compared(Record):
    """What the user's index says."""

    away: list[str]  # paths that must be removed from ours
    files: list[str]  # paths that must be stored


def compare(
    memory: Memory, index: Index, facts: LookFacts, untracked: Collection[str], *, anew: bool
) -> Compared:
    """Compare with the user's index; put its submodules into ours.

    `untracked` is what is not in ours, and not ignored. `anew`: other files may be ignored now.

    Raises: UnseenError, TimeOver, OSError, GitError.
    """
    repo = memory.repo

    def users_index(*args: str) -> bytes:
        return index.output_of(args, memory.users_git().ask(*args))

    if anew:
        ours = nul_split(index.out(*_TRACKED_IGNORED))
        theirs = nul_split(users_index(*_TRACKED_IGNORED))
        facts.forced = dict.fromkeys((*ours, *theirs), "")
        facts.absent = [path for path in theirs if path not in set(ours)]
    forced = facts.forced or {}
    items = [item for item, kind in facts.kinds.items() if kind != FILE]
    users = _users_entries(users_index, [*items, *forced, *facts.modules])
    away = [path for path in (*forced, *facts.modules) if path not in users]
    for path in away:
        kind = nested_kind(repo, path) if path in facts.modules else IGNORED
        if kind and os.path.lexists(f"{repo.root_abs}/{path}"):
            facts.kinds[path if kind == IGNORED else f"{path}/"] = kind
    # What is in these is not in our index.
    there, inside = set(items), tuple(item for item in items if item.endswith("/"))
    new = {
        path: meta
        for path, meta in users.items()
        if path not in untracked
        and _is_among(path, meta, there, inside)
        and os.path.lexists(f"{repo.root_abs}/{path}")
    }
    modules = {path: meta for path, meta in new.items() if meta.startswith(_SUBMODULE)}
    if modules:
        facts.tree = ""
        index.put(os.fsencode("".join(f"{meta}\t{path}\0" for path, meta in modules.items())))
        index.add({path: 0 for path in modules if nested_kind(repo, path)})
    files = [path for path in new if path not in modules]
    removed_paths = set(away)
    facts.modules = [
        path for path in {**dict.fromkeys(facts.modules), **modules} if path not in removed_paths
    ]
    facts.forced = {path: "" for path in (*forced, *files) if path not in removed_paths}
    facts.absent = [path for path in facts.absent if path in facts.forced and path not in new]
    return Compared(away=away, files=files)


def _is_among(path: str, meta: str, items: set[str], inside: tuple[str, ...]) -> bool:
    """Return whether a user's entry is one of the items, or in a folder among them."""
    is_module = meta.startswith(_SUBMODULE) and f"{path}/" in items
    return is_module or path in items or path.startswith(inside)


def _users_entries(users_index: Callable[..., bytes], paths: list[str]) -> dict[str, str]:
    """Return path → mode and id of what the user's index has at these paths, or below them."""
    if not paths:
        return {}
    path_args = paths if sum(map(len, paths)) < _MOST_ARGS else []
    listing = ("ls-files", "-z", "--stage", "--", *(name.rstrip("/") for name in path_args))
    entries = (entry.partition("\t") for entry in nul_split(users_index(*listing)))
    # Of one in conflict, the last one counts.
    return {path: meta.rpartition(" ")[0] for meta, _tab, path in entries}
