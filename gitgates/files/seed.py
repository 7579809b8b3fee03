"""Make a worktree's first index from the user's, so that its files need not be read again.

Its times are kept, for git's check of racy entries. An entry stays if the file has as many bytes as
the object, and no filter: conversions of line ends and of `$Id$` change the length. Entries that
are flagged, in conflict, or announced with `git add -N` are dropped, too.
"""

from __future__ import annotations

import os
import time

from gitgates.files.facts import facts_of
from gitgates.files.permissions import SETTLED_S
from gitgates.files.rules import attribute_files
from gitgates.git.index import copy_index
from gitgates.git.repo import nul_ended
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.files.facts import Stat
    from gitgates.files.index import Index
    from gitgates.files.memory import Memory

_LISTING = ("ls-files", "-z", "--stage", "-v")
_REMOVE = ("update-index", "--force-write-index", "--force-remove", "-z", "--stdin")
_SIZES = ("cat-file", "--batch-check=%(objectsize)", "--buffer")
_FILTERS = ("filter", "working-tree-encoding")
# Source: git-ls-files(1), -v: assume-unchanged is lower case, skip-worktree is S. What `git add -N`
# announced has the empty blob.
_PLAIN = (b"H 100644 ", b"H 100755 ", b"H 120000 ")
_NO_CONFLICT = b" 0\t"
_SUBMODULE = "160000"
_EMPTY = {
    "sha1": b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "sha256": b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}


class Seed:
    """The user's index, copied, to be compared with the files."""

    def __init__(self, memory: Memory, index: Index, umask: int) -> None:
        self._memory = memory
        self._index = index
        self._repo = memory.repo
        self._umask = umask
        self._new_abs = f"{index.path_abs}.new"  # until it is complete
        self._ids: list[bytes] = []  # of the entries that may stay
        self._paths: list[bytes] = []  # of the same
        self._flagged_modules: dict[str, str] = {}
        self.dropped: list[str] = []  # of those that do not stay, to be stored again
        self.modules: list[str] = []
        self.unusual: dict[str, Stat] = {}  # files that may have, or get, unusual permissions

    def make(self) -> None:
        """Make the index. Raises: UnseenError, TimeOver, OSError."""
        users_abs = f"{self._repo.git_dir_abs}/index"
        if not os.path.exists(users_abs):
            self._index.begin_empty()
            return
        remove_file(f"{self._new_abs}.lock")
        copy_index(users_abs, self._new_abs)
        self._read_entries()
        ids = b"\n".join([*self._ids, b""])
        lengths, sizes = self._look(), self._index.out(*_SIZES, stdin=ids).split(b"\n")[:-1]
        self._drop(
            path
            for path, length, size in zip(self._paths, lengths, sizes, strict=True)
            if b"%d" % length != size
        )
        self._drop(self._filtered())
        flagged = self._flagged_modules
        # Even if nothing is: the user's may be split, or sparse.
        self._out(*_REMOVE, stdin=nul_ended((*self.dropped, *flagged)))
        if flagged:
            lines = "".join(f"{meta}\t{path}\0" for path, meta in flagged.items())
            self._out("update-index", "-z", "--index-info", stdin=os.fsencode(lines))
        os.rename(self._new_abs, self._index.path_abs)

    def _drop(self, paths: Iterable[bytes]) -> None:
        if dropped := set(paths):
            self._paths = [path for path in self._paths if path not in dropped]
            self.dropped += map(os.fsdecode, dropped)

    def _read_entries(self) -> None:
        """Read the entries that may stay; the others are dropped, or submodules."""
        empty, ids, paths = _EMPTY[self._repo.object_format], self._ids, self._paths
        others, start, end = list[bytes](), len(_PLAIN[0]), len(_PLAIN[0]) + len(empty)
        name = end + len(_NO_CONFLICT)
        for entry in self._out(*_LISTING).split(b"\0")[:-1]:
            is_plain = entry[:start] in _PLAIN and entry[end:name] == _NO_CONFLICT
            if is_plain and (object_id := entry[start:end]) != empty:
                ids.append(object_id)
                paths.append(entry[name:])
            else:
                others.append(entry)
        dropped = dict[str, None]()
        for entry in others:
            meta, _tab, path = os.fsdecode(entry).partition("\t")
            tag, mode, blob, stage = meta.split(" ")
            if mode == _SUBMODULE and stage == "0":
                self.modules.append(path)
                if tag != "H":
                    self._flagged_modules[path] = f"{mode} {blob}"
            else:
                dropped[path] = None
        self.dropped = list(dropped)

    def _look(self) -> list[int]:
        """Return how many bytes each file has, or a link; -1 if there is none."""
        lengths, lstat = list[int](), os.lstat
        settled_s = time.time() - SETTLED_S
        root = os.stat(self._repo.root_abs)
        owner, plain = root.st_uid, {0o666 & ~self._umask, 0o777 & ~self._umask}
        fd = os.open(self._repo.root_abs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for path in self._paths:
                try:
                    now = lstat(path, dir_fd=fd)
                except OSError:
                    lengths.append(-1)
                    continue
                lengths.append(now.st_size)
                is_plain = now.st_mode & 0o7777 in plain and now.st_uid == owner
                if not is_plain or now.st_gid != root.st_gid or now.st_ctime > settled_s:
                    self.unusual[os.fsdecode(path)] = facts_of(now)
        finally:
            os.close(fd)
        return lengths

    def _filtered(self) -> set[bytes]:
        """Return the paths that git converts in a way that need not change their length."""
        is_named = any(path.endswith(b".gitattributes") for path in self._paths)
        if not (is_named or self.dropped or self._has_attributes()):
            return set()
        ask = ("check-attr", "-z", "--stdin", *_FILTERS)
        stdin = b"\0".join([*self._paths, b""])
        fields = self._out(*ask, stdin=stdin).split(b"\0") if self._paths else []
        return {
            path
            for path, value in zip(fields[::3], fields[2::3], strict=False)
            if value not in {b"unspecified", b"unset"}
        }

    def _has_attributes(self) -> bool:
        if any(map(os.path.exists, attribute_files(self._repo))):
            return True
        return "core.attributesfile" in dict(self._index.settings)

    def _out(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git in the user's repository, on the copy."""
        git = self._memory.users_git(self._new_abs)
        return self._index.output_of(args, git.ask(*args, stdin=stdin))
