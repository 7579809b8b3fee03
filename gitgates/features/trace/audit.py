"""Check the trace ledger against its hashes, and prune it so that it can still be checked.

Pruning removes the oldest records and leaves an anchor as the first line: who did it and when, how
many records were removed, and the number and hash of the last one.
"""

from __future__ import annotations

import os
import time
from itertools import chain, islice

from gitgates.core.clean import counted
from gitgates.core.record import Record
from gitgates.features.trace.ledger import (
    EARLIER,
    SEAL,
    VERSION,
    ledger_abs,
    lock,
    read_head,
    read_record,
    sealed,
    write_head,
)
from gitgates.store.files import replace_file
from gitgates.store.log import lines_of, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Link: TypeAlias = tuple[int, str]  # number and hash of a record

_NONE: Link = (0, "")
_BEGINNING = b'{"v": '
_SEALED = 66  # bytes: the digest and the end of the line


class Verification(Record):
    """The result of checking the whole ledger."""

    records: int
    problems: tuple[str, ...]  # in the order of the ledger; empty: it is intact
    notes: tuple[str, ...]  # torn lines, and what was pruned


def verify(common_dir_abs: str) -> Verification:
    """Check each record against its own hash, the chain, and the head.

    Raises: OSError where the ledger cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    lock_fd = lock(path_abs, shared=True)
    try:
        lines = lines_of(path_abs)
        first = [*islice(lines, 1)]  # now the length is known, and is that of the head
        return _check(chain(first, lines), path_abs)
    finally:
        if lock_fd >= 0:
            os.close(lock_fd)


def _check(lines: Iterable[bytes], path_abs: str) -> Verification:
    problems: list[str] = []
    notes: list[str] = []
    last, links = _NONE, {_NONE}
    count = earlier = 0
    for number, whole_line in enumerate(lines, 1):
        line = whole_line.removesuffix(b"\n")
        try:
            record = read_record(line)
        except ValueError as error:
            is_torn = _is_torn(line)
            text = "is torn" if is_torn else f"is damaged: {error}"
            (notes if is_torn else problems).append(f"line {number} {text}")
            continue
        if "pruned" in record:
            if number > 1:
                problems.append(f"line {number}: a prune record may only be in the first line")
            notes.append(f"{record['time']}: {record['by']} removed {record['pruned']} records")
            last = record.get("n", 0), record.get("last", "")
        else:
            count += 1
            if record["v"] == EARLIER:
                earlier += 1
                continue
            if (record["n"] - 1, record["prev"]) != last:
                problem = f"record {record['n']} does not follow {last[0]}"
                problems.append(f"line {number} ({record['id']}): {problem}")
            last = record["n"], record["sha256"]
        links.add(last)
    if earlier:
        notes.append(f"{counted(earlier, 'record')} of an earlier version: checked one by one")
    problems += _check_head(path_abs, last, links)
    return Verification(records=count, problems=tuple(problems), notes=tuple(notes))


def _is_torn(line: bytes) -> bool:
    """Return whether a line is the beginning of a record, whose writer was killed.

    A damaged whole record leaves a gap in the numbers, too.
    """
    _body, seal, end = line.rpartition(SEAL)
    is_short = len(end) < _SEALED if seal else not end.endswith(b"}")
    return line.startswith(_BEGINNING) and is_short


def _check_head(path_abs: str, last: Link, links: set[Link]) -> list[str]:
    """Compare the ledger with the head, which has the last record."""
    try:
        head = read_head(path_abs)
    except FileNotFoundError:
        is_new = last == _NONE
        return [] if is_new else ["the head is missing: truncation cannot be ruled out"]
    if head is None:
        return ["the head is damaged: truncation cannot be ruled out"]
    if (head.n, head.sha256) in links:
        return []
    gone = f"record {head.n} is missing, and possibly others: the end was truncated."
    return [f"{gone} The last one present is {last[0]}"]


def prune(common_dir_abs: str, by: str, *, before: str = "", keep: int = -1) -> int:
    """Remove the oldest records: those from before a time, or all but so many; return how many.

    `by`: the person, for the anchor. Raises: ValueError where the ledger does not verify, OSError
    where it cannot be written.
    """
    path_abs = ledger_abs(common_dir_abs)
    lock_fd = lock(path_abs)
    try:
        lines = [*lines_of(path_abs)]
        verification = _check(lines, path_abs)
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
                earlier, link = record["pruned"], (record.get("n", 0), record.get("last", ""))
                continue
            is_old = record["time"] < before or 0 <= keep < verification.records - removed
            if remaining or not is_old:
                remaining.append(line)
            else:
                removed += 1
                link = (record["n"], record["sha256"]) if record["v"] == VERSION else link
        if removed:
            anchor = {"pruned": earlier + removed, "by": by, "time": utc(time.time())}
            line = sealed({"v": VERSION, **anchor, "n": link[0], "last": link[1]})
            replace_file(path_abs, line + b"".join(remaining))
            _mark_end(path_abs, remaining, link)
    finally:
        os.close(lock_fd)
    return removed


def _mark_end(path_abs: str, remaining: list[bytes], link: Link) -> None:
    """Write the head of a pruned ledger. Raises: OSError."""
    records = [read_record(line) for line in remaining]
    chained = [record for record in records if record["v"] == VERSION]
    write_head(path_abs, *((chained[-1]["n"], chained[-1]["sha256"]) if chained else link))
