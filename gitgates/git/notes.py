"""Git notes of ours: lines about a tree, under refs/notes/gitgates.

They are annotated to the tree of a commit, so that they hold for each commit of that content. They
are read with dulwich, which takes no process for each of thousands of objects, and written by one
`git fast-import`, which leaves nothing half done when it is killed. docs/adr/0016 says why.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from gitgates.core.errors import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.git.repo import Repo

REF = "refs/notes/gitgates"
_WHO = "gitgates <gitgates@localhost>"
_SHA256_LENGTH = 64
_TRIES = 5  # others write notes as well


class Notes:
    """The notes as they are now.

    Raises: GitError where they cannot be read.
    """

    def __init__(self, repo: Repo) -> None:
        self._git = repo.git
        self.tip = repo.git.resolve(f"{REF}^{{commit}}")
        self._paths: dict[str, dict[str, bytes]] = {}  # of an annotated tree: path → blob
        if not self.tip:
            return
        root = repo.git.resolve(f"{self.tip}^{{tree}}")
        if not root:
            raise GitError(f"{REF}: its files cannot be read", "See: git fsck")
        self._store = _open(repo, root)
        for path, blob in self._walk(root.encode(), ""):
            self._paths.setdefault(path.replace("/", ""), {})[path] = blob

    def __iter__(self) -> Iterator[str]:
        """Return the trees that have notes."""
        return iter(self._paths)

    def lines(self, tree: str) -> list[bytes]:
        """Return the lines of the notes of a tree."""
        blobs = self._paths.get(tree, {}).values()
        return [line for blob in blobs for line in self._read(blob).as_raw_string().splitlines()]

    def path(self, tree: str) -> str:
        """Return where the note of a tree is, or is to be. Git finds it in folders or without."""
        return next(iter(self._paths.get(tree, ())), f"{tree[:2]}/{tree[2:]}")

    def _walk(self, folder: bytes, prefix: str) -> Iterator[tuple[str, bytes]]:
        for name, mode, object_id in self._read(folder).items():
            path = prefix + os.fsdecode(name)
            if stat.S_ISDIR(mode):
                yield from self._walk(object_id, f"{path}/")
            elif stat.S_ISREG(mode):
                yield path, object_id

    def _read(self, object_id: bytes) -> Any:  # noqa: ANN401 - of any type
        try:
            return self._store[object_id]
        except KeyError:  # a partial clone: git fetches it
            self._git.out("cat-file", "-e", object_id.decode())
            return self._store[object_id]


def _open(repo: Repo, object_id: str) -> Any:  # noqa: ANN401 - its objects are of any type
    """Return the objects of a repository: those of its alternates, too."""
    if sys.flags.no_site:  # as git's hooks are started: no library is in the path
        import site

        site.main()
    from dulwich.object_store import DiskObjectStore  # costs more than most hooks

    path_abs = f"{repo.common_dir_abs}/objects"
    if len(object_id) < _SHA256_LENGTH:
        return DiskObjectStore(path_abs)
    from dulwich.object_format import SHA256

    return DiskObjectStore(path_abs, object_format=SHA256)


def add_lines(repo: Repo, added: Mapping[str, list[bytes]]) -> None:
    """Add lines to the notes of trees, in one commit; a line that is there is not added again.

    Raises: GitError where git cannot write them.
    """
    for _ in range(_TRIES):
        notes = Notes(repo)
        files = []
        for tree, lines in added.items():
            before = notes.lines(tree)
            after = list(dict.fromkeys((*before, *lines)))
            if after != before:
                files.append((notes.path(tree), b"".join(line + b"\n" for line in after)))
        if not files:
            return
        # Not forced: git refuses it where somebody else has written notes since.
        done = repo.git.ask("fast-import", "--quiet", "--done", stdin=_commit(notes.tip, files))
        if not done.exit_status:
            return
    said = os.fsdecode(done.stderr).strip()
    raise GitError(f"{REF} cannot be written: {said}")


def _commit(parent: str, files: list[tuple[str, bytes]]) -> bytes:
    """Return a commit of notes. Source: git-fast-import(1)."""
    message = b"gitgates: what gates have checked\n"
    head = f"commit {REF}\ncommitter {_WHO} {int(time.time())} +0000\n".encode()
    parts = [head, b"data %d\n%s" % (len(message), message)]
    if parent:
        parts.append(b"from %s\n" % parent.encode())
    for path, content in files:
        parts.append(b"M 100644 inline %s\n" % os.fsencode(path))
        parts.append(b"data %d\n%s\n" % (len(content), content))
    return b"".join((*parts, b"done\n"))
