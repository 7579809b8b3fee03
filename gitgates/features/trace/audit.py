"""Check the trace ledger against its hashes, and prune it so that it can still be checked.

Pruning removes the oldest records and leaves an anchor as the first line: who did it and when, how
many records were removed, and for each writer with remaining records the last removed one.
"""

from __future__ import annotations

import os
import time
from itertools import chain, islice

from gitgates.core.record import Record
from gitgates.features.trace.ledger import (
    SEAL,
    VERSION,
    catch_up,
    head_abs_of,
    head_name,
    late_records,
    ledger_abs,
    lock,
    note_end,
    read_record,
    read_writer_head,
    sealed,
    writer_of,
)
from gitgates.store.files import remove_file, replace_file
from gitgates.store.log import lines_of, read_lines, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.features.trace.ledger import Link, Writer
    from gitgates.store.log import Fact

_NONE: Link = (0, "")
_BEGINNING = b'{"v": '
_SEALED = 66  # bytes: the digest and the end of the line


class Verification(Record):
    """The result of checking the whole ledger."""

    records: int
    problems: tuple[str, ...]  # in the order of the ledger; empty: it is intact
    notes: tuple[str, ...]  # torn lines, and what was pruned


def verify(common_dir_abs: str) -> Verification:
    """Check each record against its own hash, the chain of its writer, and the heads.

    Raises: OSError where the ledger cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    lock_fd = lock(path_abs, shared=True)
    try:
        lines, heads = lines_of(path_abs), _heads(path_abs)
        first = [*islice(lines, 1)]  # now the length is known: later records have no heads here
        for record in late_records(path_abs, lock_fd) if lock_fd >= 0 else ():
            heads.setdefault(head_name(writer_of(record)), record)
    finally:
        if lock_fd >= 0:
            os.close(lock_fd)
    return _check(chain(first, lines), heads)


def _check(lines: Iterable[bytes], heads: dict[str, Fact | None]) -> Verification:
    problems: list[str] = []
    notes: list[str] = []
    anchored: dict[Writer, Link] = {}
    last: dict[Writer, Link] = {}
    named = {(head["n"], head["sha256"]) for head in heads.values() if head}
    links: set[Link] = set()
    count = 0
    for number, whole_line in enumerate(lines, 1):
        line = whole_line.removesuffix(b"\n")
        try:
            record = read_record(line)
        except ValueError as error:
            # A killed writer leaves the beginning of a record. A damaged whole record leaves a
            # gap in the numbers, too.
            _body, seal, end = line.rpartition(SEAL)
            is_short = len(end) < _SEALED if seal else not end.endswith(b"}")
            is_torn = line.startswith(_BEGINNING) and is_short
            text = "is torn" if is_torn else f"is damaged: {error}"
            (notes if is_torn else problems).append(f"line {number} {text}")
            continue
        if "pruned" in record:
            if number > 1:
                problems.append(f"line {number}: a prune record may only be in the first line")
            notes.append(f"{record['time']}: {record['by']} removed {record['pruned']} records")
            anchored |= _links_of(record)
            continue
        writer = writer_of(record)
        # A writer that was pruned with its head starts again.
        before = [last[writer]] if writer in last else [anchored.get(writer, _NONE), _NONE]
        if (record["n"] - 1, record["prev"]) not in before:
            problem = f"record {record['n']} of {_name(writer)} does not follow {before[0][0]}"
            problems.append(f"line {number} ({record['id']}): {problem}")
        last[writer] = record["n"], record["sha256"]
        links |= {last[writer]} & named
        count += 1
    problems += _check_heads(heads, last, links.union(anchored.values()))
    return Verification(records=count, problems=tuple(problems), notes=tuple(notes))


def _check_heads(
    heads: dict[str, Fact | None], last: dict[Writer, Link], links: set[Link]
) -> list[str]:
    """Compare the ledger with the heads, which have the last record of each writer."""
    problems = []
    for name, head in heads.items():
        if head is None:
            problems.append(f"{name} is damaged: truncation cannot be ruled out")
        elif (head["n"], head["sha256"]) not in links:
            writer = writer_of(head)
            problems.append(
                f"record {head['n']} of {_name(writer)} is missing, and possibly others: the "
                "end was truncated. The last one present is"
                f" {last.get(writer, _NONE)[0]}"
            )
    headless = [writer for writer in last if head_name(writer) not in heads]
    return problems + [
        f"the head of {_name(writer)} is missing: truncation cannot be ruled out"
        for writer in headless
    ]


def _heads(path_abs: str) -> dict[str, Fact | None]:
    folder_abs = os.path.dirname(path_abs)
    names = sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else []
    return {
        name: read_writer_head(f"{folder_abs}/{name}") for name in names if name.endswith(".head")
    }


def _links_of(anchor: Fact) -> dict[Writer, Link]:
    return {(session, agent): (n, digest) for session, agent, n, digest in anchor["writers"]}


def _name(writer: Writer) -> str:
    return f"{writer[0] or 'no session'}/{writer[1]}".rstrip("/")


def prune(common_dir_abs: str, by: str, *, before: str = "", keep: int = -1) -> int:
    """Remove the oldest records: those from before a time, or all but so many; return how many.

    `by`: the person, for the anchor. Raises: ValueError where the ledger does not verify, OSError
    where it cannot be written.
    """
    path_abs = ledger_abs(common_dir_abs)
    lock_fd = lock(path_abs)
    try:
        catch_up(path_abs, lock_fd)
        raw = read_lines(path_abs)
        lines = raw.split(b"\n")
        verification = _check(lines if lines[-1] else lines[:-1], _heads(path_abs))
        if verification.problems:
            raise ValueError(verification.problems[0])
        links: dict[Writer, Link] = {}
        remaining_writers: set[Writer] = set()
        removed, earlier = 0, 0
        remaining: list[bytes] = []
        for line in lines:
            try:
                record = read_record(line)
            except ValueError:
                continue  # torn
            if "pruned" in record:
                earlier, links = record["pruned"], _links_of(record)
                continue
            writer = writer_of(record)
            is_old = record["time"] < before or 0 <= keep < verification.records - removed
            if remaining or not is_old:
                remaining += [line, b"\n"]
                remaining_writers.add(writer)
            else:
                removed += 1
                links[writer] = record["n"], record["sha256"]
        if removed:
            anchor = {"pruned": earlier + removed, "by": by, "time": utc(time.time())}
            _replace(
                path_abs,
                anchor,
                b"".join(remaining),
                links=links,
                remaining_writers=remaining_writers,
            )
            note_end(path_abs, lock_fd)
    finally:
        os.close(lock_fd)
    return removed


def _replace(
    path_abs: str,
    anchor: Fact,
    remaining: bytes,
    *,
    links: dict[Writer, Link],
    remaining_writers: set[Writer],
) -> None:
    """Write the pruned ledger. A writer without remaining records loses its head."""
    heads = {writer: read_writer_head(head_abs_of(path_abs, writer)) for writer in links}
    rows = [[*writer, *link] for writer, link in links.items() if heads[writer]]
    line = sealed({"v": VERSION, **anchor, "writers": rows})
    replace_file(path_abs, line + remaining)
    for writer, head in heads.items():
        if writer not in remaining_writers or not head:
            remove_file(head_abs_of(path_abs, writer))
