"""What our index has only because the user's has it: submodules, ignored files that are tracked."""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.files.others import FILE, IGNORED, nested_kind
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gitgates.files.facts import LookFacts
    from gitgates.files.index import Index
    from gitgates.files.memory import Memory

_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_MOST_ARGS = 64 << 10
_SUBMODULE = "160000"


class Compared(Record):
    """What the user's index says."""

    away: list[str]  # paths that are to be removed from ours
    files: list[str]  # paths that are to be stored


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
        ours = nul_split(index.out(*_IGNORED))
        theirs = nul_split(users_index(*_IGNORED))
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
    """Return whether an entry of the user's is one of the items, or in a folder among them."""
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
