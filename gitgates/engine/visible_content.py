"""What the gates of a run can see: the tree, and the raw bytes where they may differ from it.

Where that cannot be told for certain, there is no tree.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record, lazy
from gitgates.engine.match import select
from gitgates.git.index import SETTINGS
from gitgates.git.object_store import quoted, reading_git
from gitgates.git.snapshot import take_snapshot
from gitgates.store.proofs import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.repo import Git, Repo

_MODULE = b"160000"
LINK = b"120000"
# What has git write other bytes into the working tree than a blob holds. See gitattributes(5).
_CONVERTING = (b"text", b"eol", b"crlf", b"ident", b"filter", b"working-tree-encoding")
# With the first two off, git does not see every change of a mode or of a link.
_SETTINGS = r"^core\.(filemode|symlinks|autocrlf|eol|attributesfile)$"
_USUAL = {b"core.filemode\ntrue", b"core.symlinks\ntrue", b"core.autocrlf\nfalse", b""}
_SYSTEM_ATTRIBUTES = ("/etc/gitattributes", "/usr/local/etc/gitattributes")
_UNSTAGED = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
_KEPT_BITS = 0o170100  # the type, and whether the owner may execute it


class TreeFile(Record):
    """One entry of a tree."""

    mode: bytes
    blob: bytes  # its id
    size: bytes  # of the blob; `-`: of another repository
    path: str


class VisibleContent:
    """The content that gates see at one moment."""

    def __init__(self, repo: Repo, checkout: Repo | None) -> None:
        self._repo, self._checkout = repo, checkout
        self._there = checkout or repo

    @lazy
    def tree(self) -> str:
        """Return the id of the tree; empty if the same tree may be another content."""
        try:
            tree = self._checked_out() if self._checkout else self._in_working_tree()
        except (GitgatesError, OSError):
            return ""
        return tree

    @lazy
    def identity(self) -> str:
        """Return a digest that another content does not have; empty where there is no tree."""
        if not self.tree:
            return ""
        try:
            raw = self._raw_ids if self._is_converted else {}
        except (GitgatesError, OSError):
            return ""
        return digest(self.tree, *raw.values()) if raw else self.tree

    @property
    def stamp(self) -> str:
        """Return a digest that changes with each write to a file, though its bytes be the same.

        Git compares times in seconds. Raises: GitError or OSError.
        """
        return digest(repr([*self._stats.values()]))

    def identity_of(self, paths: Iterable[str]) -> str:
        """Return such a digest of some files; those that are not there do not count.

        Raises: GitError.
        """
        return digest(*self.digests(paths).values()) if self.identity else ""

    def select(
        self, files: tuple[str, ...] | None, exclude: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """Return the paths that patterns select; None selects all. Raises: GitError."""
        return select(tuple(self.files), files, exclude)

    @property
    def names(self) -> str:
        """Return a digest of the paths of all files. Raises: GitError."""
        return digest("\0".join(self.files))

    def digests(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return path → a digest of path, mode and content, of those that are there.

        Raises: GitError.
        """
        files, raw_ids = self.files, self._raw_ids if self._is_converted else {}
        there = (files[path] for path in paths if path in files)
        return {
            file.path: bytes.fromhex(
                digest(file.path, file.mode, file.blob, raw_ids.get(file.path, b""))
            )
            for file in there
        }

    @lazy
    def files(self) -> dict[str, TreeFile]:
        """Return path → file of the tree. Raises: GitError."""
        options = ("-r", "-z", "--long", "--full-tree")
        files = {}
        for entry in self._git.out("ls-tree", *options, self.tree).split(b"\0")[:-1]:
            meta, _, name = entry.partition(b"\t")
            mode, _kind, blob, size = meta.split()
            path = os.fsdecode(name)
            files[path] = TreeFile(mode=mode, blob=blob, size=size, path=path)
        return files

    @property
    def _git(self) -> Git:
        return self._there.git if self._checkout else reading_git(self._repo)

    def _in_working_tree(self) -> str:
        snapshot = take_snapshot(self._repo)
        return snapshot.tree if snapshot.provable else ""

    def _checked_out(self) -> str:
        git = self._there.git.with_settings(SETTINGS)
        if any(entry[1:2] != b" " for entry in git.out(*_UNSTAGED).split(b"\0")[:-1]):
            return ""
        # Submodules are not there, so the working tree may have another content for this tree.
        listed = git.out("ls-files", "--stage", "-z").split(b"\0")
        if any(entry.startswith(_MODULE) for entry in listed):
            return ""
        return git.out("write-tree").decode().strip()

    @lazy
    def _is_converted(self) -> bool:
        """Whether one tree may stand for several contents, because git converts or ignores some.

        Git trusts a file that it once has converted, also where it would not convert it now, so
        the sizes are compared as well.
        """
        repo = self._repo
        settings = self._there.git.ask("config", "-z", "--get-regexp", _SETTINGS).stdout
        if set(settings.split(b"\0")) - _USUAL:
            return True
        config_abs = repo.env.get("XDG_CONFIG_HOME", "") or f"{repo.env.get('HOME', '')}/.config"
        places = [f"{repo.common_dir_abs}/info/attributes", f"{config_abs}/git/attributes"]
        places += [
            os.path.join(self._there.root_abs, path)
            for path in self.files
            if path.rpartition("/")[2] == ".gitattributes"
        ]
        contents = map(_read, (*places, *_SYSTEM_ATTRIBUTES))
        if any(word in content for content in contents for word in _CONVERTING):
            return True
        sizes = zip(self.files.values(), self._stats.values(), strict=True)
        return any(file.mode == _MODULE or int(file.size) != now[1] for file, now in sizes)

    @lazy
    def _stats(self) -> dict[str, tuple[int, ...]]:
        """Return path → kept bits, size, inode and times in ns. Raises: GitError or OSError."""
        stats: dict[str, tuple[int, ...]] = {}
        for path in self.files:
            now = os.lstat(os.path.join(self._there.root_abs, path))
            times = (now.st_mtime_ns, now.st_ctime_ns)
            stats[path] = (now.st_mode & _KEPT_BITS, now.st_size, now.st_ino, *times)
        return stats

    @lazy
    def _raw_ids(self) -> dict[str, bytes]:
        """Return path → type, execute bit and bytes as they are in the working tree.

        Of a submodule: those of all its files. Raises: GitError or OSError.
        """
        modules = [file.path for file in self.files.values() if file.mode == _MODULE]
        inside = ("ls-files", "-z", "--recurse-submodules", "--", *modules)
        in_modules = self._there.git.names(*inside) if modules else []
        ids: dict[str, bytes] = {}
        for path in (*self.files, *in_modules):
            path_abs = os.path.join(self._there.root_abs, path)
            mode = os.lstat(path_abs).st_mode & _KEPT_BITS
            is_link = stat.S_ISLNK(mode)
            ids[path] = b"%o " % mode + (os.fsencode(os.readlink(path_abs)) if is_link else b"")
        regular = [path for path, said in ids.items() if stat.S_ISREG(int(said.split()[0], 8))]
        # In quotes, a name may have a line feed.
        names = "".join(f"{quoted(path)}\n" for path in regular)
        hashing = ("hash-object", "--no-filters", "--stdin-paths")
        hashes = self._there.git.out(*hashing, stdin=os.fsencode(names)).split()
        for path, raw_id in zip(regular, hashes, strict=True):
            ids[path] += raw_id
        for module in modules:
            parts = [
                f"{path} ".encode() + ids[path] for path in ids if path.startswith(f"{module}/")
            ]
            ids[module] = digest(*parts).encode()
        return {path: ids[path] for path in self.files}


def _read(path_abs: str) -> bytes:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
