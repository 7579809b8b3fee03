"""Find the writer of each line of a file: by replaying the trace, and by hashes of content.

The records of a file's versions say which lines each call has replaced, so the writers of a
version that is recorded follow from them alone. Later changes, by nobody in the trace, are
compared with the newest versions whose content git still has. Lines that no version has any more,
such as a block in another file, are found by their hash: as they are, then without indentation.
"""

from __future__ import annotations

from array import array
from difflib import SequenceMatcher
from itertools import islice

from gitgates.core.record import Record
from gitgates.features.trace.content import (
    FileContent,
    block_hash,
    first_mark,
    loose_hash,
    of_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Protocol, TypeAlias

    from gitgates.store.log import Fact

    Step: TypeAlias = tuple[Fact, Fact]  # a record, and one file of it
    Attribution: TypeAlias = tuple[Fact, str]  # the record that wrote a line, and how it was found
    # First line → length → hash → the place of the record.
    KnownBlocks: TypeAlias = dict[int, dict[int, dict[str, int]]]

    class RecordsByPlace(Protocol):
        """The records of the ledger, such as `ledger.Records`."""

        def items(self) -> Iterable[tuple[int, Fact]]:
            """Return all, in the order of writing."""

        def __getitem__(self, place: int, /) -> Fact:
            """Return the one at a place."""


RECORDED, CONTENT, REINDENTED = "recorded", "content", "re-indented"
_MOST_VERSIONS = 20  # that the current one is compared with
_LONG = 1000  # lines; above, frequently repeated lines are not compared
_LEAST = 20  # characters of a block: a shorter one matches by chance


class BlamedBlock(Record):
    """Lines in a row that one record wrote, or nobody in the trace."""

    start: int  # from 1
    end: int  # the last one
    record: Fact | None
    how: str = ""  # recorded, content, re-indented


class Versions:
    """The versions of files that the records of the ledger have made.

    A step is one file of one record. Of most, only the hashes and the place are in memory.
    """

    def __init__(self, records: RecordsByPlace, marks: Collection[int]) -> None:
        self._records = records
        self._loaded: dict[int, Fact] = {}
        self._places = array("q")  # of the record of each step
        self._numbers = array("q")  # of the file in it
        self._paths = array("q")  # hashes of the paths
        self._first: dict[str, int] = {}  # hash → the step that made it; -1: it existed before
        self.blocks: dict[str, KnownBlocks] = {"sha256": {}, "loose": {}}
        for place, record in records.items():
            for number, file in enumerate(record["files"]):
                self._add(place, number, file, marks)

    def _add(self, place: int, number: int, file: Fact, marks: Collection[int]) -> None:
        step = len(self._places)
        self._places.append(place)
        self._numbers.append(number)
        self._paths.append(hash(file["path"]))
        self._first.setdefault(file["before"] or "", -1)
        if self._first.setdefault(file["after"], step) != step:
            # A step that undoes another, restores a stash, or copies has written none of its lines.
            return
        for block in file["blocks"]:
            for field in self.blocks.keys() & block.keys() if block.get("first") in marks else ():
                of_first = self.blocks[field].setdefault(block["first"], {})
                of_first.setdefault(block["new"][1], {}).setdefault(block[field], place)

    def record(self, place: int) -> Fact:
        """Return the record at a place, which is the same one each time."""
        if place not in self._loaded:
            self._loaded[place] = self._records[place]
        return self._loaded[place]

    def step(self, step: int) -> Step:
        """Return the record of a step, and its file in that."""
        record = self.record(self._places[step])
        return record, record["files"][self._numbers[step]]

    def first(self, digest: str | None) -> int:
        """Return the first step that made a version; -1 if none did, or it existed before."""
        return self._first.get(digest, -1) if digest else -1

    def of_file(self, path: str) -> Iterator[int]:
        """Yield the steps that made versions of a file, the newest first."""
        names = {path}
        hashes = {hash(path)}
        for step in range(len(self._places) - 1, -1, -1):
            if self._paths[step] in hashes and (file := self.step(step)[1])["path"] in names:
                if was := file.get("was"):
                    names.add(was)
                    hashes.add(hash(was))
                yield step

    def writers(self, number: int) -> list[Attribution | None]:
        """Return the record that wrote each line of the version that a step made."""
        chain, count = [], self.step(number)[1]["lines"]
        number = self.first(self.step(number)[1]["after"])
        while number >= 0:
            chain.append(number)
            file = self.step(number)[1]
            count = file["lines"] + sum(
                block["old"][1] - block["new"][1] for block in file["blocks"]
            )
            number = self.first(file["before"])
        attributions: list[Attribution | None] = [None] * count
        for step in reversed(chain):
            attributions = _replay(attributions, *self.step(step))
        return attributions


def _replay(before: list[Attribution | None], record: Fact, file: Fact) -> list[Attribution | None]:
    after: list[Attribution | None] = []
    copied = 0
    for block in file["blocks"]:
        first, count = block["old"]
        attribution: Attribution = (record, RECORDED)
        after += [*before[copied : first - 1], *[attribution] * block["new"][1]]
        copied = first - 1 + count
    return after + before[copied:]


def blame(
    records: RecordsByPlace, path: str, now: FileContent, *, stores: list[str], object_format: str
) -> list[BlamedBlock]:
    """Return who wrote the lines of a text file that is at `path` now.

    `stores`: folders of git objects, with the content of earlier versions.
    """
    marks = [first_mark(line) for line in now.lines]
    versions = Versions(records, {*marks})
    made_by = versions.first(now.sha256)
    attributions = (
        versions.writers(made_by)
        if made_by >= 0
        else _compare(versions, path, now, stores=stores, object_format=object_format)
    )
    for is_loose in (False, True):
        _match_blocks(versions, now.lines, marks, attributions, is_loose=is_loose)
    return _blocks(attributions)


def _compare(
    versions: Versions, path: str, now: FileContent, *, stores: list[str], object_format: str
) -> list[Attribution | None]:
    """Find lines in the newest versions of a file whose content git has."""
    attributions: list[Attribution | None] = [None] * len(now.lines)
    steps = {at: versions.step(at)[1] for at in islice(versions.of_file(path), _MOST_VERSIONS)}
    texts = {at: file["blob"] for at, file in steps.items() if file["kind"] == "text"}
    contents = _read_blobs(stores, {*texts.values()}, object_format)
    for number, blob in texts.items():
        if blob not in contents:
            continue
        writers, version = versions.writers(number), of_bytes(contents[blob])
        matcher = SequenceMatcher(None, version.marks, now.marks, autojunk=len(now.marks) > _LONG)
        for old, new, size in matcher.get_matching_blocks():
            for offset in range(size):
                attributions[new + offset] = attributions[new + offset] or writers[old + offset]
    return attributions


def _read_blobs(stores: list[str], ids: set[str], object_format: str) -> dict[str, bytes]:
    """Return the contents of blobs that are in folders of objects; others are left out.

    By dulwich, in this process: many are expected to be missing, and in a partial clone git
    would fetch each one, with the programs that the repository's configuration names for that.
    """
    if not any(ids):
        return {}
    from dulwich.object_format import get_object_format
    from dulwich.object_store import DiskObjectStore  # takes 70 ms; most calls compare nothing
    from dulwich.objects import ObjectID

    of_store = get_object_format(object_format)
    # Records of a repository with SHA-256 objects may have SHA-1 ids, from an earlier release.
    ids = {blob for blob in ids if len(blob) == of_store.hex_length}
    contents: dict[str, bytes] = {}
    for folder_abs in stores:
        store = DiskObjectStore(folder_abs, object_format=of_store)
        try:
            for blob in ids - contents.keys():
                object_id = ObjectID(blob.encode())
                if object_id in store:
                    contents[blob] = store[object_id].as_raw_string()
        finally:
            store.close()
    return contents


def _match_blocks(
    versions: Versions,
    lines: Sequence[bytes],
    marks: list[int],
    attributions: list[Attribution | None],
    *,
    is_loose: bool,
) -> None:
    """Find blocks by their hash among the lines that have no writer yet, long ones first.

    Of equal blocks, the one written first counts.
    """
    field, hash_of = ("loose", loose_hash) if is_loose else ("sha256", block_hash)
    how = REINDENTED if is_loose else CONTENT
    known_blocks = versions.blocks[field]
    places = [
        (length, at) for at, mark in enumerate(marks) for length in known_blocks.get(mark, ())
    ]
    for length, at in sorted(places, key=lambda place: (-place[0], place[1])):
        window = lines[at : at + length]
        if len(window) < length or any(attributions[at : at + length]):
            continue
        place = known_blocks[marks[at]][length].get(hash_of(window), -1)
        if place >= 0 and sum(len(line.strip()) for line in window) >= _LEAST:
            attributions[at : at + length] = [(versions.record(place), how)] * length


def _blocks(attributions: Iterable[Attribution | None]) -> list[BlamedBlock]:
    blocks: list[BlamedBlock] = []
    for number, attribution in enumerate(attributions, 1):
        record, how = attribution or (None, "")
        if blocks and blocks[-1].record is record and blocks[-1].how == how:
            blocks[-1] = blocks[-1]._replace(end=number)
        else:
            blocks.append(BlamedBlock(start=number, end=number, record=record, how=how))
    return blocks
