"""The content of a file as hashes: of the whole, of each line, and of changed blocks.

Lines are compared, and blocks hashed, without their line ends: a checkout may have others.
"""

from __future__ import annotations

import hashlib
import os
import stat
from zlib import crc32

from gitgates.core.record import Record
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from gitgates.store.log import Fact

    Kind: TypeAlias = Literal["text", "binary", "link", "huge", "gone"]
    Span: TypeAlias = tuple[int, int]  # of lines, half-open, from 0

LARGEST = 1 << 20  # bytes; a larger file is not read
_SNIFFED = 8000  # bytes that are searched for a NUL, as git does
_MANY = 100_000  # pairs of lines to compare
_TOO_MANY = 400_000_000  # a column of numbers, one a line, would take minutes
_MOST_BLOCKS = 200


class FileContent(Record):
    """The content at a path."""

    kind: Kind
    sha256: str = ""  # empty where there is no file, or it is too large
    blob: str = ""  # git's own id of the same bytes, where they were read from a file
    marks: tuple[int, ...] = ()  # of the lines of a text: equal ones have equal marks
    lines: tuple[bytes, ...] = ()


GONE = FileContent(kind="gone")
HUGE = FileContent(kind="huge")


def hash_file(path_abs: str, object_format: str) -> FileContent:
    """Return the content at a path; a link is not followed, and a folder is not a file.

    `object_format`: that of the repository, for the blob's id. Raises: OSError where it cannot be
    read.
    """
    try:
        status = os.lstat(path_abs)
        if stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(path_abs))
            return of_link(target)._replace(blob=_blob_id(target, object_format))
        if not stat.S_ISREG(status.st_mode):
            return GONE
        if status.st_size > LARGEST:
            return HUGE
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            data = file.read()
            return of_bytes(data)._replace(blob=_blob_id(data, object_format))
    except (FileNotFoundError, NotADirectoryError):
        return GONE


def of_link(target: bytes) -> FileContent:
    """Return a symbolic link as content."""
    return _hashed("link", target)


def of_bytes(data: bytes) -> FileContent:
    """Return the content of a regular file."""
    if b"\0" in data[:_SNIFFED]:
        return _hashed("binary", data)
    lines = tuple(split_lines(data))
    return _hashed("text", data)._replace(lines=lines, marks=tuple(map(crc32, lines)))


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text without their line ends."""
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    return lines if lines[-1] else lines[:-1]


def _hashed(kind: Kind, data: bytes) -> FileContent:
    return FileContent(kind=kind, sha256=hashlib.sha256(data).hexdigest())


def _blob_id(data: bytes, object_format: str) -> str:
    header = b"blob %d\0" % len(data)
    return hashlib.new(object_format, header + data, usedforsecurity=False).hexdigest()


def block_hash(lines: Sequence[bytes]) -> str:
    """Return the SHA-256 of lines, each with one LF at its end."""
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def loose_hash(lines: Sequence[bytes]) -> str:
    """Return their hash without the white space around lines: re-indentation does not change it."""
    return block_hash([line.strip() for line in lines])


def file_change(
    path: str, before: FileContent | None, after: FileContent, old_path: str = ""
) -> Fact | None:
    """Return the change of a file, in the format of the ledger; None if there is none.

    `before`: None if unknown. `old_path`: its path before, if another.
    """
    is_same = before and (before.kind, before.sha256) == (after.kind, after.sha256)
    if is_same and not old_path and after.kind != "huge":
        return None
    operation = "rename" if old_path else "edit"
    if after.kind == "gone":
        operation = "delete"
    elif before and before.kind == "gone":
        operation = "create"
    return {
        "path": path,
        "operation": operation,
        **({"was": old_path} if old_path else {}),
        "kind": before.kind if before and after.kind == "gone" else after.kind,
        "before": before.sha256 if before else None,
        "after": after.sha256,
        "blob": after.blob,
        "lines": len(after.lines),
        "blocks": changed_blocks(before, after) if before else [],
    }


def changed_blocks(before: FileContent, after: FileContent) -> list[Fact]:
    """Return each block of lines that differs, in the format of the ledger.

    `old` and `new` are its first line, from 1, and its number of lines; of an empty one, the line
    that it would be before. A block with new lines has their hashes.
    """
    if "huge" in (before.kind, after.kind):
        return []
    blocks = []
    for (start, end), (new_start, new_end) in _differences(before.marks, after.marks):
        lines = after.lines[new_start:new_end]
        old, new = [start + 1, end - start], [new_start + 1, new_end - new_start]
        blocks.append({"old": old, "new": new, **(_hashes(lines) if lines else {})})
    return blocks


def _hashes(lines: Sequence[bytes]) -> Fact:
    hashes = {"sha256": block_hash(lines), "loose": loose_hash(lines)}
    return {**hashes, "first": first_mark(lines[0])}


def first_mark(line: bytes) -> int:
    """Return a mark of the first line of a block, to find quickly where it may begin."""
    return crc32(line.strip())


def _differences(before: Sequence[int], after: Sequence[int]) -> list[tuple[Span, Span]]:
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
