"""Signed proofs in git notes: read by tree or by key, and added.

An index in the shared state folder finds notes: it has all 64-digit digests in the payloads, and
the trees that the notes are about. If the notes have changed, it is updated from the new ones. It
only says where to look: the reader of an envelope must verify it.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from itertools import islice
from math import inf

from gitgates.core.errors import GitError
from gitgates.core.record import lazy
from gitgates.features.proof.envelope import LARGEST, read_envelope
from gitgates.features.proof.ssh_keys import FOLDER
from gitgates.features.proof.statement import RefusedError, Statement, read_payload
from gitgates.git.notes import REF, Notes, add_lines
from gitgates.git.object_store import iterate_blobs
from gitgates.store.files import make_folder, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gitgates.git.repo import Repo

_INDEX = "notes"
_VERSION = 1
_DIGITS = 64
_KEY_BYTES = 8  # of a digest; if two begin alike, a reader gets an extra envelope
_RECORD_BYTES = _KEY_BYTES + 4  # with the blob's number
# Anybody who may push notes may have written any number: beyond these limits, none is found.
_LARGEST_NOTE = 32 << 20
_MOST_LINES = 1000  # of a note
_MOST_NOTES = 20  # about the same
_MOST_RECORDS = 1 << 20
_LIMIT_S = 10.0  # for reading new notes
_LIMIT_AHEAD_S = 1.0  # for reading ahead


class ProofNotes:
    """The envelopes in the notes, as they were when first read."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._lines: dict[str, list[bytes]] = {}  # blob → its lines
        self._payloads: dict[bytes, bytes] = {}  # line → its payload
        self.trouble = ""  # why the notes cannot be read; then there are none

    def of_tree(self, tree: str) -> list[bytes]:
        """Return the envelopes in the notes of a tree."""
        return self._find(tree)

    def with_key(self, key: str) -> list[bytes]:
        """Return the envelopes that contain a 64-digit digest, such as a key or a patch."""
        quoted = f'"{key}"'.encode()
        lines = self._find(key)
        for line in lines:
            if line not in self._payloads:
                self._payloads[line] = _payload(line)
        return [line for line in lines if quoted in self._payloads[line]]

    def read(self, digests: Iterable[str]) -> None:
        """Read the notes that have any of these digests in one call of git, which starts slowly.

        Notes that are not read in time are read when they are needed.
        """
        numbers = {number for digest in digests for number in self._numbers(digest)}
        self._read([self._index[0][number] for number in numbers], _LIMIT_AHEAD_S)

    def has(self, digest: str) -> bool:
        """Return whether notes may have a digest, without reading any."""
        return bool(self._numbers(digest))

    def add(self, envelopes: Mapping[str, list[bytes]]) -> None:
        """Add envelopes to the notes of trees. Raises: GitError if git cannot write them."""
        add_lines(self._repo, envelopes)

    def unsigned(self, statements: Sequence[Statement]) -> list[Statement]:
        """Return the statements that are not in the notes yet, signed by anybody."""
        self.read(statement.tree for statement in statements)
        noted = {
            tree: [*map(_unsigned, self.of_tree(tree))] for tree in {s.tree for s in statements}
        }
        return [each for each in statements if _blank(each) not in noted[each.tree]]

    @lazy
    def _index(self) -> tuple[list[str], bytes]:
        """Return the blobs, and sorted records of the start of a digest and a blob's number."""
        index_abs = f"{self._repo.shared_state_abs}/{FOLDER}/{_INDEX}"
        tip = _tip(self._repo)
        known_tip, blobs, records = "", [], b""
        known = read_cached(index_abs)
        if known and known[0] == _VERSION:  # another version may have other parts
            _version, known_tip, blobs, records = known
        if tip == known_tip or not tip:
            return (blobs, records) if tip else ([], b"")
        try:
            blobs, records = self._updated(blobs, records)
            make_folder(os.path.dirname(index_abs))
            replace_cached(index_abs, (_VERSION, tip, blobs, records), sync=False)
        except GitError as error:
            self.trouble = str(error)
            return [], b""
        except OSError:
            pass  # the next run makes it again
        return blobs, records

    def _updated(self, blobs: list[str], records: bytes) -> tuple[list[str], bytes]:
        """Return the index of the current notes. Raises: GitError."""
        notes = Notes(self._repo)
        pairs = [(tree, blob) for tree in notes for blob in notes.blobs(tree)]
        noted = {blob for _tree, blob in pairs}
        remaining = {number: blob for number, blob in enumerate(blobs) if blob in noted}
        new = [*noted - set(remaining.values())]
        all_blobs = [*remaining.values(), *new]
        numbers = {blob: number.to_bytes(4, "big") for number, blob in enumerate(all_blobs)}
        rows = {
            records[at : at + _KEY_BYTES] + numbers[remaining[number]]
            for at in range(0, len(records), _RECORD_BYTES)
            if (number := int.from_bytes(records[at + _KEY_BYTES : at + _RECORD_BYTES]))
            in remaining
        }
        rows |= {_start(tree) + numbers[blob] for tree, blob in pairs}
        until_s = time.monotonic() + _LIMIT_S
        for blob, content in iterate_blobs(self._repo.git, new, _LARGEST_NOTE):
            if len(rows) > _MOST_RECORDS or time.monotonic() > until_s:
                break
            digests = {digest for line in _envelopes(content) for digest in _digests(line)}
            rows |= {_start(digest) + numbers[blob] for digest in digests}
        return all_blobs, b"".join(sorted(rows))

    def _find(self, digest: str) -> list[bytes]:
        blobs = [self._index[0][number] for number in self._numbers(digest)]
        self._read(blobs)
        return [line for blob in blobs for line in self._lines.get(blob, ())]

    def _numbers(self, digest: str) -> list[int]:
        """Return the numbers of the blobs that have a digest, up to the limit."""
        _blobs, records = self._index
        numbers = []
        key, rows = _start(digest), range(len(records) // _RECORD_BYTES)
        first = bisect_left(rows, key, key=lambda row: _key_at(records, row))
        for row in rows[first:]:
            if _key_at(records, row) != key:
                break
            at = row * _RECORD_BYTES
            numbers.append(int.from_bytes(records[at + _KEY_BYTES : at + _RECORD_BYTES]))
        return numbers[-_MOST_NOTES:]

    def _read(self, blobs: Iterable[str], limit_s: float = inf) -> None:
        unread = [blob for blob in blobs if blob not in self._lines]
        until_s = time.monotonic() + limit_s
        try:
            for blob, content in iterate_blobs(self._repo.git, unread, _LARGEST_NOTE):
                self._lines[blob] = [*_envelopes(content)]
                if time.monotonic() > until_s:
                    return
        except GitError as error:
            self.trouble = str(error)


def _tip(repo: Repo) -> str:
    """Return the commit of the notes; empty if there are none."""
    try:
        with open(f"{repo.common_dir_abs}/{REF}", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return repo.git.resolve(f"{REF}^{{commit}}")


def _envelopes(content: bytes) -> Iterator[bytes]:
    """Return the lines of a note that may be envelopes."""
    lines = (
        line
        for line in content.split(b"\n")
        if line.startswith(b"{") and b'"payload"' in line and len(line) <= LARGEST
    )
    return islice(lines, _MOST_LINES)


def _payload(line: bytes) -> bytes:
    try:
        return read_envelope(line).payload
    except RefusedError:
        return b""


def _unsigned(line: bytes) -> Statement | None:
    try:
        return _blank(read_payload(_payload(line)))
    except RefusedError:
        return None


def _blank(statement: Statement) -> Statement:
    """Return a statement without what signing adds."""
    return statement._replace(signer="", time_s=0.0, platform="")


def _digests(line: bytes) -> Iterator[str]:
    for word in _payload(line).split(b'"'):
        if len(word) == _DIGITS and not word.strip(b"0123456789abcdef"):
            yield word.decode("ascii")


def _start(digest: str) -> bytes:
    return bytes.fromhex(digest[: 2 * _KEY_BYTES])


def _key_at(records: bytes, row: int) -> bytes:
    return records[row * _RECORD_BYTES : row * _RECORD_BYTES + _KEY_BYTES]
