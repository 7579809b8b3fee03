"""Check the trace ledger against its hashes, and prune it so that it can still be checked.

Pruning takes the oldest records away and leaves an anchor as the first line: who did it and when,
how many records are gone, and of each writer with records left the last one that is gone.
"""

from __future__ import annotations

import os
import time

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
    read_head,
    read_record,
    sealed,
    writer_of,
)
from gitgates.store.files import remove_file, replace_file
from gitgates.store.log import read_lines, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.trace.ledger import Link, Writer
    from gitgates.store.log import Fact

_NONE: Link = (0, "")
_BEGINNING = b'{"v": '
_SEALED = 66  # bytes: the digest and what closes the line


class Verification(Record):
    """What checking the whole ledger found."""

    records: int
    problems: tuple[str, ...]  # in the order of the ledger; empty: all is as it was written
    notes: tuple[str, ...]  # torn lines, and what was pruned


def verify(common_dir_abs: str) -> Verification:
    """Check each record against its own hash, the chain of its writer, and the heads.

    Raises: OSError where the ledger cannot be read.
    """
    path_abs = ledger_abs(common_dir_abs)
    held = lock(path_abs, shared=True)
    try:
        raw, heads = read_lines(path_abs), _heads(path_abs)
        for one in late_records(path_abs, held) if held >= 0 else ():
            heads.setdefault(head_name(writer_of(one)), one)
    finally:
        if held >= 0:
            os.close(held)
    return _check(raw, heads)


def _check(raw: bytes, heads: dict[str, Fact | None]) -> Verification:
    problems: list[str] = []
    notes: list[str] = []
    anchored: dict[Writer, Link] = {}
    last: dict[Writer, Link] = {}
    seen: set[Link] = set()
    lines = raw.split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        try:
            record = read_record(line)
        except ValueError as error:
            # What a killed writer leaves is the beginning of a record. If it was a whole one, its
            # number is missing, too.
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
        # One that was pruned away with its head begins anew.
        before = [last[writer]] if writer in last else [anchored.get(writer, _NONE), _NONE]
        if (record["n"] - 1, record["prev"]) not in before:
            said = f"record {record['n']} of {_name(writer)} does not follow {before[0][0]}"
            problems.append(f"line {number} ({record['id']}): {said}")
        last[writer] = record["n"], record["sha256"]
        seen.add(last[writer])
    problems += _check_heads(heads, last, seen.union(anchored.values()))
    return Verification(records=len(seen), problems=tuple(problems), notes=tuple(notes))


def _check_heads(
    heads: dict[str, Fact | None], last: dict[Writer, Link], seen: set[Link]
) -> list[str]:
    """Compare the ledger with the heads, which say what each writer has written last."""
    problems = []
    for name, head in heads.items():
        if head is None:
            problems.append(f"{name} is damaged: truncation cannot be ruled out")
        elif (head["n"], head["sha256"]) not in seen:
            writer = writer_of(head)
            problems.append(
                f"record {head['n']} of {_name(writer)} is missing, and possibly others: the "
                "end was truncated. The last one present is"
                f" {last.get(writer, _NONE)[0]}"
            )
    missing = [one for one in last if head_name(one) not in heads]
    return problems + [
        f"the head of {_name(one)} is missing: truncation cannot be ruled out" for one in missing
    ]


def _heads(path_abs: str) -> dict[str, Fact | None]:
    folder_abs = os.path.dirname(path_abs)
    names = sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else []
    return {name: read_head(f"{folder_abs}/{name}") for name in names if name.endswith(".head")}


def _links_of(anchor: Fact) -> dict[Writer, Link]:
    return {(session, agent): (n, digest) for session, agent, n, digest in anchor["writers"]}


def _name(writer: Writer) -> str:
    return f"{writer[0] or 'no session'}/{writer[1]}".rstrip("/")


def prune(common_dir_abs: str, by: str, *, before: str = "", keep: int = -1) -> int:
    """Remove the oldest records: those from before a time, or all but so many; return how many.

    `by`: who wants that. Raises: ValueError where the ledger does not verify, OSError where it
    cannot be written.
    """
    path_abs = ledger_abs(common_dir_abs)
    held = lock(path_abs)
    try:
        catch_up(path_abs, held)
        raw = read_lines(path_abs)
        found = _check(raw, _heads(path_abs))
        if found.problems:
            raise ValueError(found.problems[0])
        links: dict[Writer, Link] = {}
        staying: set[Writer] = set()
        gone, earlier = 0, 0
        kept: list[bytes] = []
        for line in raw.split(b"\n"):
            try:
                record = read_record(line)
            except ValueError:
                continue  # torn
            if "pruned" in record:
                earlier, links = record["pruned"], _links_of(record)
                continue
            writer = writer_of(record)
            is_old = record["time"] < before or 0 <= keep < found.records - gone
            if kept or not is_old:
                kept += [line, b"\n"]
                staying.add(writer)
            else:
                gone += 1
                links[writer] = record["n"], record["sha256"]
        if gone:
            anchor = {"pruned": earlier + gone, "by": by, "time": utc(time.time())}
            _replace(path_abs, anchor, b"".join(kept), links=links, staying=staying)
            note_end(path_abs, held)
    finally:
        os.close(held)
    return gone


def _replace(
    path_abs: str, anchor: Fact, kept: bytes, *, links: dict[Writer, Link], staying: set[Writer]
) -> None:
    """Write the pruned ledger. Who has no records left has no head either, and begins anew."""
    heads = {one: read_head(head_abs_of(path_abs, one)) for one in links}
    listed = [[*one, *link] for one, link in links.items() if heads[one]]
    line = sealed({"v": VERSION, **anchor, "writers": listed})
    replace_file(path_abs, line + kept)
    for writer, head in heads.items():
        if writer not in staying or not head:
            remove_file(head_abs_of(path_abs, writer))
