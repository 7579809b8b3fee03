"""The git notes of gitgates: lines about a tree, under refs/notes/gitgates.

They are annotated to the tree of a commit, so they hold for each commit of that content. One
process of git reads any number of them, and one `git fast-import` writes them, which leaves nothing
half done when it is killed. docs/adr/0016 says why.
"""

from __future__ import annotations

import os
import sys
import time

from gitgates.core.errors import GitError
from gitgates.git.object_store import read_blobs
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gitgates.git.repo import Repo

REF = "refs/notes/gitgates"
_WHO = "gitgates <gitgates@localhost>"
_FILE = "100"  # the mode of regular files begins with it
_TRIES = 5  # others write notes as well


class Notes:
    """The notes as they are now.

    Raises: GitError where they cannot be read.
    """

    def __init__(self, repo: Repo) -> None:
        self._git = repo.git
        self.tip = repo.git.resolve(f"{REF}^{{commit}}")
        self._paths: dict[str, dict[str, str]] = {}  # of an annotated tree: path → blob
        self._contents: dict[str, bytes] = {}  # of blobs that were read
        if not self.tip:
            return
        listing = repo.git.ask("ls-tree", "-r", "-z", self.tip)
        if listing.exit_status:
            raise GitError(f"{REF}: its files cannot be read", "See: git fsck")
        for entry in nul_split(listing.stdout):
            fields, _, path = entry.partition("\t")
            mode, _kind, blob = fields.split(" ")
            if mode.startswith(_FILE):
                self._paths.setdefault(path.replace("/", ""), {})[path] = blob

    def __iter__(self) -> Iterator[str]:
        """Return the trees that have notes."""
        return iter(self._paths)

    def read(self, trees: Iterable[str]) -> None:
        """Read the notes of trees in one process, before they are asked for one by one.

        Raises: GitError.
        """
        # In the order of their names: in no order, git unpacks the same deltas again and again.
        blobs = [blob for tree in trees for blob in self._paths.get(tree, {}).values()]
        unread = [blob for blob in blobs if blob not in self._contents]
        self._contents |= read_blobs(self._git, unread, sys.maxsize)
        if not self._contents.keys() >= set(blobs):
            raise GitError(f"{REF}: notes cannot be read", "See: git fsck")

    def lines(self, tree: str) -> list[bytes]:
        """Return the lines of the notes of a tree. Raises: GitError."""
        self.read([tree])
        blobs = self._paths.get(tree, {}).values()
        return [line for blob in blobs for line in self._contents[blob].splitlines()]

    def path(self, tree: str) -> str:
        """Return where the note of a tree is, or is to be. Git finds it in folders or without."""
        return next(iter(self._paths.get(tree, ())), f"{tree[:2]}/{tree[2:]}")


def add_lines(repo: Repo, added: Mapping[str, list[bytes]]) -> None:
    """Add lines to the notes of trees, in one commit; a line that is there is not added again.

    Raises: GitError where git cannot write them.
    """
    for _ in range(_TRIES):
        notes = Notes(repo)
        notes.read(added)
        files = []
        for tree, lines in added.items():
            before = notes.lines(tree)
            after = list(dict.fromkeys((*before, *lines)))
            if after != before:
                files.append((notes.path(tree), b"".join(line + b"\n" for line in after)))
        if not files:
            return
        # Not forced: git refuses it where somebody else has written notes since.
        completed = repo.git.ask(
            "fast-import", "--quiet", "--done", stdin=_commit(notes.tip, files)
        )
        if not completed.exit_status:
            return
    message = os.fsdecode(completed.stderr).strip()
    raise GitError(f"{REF} cannot be written: {message}")


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
