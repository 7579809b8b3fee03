"""The trace ledger: append-only, shared by worktrees, one chain of SHA-256 hashes.

Each record has its number, the hash of the one before, and last a hash of everything before it in
its line. A head file beside the ledger has the number and hash of the newest record, and the length
of the ledger with it: so a truncated end is found, an append reads nothing of the rest, and later
records are those of a process that was killed before it wrote the head. All of it is in
`gitgates/trace/` in the common git folder: in the tree, it would conflict in each merge.

This detects accidents and careless edits. Whoever may write these files can forge all of them.
"""

from __future__ import annotations

import errno
import os
import time
from hashlib import sha256

from gitgates.core.errors import StateError
from gitgates.core.lean_json import dumps
from gitgates.core.policy import LABELS
from gitgates.core.record import Record
from gitgates.store.files import (
    length_of,
    lock_file,
    make_folder,
    open_state,
    read_state,
    replace_file,
)
from gitgates.store.log import append_lines, lines_of, parse_lines, read_lines, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeGuard

    from gitgates.store.log import Fact

VERSION = 2
EARLIER = 1  # its records are in one chain for each writer, which is not followed any more
SEAL = b', "sha256": "'
_END = b'"}'
_LOCK_WAIT_S = 10.0  # each append takes less than a millisecond
_TAIL = 1 << 20  # bytes, of the ledger's end
_SHORT = 8
_MOST_NAMED = 5
_TEXTS = ("id", "time", "session", "agent", *LABELS, "tool", "commit", "prev")
_RECORD = {**dict.fromkeys(_TEXTS, str), "n": int, "files": list}
_ANCHOR = {"time": str, "by": str, "pruned": int}
_HEAD = {"n": int, "sha256": str, "size": int}


class Head(Record):
    """The newest record of the ledger."""

    n: int = 0  # its number
    sha256: str = ""
    size: int = 0  # bytes of the ledger, up to its end


def ledger_abs(common_dir_abs: str) -> str:
    """Return the path of the ledger."""
    return f"{common_dir_abs}/gitgates/trace/ledger.jsonl"


def append(common_dir_abs: str, record: Fact) -> Fact:
    """Append a record; return it as written: with v, id, time, n (its number), prev and sha256.

    Raises: OSError.
    """
    path_abs = ledger_abs(common_dir_abs)
    lock_fd = lock(path_abs)
    try:
        last = _last(path_abs)
        first = {"v": VERSION, "id": _uuid(), "time": utc(time.time(), milliseconds=True)}
        line = sealed({**first, **record, "n": last.n + 1, "prev": last.sha256})
        append_lines(path_abs, lambda _fd, _size: line)
        written = read_record(line)
        write_head(path_abs, written["n"], written["sha256"])
    finally:
        os.close(lock_fd)
    return written


class Records:
    """The records of the ledger whose own hash is correct, by their place in it.

    Only those that are asked for are in memory. Raises: OSError where the ledger cannot be read.
    """

    def __init__(self, common_dir_abs: str) -> None:
        self._path_abs = ledger_abs(common_dir_abs)
        self._id = 0  # of the file that the places are of

    def __getitem__(self, place: int) -> Fact:
        """Return the record at a place that `items` gave.

        Raises: StateError where the ledger was pruned since.
        """
        with open(self._path_abs, "rb", opener=open_state) as file:
            if os.fstat(file.fileno()).st_ino != self._id:
                what = f"{self._path_abs}: was pruned in the meantime"
                raise StateError(what, "Run the command again.")
            file.seek(place)
            return read_record(file.readline())

    def items(self) -> Iterator[tuple[int, Fact]]:
        """Yield each record with its place, in the order of writing."""
        place = 0
        for line in lines_of(self._path_abs):
            self._id = self._id or os.stat(self._path_abs).st_ino
            if record := _record_in(line):
                yield place, record
            place += len(line)

    def values(self) -> Iterator[Fact]:
        """Yield each record, in the order of writing."""
        for _place, record in self.items():  # noqa: PERF102 - this is what it is of
            yield record


