"""Keep objects that the user's repository may lose, by links to its files.

`git reset`, `reflog expire` and `gc --prune=now` in one line remove what no ref names. A
hard link to a pack or an object costs nothing, and stays. If there can be no links, new commits
are copied. `refs/held/WORKTREE` names what points name, so that pruning keeps it.
"""

from __future__ import annotations

import os
import time

from gitgates.store.files import make_folder, read_or_empty, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.files.memory import Memory

_SETTLED_NS = 2_000_000_000
_ATTEMPTS = 20  # a `gc` removes folder after folder
_MOST_PARENTS = 500  # of one commit
_PREFIX = 2  # of an id: the name of a folder with loose objects
_HEX = frozenset("0123456789abcdef")


def link_objects(memory: Memory, linked_mtimes: dict[str, int]) -> bool:
    """Link what the user's object folder has and ours lacks; return whether that was possible.

    `linked_mtimes` is folder → mtime when it was looked at last; it is brought up to date.

    Raises: OSError, FileNotFoundError if a `gc` beside it does not end.
    """
    for _attempt in range(_ATTEMPTS):
        try:
            return _link_all(memory, linked_mtimes)
        except FileNotFoundError:  # packed just now; that pack may have been missed
            continue
    return _link_all(memory, linked_mtimes)


def _link_all(memory: Memory, linked_mtimes: dict[str, int]) -> bool:
    users_abs, own_abs = memory.users_objects_abs, f"{memory.folder_abs}/objects"
    began_ns, all_linked = time.time_ns(), True
    for entry in os.scandir(users_abs):
        is_loose = len(entry.name) == _PREFIX and _HEX.issuperset(entry.name)
        if not (is_loose or entry.name == "pack"):
            continue
        mtime_ns = os.stat(entry.path).st_mtime_ns
        if linked_mtimes.get(entry.name) == mtime_ns:
            continue
        make_folder(f"{own_abs}/{entry.name}")
        names = _loose(entry.path) if is_loose else _packs(entry.path)
        linked = [_link(f"{entry.path}/{name}", f"{own_abs}/{entry.name}/{name}") for name in names]
        is_linked = all(linked)
        all_linked = all_linked and is_linked
        if is_linked and mtime_ns < began_ns - _SETTLED_NS:
            linked_mtimes[entry.name] = mtime_ns
    return all_linked


def _loose(folder_abs: str) -> list[str]:
    return [name for name in os.listdir(folder_abs) if _HEX.issuperset(name)]


def _packs(folder_abs: str) -> list[str]:
    """Return the pack files, a pack's index last: git looks for that."""
    names = os.listdir(folder_abs)
    packs = {name.removesuffix(".idx") for name in names if name.endswith(".idx")}
    files = [name for name in names if name.rpartition(".")[0] in packs]
    pack_names = [
        name for name in files if name.endswith((".pack", ".rev", ".promisor", ".mtimes"))
    ]
    return [*pack_names, *(f"{pack}.idx" for pack in packs)]


def _link(source_abs: str, target_abs: str) -> bool:
    try:
        os.link(source_abs, target_abs)
    except FileExistsError:
        return True
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def hold_commits(memory: Memory, commits: Iterable[str], *, copied: bool) -> None:
    """Make pruning keep commits with all that they need. `copied`: they could not be linked.

    Raises: OSError, GitError.
    """
    before = memory.read_ref(memory.held_ref)
    new = list(dict.fromkeys(commits))
    if copied and new:
        # What HEAD had at first is taken to stay.
        lines = [*new, f"^{before or new[0]}"]
        stdin = "".join(f"{line}\n" for line in lines).encode()
        folder_abs = f"{memory.folder_abs}/objects/pack"
        make_folder(folder_abs)
        memory.ask("pack-objects", "--revs", "-q", f"{folder_abs}/pack", stdin=stdin)
    share_shallow(memory)
    for start in range(0, len(new), _MOST_PARENTS):
        parents = [*([before] if before else []), *new[start : start + _MOST_PARENTS]]
        before = name_commits(memory, parents)


def name_commits(memory: Memory, commits: list[str]) -> str:
    """Make the ref of what is held name only these commits; return its own. Raises: OSError."""
    held = memory.write_commit(
        memory.write_tree([]), commits, name="gitgates", message="held", time_s=0.0
    )
    memory.write_ref(memory.held_ref, held)
    return held


def share_shallow(memory: Memory, cuts: Iterable[str] | None = None) -> None:
    """Tell git where the history of the user's commits ends, and that of points. Raises: OSError.

    `cuts`: points that no longer have parents; None: unchanged.
    """
    cuts_abs, shallow_abs = f"{memory.folder_abs}/cuts", f"{memory.folder_abs}/shallow"
    own_cuts = read_or_empty(cuts_abs)
    if cuts is not None:
        own_cuts = b"".join([b"%s\n" % cut.encode() for cut in cuts])
        replace_file(cuts_abs, own_cuts)
    users = read_or_empty(f"{memory.repo.common_dir_abs}/shallow")
    pack_names = b"".join(
        sorted({*own_cuts.splitlines(keepends=True), *users.splitlines(keepends=True)})
    )
    if pack_names != read_or_empty(shallow_abs):
        if pack_names:
            replace_file(shallow_abs, pack_names)
        else:
            os.unlink(shallow_abs)
