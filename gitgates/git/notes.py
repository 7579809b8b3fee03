"""Git notes about trees: each line is a signed statement, or text that somebody else wrote.

They annotate a commit's tree, so they apply to every commit with that tree. One git process reads
any number of them, and one `git fast-import` writes them, which leaves nothing half done if it is
killed. docs/adr/0016 says why.
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
    from gitgates.proc.call import CompletedProcess

REF = "refs/notes/gitgates"  # the notes that are pushed and fetched
_WHO = "gitgates <gitgates@localhost>"
_FILE = "100"  # the mode of regular files begins with it
_ID_LENGTHS = (40, 64)  # SHA-1, SHA-256
_TRIES = 5  # in case others write notes at the same time
_MOST_BYTES = 64 << 20  # of their list: 600,000 notes


class Notes:
    """The notes as they are now.

    Raises: GitError if they cannot be read.
    """

    def __init__(self, repo: Repo, ref: str = REF) -> None:
        self._git, self._ref = repo.git, ref
        self.tip = repo.git.resolve(f"{ref}^{{commit}}")
        self._paths: dict[str, dict[str, str]] = {}  # annotated tree → path → blob
        self._contents: dict[str, bytes] = {}  # blob → its bytes
        if not self.tip:
            return
        # A tree with few objects can list any number of files.
        listing = repo.git.ask("ls-tree", "-r", "-z", self.tip, most_bytes=_MOST_BYTES)
        if listing.exit_status:
            raise GitError(f"{ref}: its files cannot be read", "See: git fsck")
        for entry in nul_split(listing.stdout):
            fields, _, path = entry.partition("\t")
            mode, _kind, blob = fields.split(" ")
            tree = path.replace("/", "")
            is_id = len(tree) in _ID_LENGTHS and not tree.strip("0123456789abcdef")
            if mode.startswith(_FILE) and is_id:  # another name might be commands of fast-import
                self._paths.setdefault(tree, {})[path] = blob

    def __iter__(self) -> Iterator[str]:
        """Return the trees that have notes."""
        return iter(self._paths)

    def read(self, trees: Iterable[str]) -> None:
        """Read the notes of trees in one process, before they are needed one by one.

        Raises: GitError.
        """
        # In the order of their names: otherwise, git unpacks the same deltas again and again.
        blobs = [blob for tree in trees for blob in self._paths.get(tree, {}).values()]
        unread = [blob for blob in blobs if blob not in self._contents]
        self._contents |= read_blobs(self._git, unread, sys.maxsize)
        if not self._contents.keys() >= set(blobs):
            raise GitError(f"{self._ref}: notes cannot be read", "See: git fsck")

    def blobs(self, tree: str) -> list[str]:
        """Return the ids of the blobs with a tree's notes, usually one."""
        return [*self._paths.get(tree, {}).values()]

    def lines(self, tree: str) -> list[bytes]:
        """Return the lines of the notes of a tree. Raises: GitError."""
        self.read([tree])
        blobs = self.blobs(tree)
        # Not splitlines: text that somebody else wrote must stay as it is.
        return [line for blob in blobs for line in self._contents[blob].split(b"\n") if line]

    def text(self, tree: str) -> bytes:
        """Return a tree's note, to which lines can be appended."""
        whole = next((self._contents[blob] for blob in self.blobs(tree)), b"")
        return whole + b"\n" if whole[-1:] not in (b"", b"\n") else whole

    def path(self, tree: str) -> str:
        """Return where a tree's note is, or belongs. Git finds it with or without folders."""
        return next(iter(self._paths.get(tree, ())), f"{tree[:2]}/{tree[2:]}")


def add_lines(repo: Repo, added: Mapping[str, list[bytes]]) -> None:
    """Add lines to the notes of trees in one commit, except for lines that they already have.

    Raises: GitError if git cannot write them.
    """
    for _ in range(_TRIES):
        notes = Notes(repo)
        files = _with_lines(notes, added)
        if not files:
            return
        # Without force, git refuses it if somebody else has written notes since.
        completed = _write(repo, [notes.tip] if notes.tip else [], files)
        if not completed.exit_status:
            return
    raise _not_written(completed.stderr)


def unite(repo: Repo, ref: str) -> dict[str, list[bytes]]:
    """Merge the notes under another ref into ours: their lines, and their history.

    Returns the new lines, by tree. Raises: GitError if notes cannot be read or written.
    """
    for _ in range(_TRIES):
        ours, others = Notes(repo), Notes(repo, ref)
        if others.tip in ("", ours.tip):
            return {}
        news, lacks = _differing(ours, others)
        if not lacks:  # they have all that we have
            completed = repo.git.ask(
                "update-ref", REF, others.tip, ours.tip or "0" * len(others.tip)
            )
        elif not news and _is_ancestor(repo, others.tip, ours.tip):
            return {}
        else:
            completed = _write(repo, [ours.tip, others.tip], _with_lines(ours, news))
        if not completed.exit_status:
            return news
    raise _not_written(completed.stderr)


def _differing(ours: Notes, theirs: Notes) -> tuple[dict[str, list[bytes]], bool]:
    """Return the lines that only theirs have, by tree, and whether ours have more."""
    trees = [
        tree
        for tree in dict.fromkeys((*ours, *theirs))
        if set(ours.blobs(tree)) != set(theirs.blobs(tree))
    ]
    ours.read(trees)
    theirs.read(trees)
    lines_by_tree = {tree: (ours.lines(tree), theirs.lines(tree)) for tree in trees}
    news = {
        tree: new
        for tree, (mine, others) in lines_by_tree.items()
        if (new := [*dict.fromkeys(others).keys() - {*mine}])
    }
    return news, any({*mine} - {*others} for mine, others in lines_by_tree.values())


def _is_ancestor(repo: Repo, commit: str, of: str) -> bool:
    return not repo.git.ask("merge-base", "--is-ancestor", commit, of).exit_status


def _with_lines(notes: Notes, added: Mapping[str, list[bytes]]) -> list[tuple[str, bytes]]:
    """Return the path and content of each note that gets new lines."""
    notes.read(added)
    files = []
    for tree, lines in added.items():
        before = {*notes.lines(tree)}
        if new := [line + b"\n" for line in dict.fromkeys(lines) if line not in before]:
            files.append((notes.path(tree), b"".join((notes.text(tree), *new))))
    return files


def _not_written(stderr: bytes) -> GitError:
    return GitError(f"{REF} cannot be written: {os.fsdecode(stderr).strip()}")


def _write(repo: Repo, parents: list[str], files: list[tuple[str, bytes]]) -> CompletedProcess:
    """Commit notes. Source: git-fast-import(1)."""
    message = b"gitgates: what gates have checked\n"
    head = f"commit {REF}\ncommitter {_WHO} {int(time.time())} +0000\n".encode()
    parts = [head, b"data %d\n%s" % (len(message), message)]
    for word, parent in zip(("from", "merge"), parents, strict=False):
        parts.append(f"{word} {parent}\n".encode())
    for path, content in files:
        parts.append(b"M 100644 inline %s\n" % os.fsencode(path))
        parts.append(b"data %d\n%s\n" % (len(content), content))
    return repo.git.ask("fast-import", "--quiet", "--done", stdin=b"".join((*parts, b"done\n")))
