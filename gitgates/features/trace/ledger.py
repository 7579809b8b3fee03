"""The trace ledger: append-only, shared by worktrees, one chain of SHA-256 hashes.

Each record has its number, the previous record's hash, and finally a hash of everything before it
in its line. A head file beside the ledger has the newest record's number and hash, so that a
truncated end is detected. Pruning removes the oldest records and leaves an anchor as the first
line: who did it and when, how many records were removed, and the last one's number and hash. All
files are in `gitgates/trace/` in the common git folder: in the tree, they would conflict in each
merge.

This detects accidents and careless edits. Whoever can write these files can forge all of them.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from hashlib import sha256

from gitgates.core.lean_json import dumps
from gitgates.core.policy import LABELS
from gitgates.core.record import Record
from gitgates.store.files import length_of, lock_file, make_folder, read_state, replace_file
from gitgates.store.log import append_lines, lines_of, parse_lines, read_lines, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from gitgates.store.log import Fact

    Link: TypeAlias = tuple[int, str]  # a record's number and hash

VERSION = 2
_SEAL = b', "sha256": "'
_END = b'"}'
_LOCK_WAIT_S = 10.0  # each append takes less than a millisecond
_TAIL = 1 << 20  # bytes at the ledger's end
_SHORT = 8
_MOST_NAMED = 5
_NONE: Link = (0, "")
_TEXTS = ("id", "time", "session", "agent", *LABELS, "tool", "commit", "prev")
_RECORD = {**dict.fromkeys(_TEXTS, str), "n": int, "files": list}
_ANCHOR = {"time": str, "by": str, "pruned": int, "n": int, "last": str}
_HEAD = {"n": int, "sha256": str}


def ledger_abs(common_dir_abs: str) -> str:
    """Return the ledger's path."""
    return f"{common_dir_abs}/gitgates/trace/ledger.jsonl"


def append(common_dir_abs: str, record: Fact) -> Fact:
    """Append a record; return it as written, with v, id, time, n (its number), prev and sha256.

    Raises: OSError.
    """
    path_abs = ledger_abs(common_dir_abs)
    with locked(path_abs):
        if length_of(path_abs) <= 0:
            write_head(path_abs, _read_head(path_abs) or _NONE)  # before the first record
        n, digest = _last(path_abs)
        first = {"v": VERSION, "id": _uuid(), "time": utc(time.time(), milliseconds=True)}
        line = sealed({**first, **record, "n": n + 1, "prev": digest})
        append_lines(path_abs, lambda _fd, _size: line)
        written = read_record(line)
        write_head(path_abs, (written["n"], written["sha256"]))
    return written


def records(common_dir_abs: str) -> Iterator[Fact]:
    """Yield each record whose own hash is correct, oldest first. Raises: OSError."""
    for line in lines_of(ledger_abs(common_dir_abs)):
        if record := _record_in(line):
            yield record


def recent(common_dir_abs: str, labels: Mapping[str, str], n: int) -> list[str]:
    """Return a line for each of the newest `n` records with these labels, newest first.

    Only the ledger's last megabyte is searched. Raises: OSError if it cannot be read.
    """
    newest = map(_record_in, reversed(_tail(ledger_abs(common_dir_abs))))
    matching = [record for record in newest if record and labels.items() <= record.items()]
    return [summary(record) for record in matching[:n]]


def summary(record: Fact) -> str:
    """Return a record as one line: its time, writer, tool, files and their lines."""
    from gitgates.core.clean import first_few, visible_line  # cold: records are read by people

    files = first_few([*map(_file_summary, record["files"])], _MOST_NAMED, record.get("more", 0))
    return visible_line(f"{record['time'][:19]}Z {who(record)} {record['tool']}: {files}")


def who(record: Fact) -> str:
    """Return a record's writer, as the beginnings of its session and agent."""
    return "/".join(part[:_SHORT] for part in (record["session"], record["agent"]) if part)


def _file_summary(file: Fact) -> str:
    spans = [block["new"] for block in file["blocks"]]
    lines = [f"{at}-{at + count - 1}" if count > 1 else f"{at}" for at, count in spans if count]
    origin = f" from {file['was']}" if file.get("was") else ""
    ranges = f" {','.join(lines)}" if lines and file["operation"] != "create" else ""
    return f"{file['operation']} {file['path']}{origin}{ranges}"


# Verify and prune


class Verification(Record):
    """The result of checking the whole ledger."""

    records: int
    problems: tuple[str, ...]  # in the ledger's order; empty: it is intact
    notes: tuple[str, ...]  # on torn lines, and on pruning