def recent(common_dir_abs: str, labels: Mapping[str, str], n: int) -> list[str]:
    """Return a line for each of the newest `n` records with these labels, the newest first.

    Those in the last megabyte of the ledger count. Raises: OSError where it cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    newest = _records(read_lines(path_abs, max(length_of(path_abs) - _TAIL, 0)))
    matching = [record for record in newest if labels.items() <= record.items()]
    return [summary(record) for record in matching[::-1][:n]]


def summary(record: Fact) -> str:
    """Return a record as one line: its time, writer, tool, files and their lines."""
    from gitgates.core.clean import first_few, visible_line  # cold: records are read by people

    files = first_few([*map(_file_summary, record["files"])], _MOST_NAMED, record.get("more", 0))
    return visible_line(f"{record['time'][:19]}Z {who(record)} {record['tool']}: {files}")


def who(record: Fact) -> str:
    """Return the writer of a record, as the beginnings of its session and agent."""
    return "/".join(part[:_SHORT] for part in (record["session"], record["agent"]) if part)


def _file_summary(file: Fact) -> str:
    spans = [block["new"] for block in file["blocks"]]
    lines = [f"{at}-{at + count - 1}" if count > 1 else f"{at}" for at, count in spans if count]
    origin = f" from {file['was']}" if file.get("was") else ""
    ranges = f" {','.join(lines)}" if lines and file["operation"] != "create" else ""
    return f"{file['operation']} {file['path']}{origin}{ranges}"


def read_record(line: bytes) -> Fact:
    """Return the record of a line.

    Raises: ValueError where it is not a record, or its own hash does not match its content.
    """
    body, seal, end = line.rstrip(b"\n").rpartition(SEAL)
    digest = sha256(body + b"}").hexdigest()
    if not seal or end != digest.encode() + _END:
        raise ValueError("it does not match its own hash")
    record = parse_lines([body + b"}"])[0]
    is_known = _has(record, _RECORD) or _has(record, _ANCHOR)
    if not (is_known and record and record.get("v") in (EARLIER, VERSION)):
        raise ValueError("it is not a record known to this version")
    return {**record, "sha256": digest}


def _records(raw: bytes) -> list[Fact]:
    """Return the records in a part of the ledger."""
    return [record for line in raw.split(b"\n") if (record := _record_in(line))]


def _record_in(line: bytes) -> Fact | None:
    """Return the record of a line; None if it is torn, or damaged, which `verify` reports."""
    try:
        record = read_record(line)
    except ValueError:
        return None
    return record if "files" in record else None


def sealed(fields: Fact) -> bytes:
    """Return a line of the ledger: fields, and last their hash."""
    body = dumps(fields).encode("ascii")
    return body[:-1] + SEAL + sha256(body).hexdigest().encode() + _END + b"\n"


def _uuid() -> str:
    """Return a random UUID (version 4), without `import uuid`, which is slow."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def lock(path_abs: str, *, shared: bool = False) -> int:
    """Lock the ledger for writing, or reading; return the descriptor to close.

    -1 where `shared` is set and there is no ledger yet. Raises: OSError.
    """
    folder_abs = os.path.dirname(path_abs)
    lock_abs = f"{folder_abs}/lock"
    if not shared:
        make_folder(os.path.dirname(folder_abs))
        make_folder(folder_abs)
    elif not os.path.lexists(lock_abs):
        return -1
    flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    lock_fd = lock_file(lock_abs, shared=shared, wait_s=_LOCK_WAIT_S, flags=flags)
    if lock_fd < 0:
        raise OSError(errno.ETIMEDOUT, "another process holds its lock", path_abs)
    return lock_fd


def read_head(path_abs: str) -> Head | None:
    """Return the head; None if it is damaged. Raises: FileNotFoundError, OSError."""
    raw = read_state(head_abs_of(path_abs))
    if raw is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), head_abs_of(path_abs))
    fields = parse_lines([raw])[0]
    return Head(fields["n"], fields["sha256"], fields["size"]) if _has(fields, _HEAD) else None


def write_head(path_abs: str, n: int, digest: str) -> Head:
    """Note the newest record of the locked ledger; return that. Raises: OSError."""
    head = Head(n, digest, max(length_of(path_abs), 0))
    replace_file(head_abs_of(path_abs), dumps(head._asdict()).encode("ascii"), sync=False)
    return head


def head_abs_of(path_abs: str) -> str:
    """Return the path of the head of a ledger."""
    return f"{os.path.dirname(path_abs)}/head"


def _last(path_abs: str) -> Head:
    """Return the newest record of the locked ledger: that of its head, or one after that.

    Where the ledger is shorter than its head says, the next record leaves a gap that `verify`
    reports. So it does where the head is gone, as numbers begin anew.
    """
    try:
        head = read_head(path_abs)
    except FileNotFoundError:
        return write_head(path_abs, 0, "")
    if head and length_of(path_abs) <= head.size:
        return head
    late = _records(read_lines(path_abs, head.size if head else 0))
    chained = [record for record in late if record["v"] == VERSION]
    if not chained:
        return head or Head()
    return Head(chained[-1]["n"], chained[-1]["sha256"])


def _has(record: Fact | None, fields: Mapping[str, type]) -> TypeGuard[Fact]:
    return record is not None and all(type(record.get(name)) is fields[name] for name in fields)
