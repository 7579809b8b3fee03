"""The trace ledger: append-only, shared by worktrees, one chain of SHA-256 hashes for each writer.

A writer is a session and an agent id. Each of its records has its number, the hash of the one
before, and last a hash of everything before it in its line. A head file beside the ledger has each
writer's newest record, so a truncated end is detected. The lock file has the length of the ledger
when all heads were up to date: later records were appended by a process that was killed before it
wrote the head, and no append has to read the rest. All of it is in `gitgates/trace/` in the common
git folder: in the tree, it would change each snapshot and conflict in each merge.

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
from gitgates.store.files import (
    length_of,
    lock_file,
    make_folder,
    open_state,
    read_state,
    replace_file,
)
from gitgates.store.log import (
    append_lines,
    file_name,
    lines_of,
    parse_lines,
    read_lines,
    utc,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias, TypeGuard

    from gitgates.store.log import Fact

    Writer: TypeAlias = tuple[str, str]  # session, agent id
    Link: TypeAlias = tuple[int, str]  # number and hash of a record

VERSION = 1
SEAL = b', "sha256": "'
_END = b'"}'
_LOCK_WAIT_S = 10.0  # each append takes less than a millisecond
_TAIL = 1 << 20  # bytes, of the ledger's end
_SHORT = 8
_MOST_NAMED = 5
_TEXTS = ("id", "time", "session", "agent", *LABELS, "tool", "commit", "prev")
_RECORD = {**dict.fromkeys(_TEXTS, str), "n": int, "files": list}
_ANCHOR = {"time": str, "by": str, "pruned": int, "writers": list}
_HEAD = {"session": str, "agent": str, "n": int, "sha256": str}


def ledger_abs(common_dir_abs: str) -> str:
    """Return the path of the ledger."""
    return f"{common_dir_abs}/gitgates/trace/ledger.jsonl"


def append(common_dir_abs: str, record: Fact) -> Fact:
    """Append a record to the chain of its writer, which it names as `session` and `agent`.

    Return it as written: with v, id, time, n (its number), prev and sha256. Raises: OSError.
    """
    path_abs = ledger_abs(common_dir_abs)
    writer = writer_of(record)
    lock_fd = lock(path_abs)
    try:
        catch_up(path_abs, lock_fd, writer)
        head = read_writer_head(head_abs_of(path_abs, writer)) or {}
        number, digest = head.get("n", 0), head.get("sha256", "")
        first = {"v": VERSION, "id": _uuid(), "time": utc(time.time(), milliseconds=True)}
        line = sealed({**first, **record, "n": number + 1, "prev": digest})
        append_lines(path_abs, lambda _fd, _size: line)
        written = read_record(line)
        write_head(path_abs, writer, (number + 1, written["sha256"]))
        note_end(path_abs, lock_fd)
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


def newest(common_dir_abs: str) -> list[Fact]:
    """Return the newest records, of the last megabyte of the ledger, the newest last.

    Raises: OSError where the ledger cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    size = os.stat(path_abs).st_size if os.path.exists(path_abs) else 0
    return _records(read_lines(path_abs, max(size - _TAIL, 0)))


def recent(common_dir_abs: str, labels: Mapping[str, str], n: int) -> list[str]:
    """Return a line for each of the newest `n` records with these labels, the newest first.

    Raises: OSError where the ledger cannot be read.
    """
    matching = [record for record in newest(common_dir_abs) if labels.items() <= record.items()]
    return [summary(record) for record in matching[::-1][:n]]


def summary(record: Fact) -> str:
    """Return a record as one line: its time, writer, tool, files and their lines."""
    from gitgates.core.clean import first_few, visible_line  # cold: records are read by people

    files = first_few([*map(_file_summary, record["files"])], _MOST_NAMED, record.get("more", 0))
    return visible_line(f"{record['time'][:19]}Z {who(record)} {record['tool']}: {files}")


def who(record: Fact) -> str:
    """Return the writer of a record, as the beginnings of its session and agent."""
    return "/".join(part[:_SHORT] for part in writer_of(record) if part)


def _file_summary(file: Fact) -> str:
    spans = [block["new"] for block in file["blocks"]]
    lines = [f"{at}-{at + count - 1}" if count > 1 else f"{at}" for at, count in spans if count]
    origin = f" from {file['was']}" if file.get("was") else ""
    ranges = f" {','.join(lines)}" if lines and file["operation"] != "create" else ""
    return f"{file['operation']} {file['path']}{origin}{ranges}"


def read_record(line: bytes) -> Fact:
    """Return the record of a line, without its line end.

    Raises: ValueError where it is not a record, or its own hash does not match its content.
    """
    body, seal, end = line.rstrip(b"\n").rpartition(SEAL)
    digest = sha256(body + b"}").hexdigest()
    if not seal or end != digest.encode() + _END:
        raise ValueError("it does not match its own hash")
    record = parse_lines([body + b"}"])[0]
    if not (_has(record, _RECORD) or _has(record, _ANCHOR)) or record.get("v") != VERSION:
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


def note_end(path_abs: str, lock_fd: int) -> None:
    """Note in the locked file that all heads are up to date, for a ledger of this length."""
    os.pwrite(lock_fd, b"%20d" % length_of(path_abs), 0)


def late_records(path_abs: str, lock_fd: int) -> list[Fact]:
    """Return the records since then: a process was killed before it wrote a head for them.

    None where the ledger is shorter now: it was truncated, and `verify` reports missing heads.
    """
    noted, size = os.pread(lock_fd, 20, 0).strip(), length_of(path_abs)
    end = int(noted) if noted.isdigit() else 0
    return _records(read_lines(path_abs, end)) if size > end else []


def catch_up(path_abs: str, lock_fd: int, writer: Writer | None = None) -> None:
    """Write the heads that a killed process has not written, and a damaged one of `writer`."""
    head_abs = head_abs_of(path_abs, writer) if writer else ""
    if os.path.lexists(head_abs) and not read_writer_head(head_abs):
        os.ftruncate(lock_fd, 0)
    late = {writer_of(record): record for record in late_records(path_abs, lock_fd)}
    for by, record in late.items():
        if record["n"] > (read_writer_head(head_abs_of(path_abs, by)) or {"n": 0})["n"]:
            write_head(path_abs, by, (record["n"], record["sha256"]))


def write_head(path_abs: str, writer: Writer, link: Link) -> None:
    """Note the newest record of a writer. Raises: OSError."""
    fields = {"session": writer[0], "agent": writer[1], "n": link[0], "sha256": link[1]}
    replace_file(head_abs_of(path_abs, writer), dumps(fields).encode("ascii"), sync=False)


def writer_of(record: Fact) -> Writer:
    """Return the writer of a record or a head."""
    return record["session"], record["agent"]


def head_abs_of(path_abs: str, writer: Writer) -> str:
    """Return the path of the head file of a writer."""
    return f"{os.path.dirname(path_abs)}/{head_name(writer)}"


def head_name(writer: Writer) -> str:
    """Return the name of the head file of a writer."""
    return f"{file_name(chr(0).join(writer))}.head"


def read_writer_head(head_abs: str) -> Fact | None:
    """Return the fields of a head; None if it is damaged or missing."""
    head = parse_lines([read_state(head_abs) or b""])[0]
    return head if _has(head, _HEAD) else None


def _has(record: Fact | None, fields: Mapping[str, type]) -> TypeGuard[Fact]:
    return record is not None and all(type(record.get(name)) is fields[name] for name in fields)