def verify(common_dir_abs: str) -> Verification:
    """Check each record against its own hash, the chain, and the head.

    Raises: OSError if the ledger cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    head = _read_head(path_abs)  # first: later records may be written meanwhile
    return _check(lines_of(path_abs), head)


def _check(lines: Iterable[bytes], head: Link | None) -> Verification:
    problems: list[str] = []
    notes: list[str] = []
    last, count, links = _NONE, 0, {_NONE}
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line)
        except ValueError as error:
            is_torn = not line.endswith(b"}\n")
            text = "is torn" if is_torn else f"is damaged: {error}"
            (notes if is_torn else problems).append(f"line {number} {text}")
            continue
        if "pruned" in record:
            if number > 1:
                problems.append(f"line {number}: a prune record may only be in the first line")
            notes.append(f"{record['time']}: {record['by']} removed {record['pruned']} records")
            last = record["n"], record["last"]
        else:
            count += 1
            if (record["n"] - 1, record["prev"]) != last:
                problem = f"record {record['n']} does not follow {last[0]}"
                problems.append(f"line {number} ({record['id']}): {problem}")
            last = record["n"], record["sha256"]
        links.add(last)
    if head is None and last != _NONE:
        problems.append("the head is missing or damaged: truncation cannot be ruled out")
    elif head is not None and head not in links:
        gone = f"record {head[0]} is missing, and possibly others: the end was truncated."
        problems.append(f"{gone} The last one present is {last[0]}")
    return Verification(records=count, problems=tuple(problems), notes=tuple(notes))


def prune(common_dir_abs: str, by: str, *, before: str = "", keep: int = -1) -> int:
    """Remove the oldest records: those before a time, or all but a number; return how many.

    `by`: the person, for the anchor. Raises: ValueError if the ledger does not verify, OSError
    if it cannot be written.
    """
    path_abs = ledger_abs(common_dir_abs)
    with locked(path_abs):
        lines = [*lines_of(path_abs)]
        verification = _check(lines, _read_head(path_abs))
        if verification.problems:
            raise ValueError(verification.problems[0])
        removed, earlier, link = 0, 0, _NONE
        remaining: list[bytes] = []
        for line in lines:
            try:
                record = read_record(line)
            except ValueError:
                continue  # torn
            if "pruned" in record:
                earlier, link = record["pruned"], (record["n"], record["last"])
                continue
            is_old = record["time"] < before or 0 <= keep < verification.records - removed
            if remaining or not is_old:
                remaining.append(line)
            else:
                removed += 1
                link = record["n"], record["sha256"]
        if removed:
            anchor = {"pruned": earlier + removed, "by": by, "time": utc(time.time())}
            line = sealed({"v": VERSION, **anchor, "n": link[0], "last": link[1]})
            replace_file(path_abs, line + b"".join(remaining))
    return removed


# Lines, and the head


def sealed(fields: Fact) -> bytes:
    """Return a ledger line: fields, and finally their hash."""
    body = dumps(fields).encode("ascii")
    return body[:-1] + _SEAL + sha256(body).hexdigest().encode() + _END + b"\n"


def read_record(line: bytes) -> Fact:
    """Return a line's record or anchor. Raises: ValueError, with the problem."""
    body, seal, end = line.removesuffix(b"\n").rpartition(_SEAL)
    digest = end.removesuffix(_END).decode("ascii", "replace")
    if not (seal and end.endswith(_END)) or sha256(body + b"}").hexdigest() != digest:
        raise ValueError("it does not match its own hash")
    fields = parse_lines([body + b"}"])[0]
    is_ours = _has(fields, _RECORD) or _has(fields, _ANCHOR)
    if not (fields and is_ours and fields.get("v") == VERSION):
        raise ValueError("it is not a record known to this version")
    return {**fields, "sha256": digest}


def _record_in(line: bytes) -> Fact | None:
    """Return a line's record; None if it is torn or damaged, which `verify` reports."""
    try:
        record = read_record(line)
    except ValueError:
        return None
    return record if "files" in record else None


def _tail(path_abs: str) -> list[bytes]:
    """Return the ledger's last lines."""
    return read_lines(path_abs, max(length_of(path_abs) - _TAIL, 0)).splitlines()


def _last(path_abs: str) -> Link:
    """Return the newest record: the head's, or one whose writer was killed before updating it.

    If the end was truncated, the next record leaves a gap that `verify` reports.
    """
    newest = (record for line in reversed(_tail(path_abs)) if (record := _record_in(line)))
    record = next(newest, None)
    last: Link = (record["n"], record["sha256"]) if record else _NONE
    return max(last, _read_head(path_abs) or _NONE)


def _read_head(path_abs: str) -> Link | None:
    """Return the head; None if it is missing or damaged. Raises: OSError."""
    fields = parse_lines([read_state(_head_abs(path_abs)) or b""])[0]
    return (fields["n"], fields["sha256"]) if fields and _has(fields, _HEAD) else None


def write_head(path_abs: str, link: Link) -> None:
    """Write the newest record of the locked ledger to the head. Raises: OSError."""
    head = dumps({"n": link[0], "sha256": link[1]}).encode("ascii")
    replace_file(_head_abs(path_abs), head, sync=False)


def _head_abs(path_abs: str) -> str:
    return f"{os.path.dirname(path_abs)}/head"


@contextmanager
def locked(path_abs: str) -> Iterator[None]:
    """Hold the ledger's lock for writing. Raises: OSError."""
    folder_abs = os.path.dirname(path_abs)
    make_folder(os.path.dirname(folder_abs))
    make_folder(folder_abs)
    fd = lock_file(f"{folder_abs}/lock", wait_s=_LOCK_WAIT_S)
    if fd < 0:
        raise OSError(errno.ETIMEDOUT, "another process holds its lock", path_abs)
    try:
        yield
    finally:
        os.close(fd)


def _has(record: Fact | None, fields: Mapping[str, type]) -> bool:
    return record is not None and all(type(record.get(name)) is fields[name] for name in fields)


def _uuid() -> str:
    """Return a random UUID (version 4), without `import uuid`, which is slow."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
