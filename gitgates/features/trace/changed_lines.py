"""What a change has done to a file: hashes of the whole, and of each block of changed lines.

Lines are compared, and blocks hashed, without their line ends: a checkout may have others.
"""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from gitgates.store.log import Fact

    Kind: TypeAlias = Literal["text", "binary", "link", "huge", "gone"]
    Span: TypeAlias = tuple[int, int]  # of lines, half-open, from 0

_SNIFFED = 8000  # bytes that are searched for a NUL, as git does
_MANY = 100_000  # pairs of lines to compare
_TOO_MANY = 400_000_000  # a column of numbers, one a line, would take minutes
_MOST_BLOCKS = 200


class FileContent(Record):
    """The content at a path."""

    kind: Kind
    data: bytes = b""  # of a link, its target; of what is too large, nothing

    def digest(self) -> str:
        """Return its SHA-256; empty where there is no file, or it is too large."""
        return "" if self.kind in ("gone", "huge") else sha256(self.data).hexdigest()

    def lines(self) -> list[bytes]:
        """Return the lines of a text; of anything else, none."""
        return split_lines(self.data) if self.kind == "text" else []


GONE = FileContent(kind="gone")
HUGE = FileContent(kind="huge")


def of_bytes(data: bytes) -> FileContent:
    """Return the content of a regular file."""
    return FileContent(kind="binary" if b"\0" in data[:_SNIFFED] else "text", data=data)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text without their line ends."""
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    return lines if lines[-1] else lines[:-1]


def block_hash(lines: Sequence[bytes]) -> str:
    """Return the SHA-256 of lines, each with one LF at its end."""
    return sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def first_mark(line: bytes) -> int:
    """Return a mark of the first line of a block, to find quickly where it may begin."""
    return crc32(line.strip())


def file_change(path: str, before: FileContent, after: FileContent, old_path: str = "") -> Fact:
    """Return the change of a file, in the format of the ledger. `old_path`: before, if another."""
    operation = "rename" if old_path else "edit"
    if after.kind == "gone":
        operation = "delete"
    elif before.kind == "gone":
        operation = "create"
    return {
        "path": path,
        "operation": operation,
        **({"was": old_path} if old_path else {}),
        "kind": before.kind if after.kind == "gone" else after.kind,
        "before": before.digest(),
        "after": after.digest(),
        "lines": len(after.lines()),
        "blocks": changed_blocks(before, after),
    }


def changed_blocks(before: FileContent, after: FileContent) -> list[Fact]:
    """Return each block of lines that differs, in the format of the ledger.

    `old` and `new` are its first line, from 1, and its number of lines; of an empty one, the line
    that it would be before. A block with new lines has their hash, and a mark of the first one.
    """
    if "huge" in (before.kind, after.kind):
        return []
    blocks, new_lines = [], after.lines()
    for (start, end), (new_start, new_end) in _differences(before.lines(), new_lines):
        lines = new_lines[new_start:new_end]
        hashes = {"sha256": block_hash(lines), "first": first_mark(lines[0])} if lines else {}
        old, new = [start + 1, end - start], [new_start + 1, new_end - new_start]
        blocks.append({"old": old, "new": new, **hashes})
    return blocks


def _differences(before: Sequence[bytes], after: Sequence[bytes]) -> list[tuple[Span, Span]]:
    """Return the spans that differ; too many are merged into one."""
    start, shorter = 0, min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if not old and not new:
        return []
    whole = [((start, start + len(old)), (start, start + len(new)))]
    if set(old).isdisjoint(new) or len(old) * len(new) > _TOO_MANY:
        return whole
    from difflib import SequenceMatcher  # slow to load; most edits are in one place

    # In long texts, frequently repeated lines take too long to compare with each other.
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > _MANY)
    parts = [
        ((start + i1, start + i2), (start + j1, start + j2))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]
    return parts if len(parts) <= _MOST_BLOCKS else whole
