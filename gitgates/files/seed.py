"""Make a worktree's first index from the user's, so that its files need not be read again.

Its times are kept, for git's check of racy entries. An entry stays if the file has as many bytes as
the object, and no filter: conversions of line ends and of `$Id$` change the length. Entries that
are flagged, in conflict, or announced with `git add -N` are dropped, too.
"""

from __future__ import annotations

import os

from gitgates.files.facts import facts_of, identity
from gitgates.files.rules import attribute_files
from gitgates.git.index import copy_index
from gitgates.git.repo import nul_ended
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.files.facts import LookFacts, Stat
    from gitgates.files.index import Index
    from gitgates.files.memory import Memory
    from gitgates.files.permissions import Permissions

_LISTING = ("ls-files", "-z", "--stage", "-v")
_REMOVE = ("update-index", "--force-write-index", "--force-remove", "-z", "--stdin")
_SIZES = ("cat-file", "--batch-check=%(objectsize)", "--buffer")
_FILTERS = ("check-attr", "-z", "--stdin", "filter", "working-tree-encoding")
_OFF = (b"unspecified", b"unset")


def seed(
    memory: Memory, index: Index, facts: LookFacts, permissions: Permissions
) -> dict[str, Stat]:
    """Make the index; return path → what `lstat` says, if that must be noted.

    If it has all that the user's has, the two need not be compared, which the facts say.

    Raises: UnseenError, TimeOver, OSError.
    """
    repo, new_abs = memory.repo, f"{index.path_abs}.new"  # until it is complete
    users_abs = f"{repo.git_dir_abs}/index"
    if not os.path.exists(users_abs):
        index.begin_empty()
        return {}
    git = memory.users_git(new_abs)

    def out(args: tuple[str, ...], stdin: bytes = b"") -> bytes:
        return index.output_of(args, git.ask(*args, stdin=stdin))

    remove_file(f"{new_abs}.lock")
    facts.users, facts.modules, facts.unlisted = identity(users_abs), [], []
    copy_index(users_abs, new_abs)
    ids, paths, dropped = list[bytes](), list[bytes](), set[bytes]()
    for entry in out(_LISTING).split(b"\0")[:-1]:
        meta, _tab, path = entry.partition(b"\t")
        # Source: git-ls-files(1), -v: H is an entry without flags.
        if meta[:2] != b"H " or meta[-2:] != b" 0":
            dropped.add(path)
        elif meta.startswith(b"H 160000"):
            facts.modules.append(os.fsdecode(path))
        else:
            ids.append(meta[9:-2])
            paths.append(path)
    sizes = out(_SIZES, b"\n".join([*ids, b""])).split(b"\n")
    stats, different = _look(repo.root_abs, dict(zip(paths, sizes, strict=False)), permissions)
    dropped |= different
    is_named = any(path.endswith(b".gitattributes") for path in (*paths, *dropped))
    is_set = "core.attributesfile" in dict(index.settings)
    if is_named or is_set or any(map(os.path.exists, attribute_files(repo))):
        fields = out(_FILTERS, b"\0".join([*paths, b""])).split(b"\0")
        values = zip(fields[::3], fields[2::3], strict=False)
        dropped |= {path for path, value in values if value not in _OFF}
    names = [os.fsdecode(path) for path in dropped]
    # Even if nothing is dropped: the user's may be split, or sparse.
    out(_REMOVE, nul_ended(names))
    os.rename(new_abs, index.path_abs)
    facts.own_paths = None if dropped else []
    for name in names:
        stats.pop(name, None)
    return stats


def _look(
    root_abs: str, sizes: Mapping[bytes, bytes], permissions: Permissions
) -> tuple[dict[str, Stat], set[bytes]]:
    """Return what must be noted of files, and those that differ from the objects."""
    stats: dict[str, Stat] = {}
    different = set[bytes]()
    root_fd = os.open(root_abs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for path, size in sizes.items():
        try:
            now = os.lstat(path, dir_fd=root_fd)
        except OSError:
            different.add(path)
            continue
        # What `git add -N` announced has the empty blob.
        if b"%d" % now.st_size != size or size == b"0":
            different.add(path)
        elif not permissions.is_usual(now):
            stats[os.fsdecode(path)] = facts_of(now)
    os.close(root_fd)
    return stats, different
