"""Find the writer of each line of a file, by `git blame` of the points of the memory.

A line is the one's whose recorded tool call made the point that it is from. Where the file was
there before with the same content, such as before a checkout, or in another worktree, blame goes on
there. Lines that are still nobody's, such as a block that came with a merge, or is older than the
memory, are found by the hash of their block.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.features.trace.changed_lines import block_hash, first_mark
from gitgates.files.memory import Memory
from gitgates.files.points import GATE, point_at, record
from gitgates.session import recorder
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol, TypeAlias

    from gitgates.git.repo import Git, Repo
    from gitgates.store.log import Fact

    Source: TypeAlias = tuple[str, str]  # a point, and a path in it
    Line: TypeAlias = tuple[Source, int]  # its number there, from 1
    # First line → length → hash → the place of the record.
    KnownBlocks: TypeAlias = dict[int, dict[int, dict[str, int]]]

    class RecordsByPlace(Protocol):
        """The records of the ledger, such as `ledger.Records`."""

        def items(self) -> Iterable[tuple[int, Fact]]:
            """Return all, in the order of writing."""

        def __getitem__(self, place: int, /) -> Fact:
            """Return the one at a place."""


RECORDED, CONTENT, OLDER = "recorded", "content", "older"
_LEAST = 20  # characters of a block: a shorter one matches by chance
_MOST_STEPS = 20  # back to an earlier version
_BLAME = ("blame", "--incremental", "--first-parent", "-w", "-M", "-C")
_FIND = ("log", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--glob=refs/points/*")
_TREES = ("files", "ignored")  # of a point


class BlamedBlock(Record):
    """Lines in a row that one record wrote, or nobody in the trace."""

    start: int  # from 1
    end: int  # the last one
    record: Fact | None
    how: str = ""  # recorded, content; older: there already when the memory began
    until: str = ""  # of what is older: when that was


def blame(
    repo: Repo, records: RecordsByPlace, path: str, lines: Sequence[bytes]
) -> list[BlamedBlock]:
    """Return who wrote the lines of a text file that is at `path` now.

    Raises: GitError; as `files.look.look`, where the present content cannot be stored.
    """
    marks = [*map(first_mark, lines)]
    writers, blocks = _index(records, {*marks})
    attributions: list[tuple[int, str, str]] = [(-1, "", "")] * len(lines)  # place, how, until
    memory = Memory(repo)
    if memory.exists() and memory.read_ref(memory.ref):
        record(repo, *recorder.writer(repo), None)  # what is there now
        sources = _sources(memory, path)
        by_source = {source: _writer(repo, source, writers) for source, _number in sources}
        for at, (source, _number) in enumerate(sources[: len(lines)]):
            attributions[at] = by_source[source]
    _match_blocks(blocks, lines, marks, attributions)
    return _blocks(records, attributions)


def _index(records: RecordsByPlace, marks: set[int]) -> tuple[dict[Source, int], KnownBlocks]:
    """Return the places of records, by point and path, and by the blocks that may be here."""
    writers: dict[Source, int] = {}
    blocks: KnownBlocks = {}
    for place, fact in records.items():
        for file in fact["files"]:
            if "point" in fact:
                writers.setdefault((fact["point"], file["path"]), place)
            for block in file["blocks"]:
                if block.get("first") in marks:
                    of_first = blocks.setdefault(block["first"], {})
                    of_first.setdefault(block["new"][1], {}).setdefault(block["sha256"], place)
    return writers, blocks


def _sources(memory: Memory, path: str) -> list[Line]:
    """Return where each line of a file comes from: the first point that had it."""
    git, tip = memory.reading, memory.read_ref(memory.ref)
    blamed: dict[Source, list[Line]] = {}
    lines: list[Line] = []
    for tree in _TREES:
        lines = lines or _blame(git, (tip, f"{tree}/{path}"), blamed)
    settled: set[Source] = set()
    for _step in range(_MOST_STEPS):
        new = {source for source, _number in lines} - settled
        if not new:
            break
        settled |= new
        earlier = _first_with_same_content(memory, new)
        lines = [
            _blame(git, earlier[source], blamed)[number - 1] if source in earlier else line
            for line in lines
            for source, number in (line,)
        ]
    return lines


def _blame(git: Git, source: Source, blamed: dict[Source, list[Line]]) -> list[Line]:
    """Return where each line of a version is from. Source: git-blame(1), INCREMENTAL OUTPUT."""
    if source in blamed:
        return blamed[source]
    done = git.ask(*_BLAME, source[0], "--", source[1])
    by_number: dict[int, Line] = {}
    group: list[str] = []
    for raw in done.stdout.splitlines():
        if not group:
            group = raw.decode().split()
        elif raw.startswith(b"filename "):
            commit, first, at, count = group[0], *map(int, group[1:4])
            name = _unquoted(raw.removeprefix(b"filename "))
            by_number |= {at + n: ((commit, name), first + n) for n in range(count)}
            group = []
    blamed[source] = [by_number[number] for number in sorted(by_number)]
    return blamed[source]


def _first_with_same_content(memory: Memory, sources: set[Source]) -> dict[Source, Source]:
    """Return the first point, and the path in it, that had the content of each; not itself."""
    blobs = _blobs(memory, sources)
    first: dict[str, Source] = {}
    commit = ""
    log = memory.reading.out(
        *_FIND, *(f"--find-object={blob}" for blob in {*blobs.values()}), "--", *_TREES
    )
    for raw in log.splitlines():  # the newest first
        if raw.startswith(b":"):
            meta, _, name = raw.partition(b"\t")
            first[meta.split(b" ")[3].decode()] = commit, _unquoted(name)
        else:
            commit = raw.decode() or commit
    return {
        source: first[blob] for source, blob in blobs.items() if first.get(blob, source) != source
    }


def _blobs(memory: Memory, sources: set[Source]) -> dict[Source, str]:
    """Return the blob of each path in a point.

    By dulwich, as a path may have a newline, which would end a line of what git is asked.
    """
    from dulwich.object_format import get_object_format
    from dulwich.object_store import DiskObjectStore, OverlayObjectStore, tree_lookup_path
    from dulwich.objects import Commit, ObjectID

    of_store = get_object_format(memory.repo.object_format)
    folders = (f"{memory.folder_abs}/objects", memory.users_objects_abs)
    store = OverlayObjectStore([DiskObjectStore(each, object_format=of_store) for each in folders])
    blobs = {}
    for commit, path in sources:
        point = store[ObjectID(commit.encode())]
        if isinstance(point, Commit):
            _mode, blob = tree_lookup_path(store.__getitem__, point.tree, os.fsencode(path))
            blobs[commit, path] = blob.decode()
    store.close()
    return blobs


def _unquoted(name: bytes) -> str:
    """Return a name as it is, which git quotes as C does, if it has characters such as a quote."""
    if name.startswith(b'"'):
        name = name[1:-1].decode("unicode_escape").encode("latin-1")
    return name.decode("utf-8", "surrogateescape")


def _writer(repo: Repo, source: Source, writers: Mapping[Source, int]) -> tuple[int, str, str]:
    """Return the place of the record of a point and a path, and how it was found.

    What a gate has changed in a call's file is the call's.
    """
    commit, path = source[0], source[1].partition("/")[2]
    while (commit, path) not in writers:
        point = point_at(repo, commit)
        if not (point and point.parent):
            return -1, OLDER, utc(point.time_s) if point else ""
        if point.author.kind != GATE:
            return -1, "", ""
        commit = point.parent
    return writers[commit, path], RECORDED, ""


def _match_blocks(
    blocks: KnownBlocks,
    lines: Sequence[bytes],
    marks: Sequence[int],
    attributions: list[tuple[int, str, str]],
) -> None:
    """Find blocks by their hash among the lines that have no writer yet, long ones first.

    Of equal blocks, the one written first counts.
    """
    places = [(length, at) for at, mark in enumerate(marks) for length in blocks.get(mark, ())]
    for length, at in sorted(places, key=lambda place: (-place[0], place[1])):
        window = lines[at : at + length]
        if len(window) < length or any(
            place >= 0 for place, *_how in attributions[at : at + length]
        ):
            continue
        place = blocks[marks[at]][length].get(block_hash(window), -1)
        if place >= 0 and sum(len(line.strip()) for line in window) >= _LEAST:
            attributions[at : at + length] = [(place, CONTENT, "")] * length


def _blocks(
    records: RecordsByPlace, attributions: Sequence[tuple[int, str, str]]
) -> list[BlamedBlock]:
    blocks: list[BlamedBlock] = []
    for number, (place, how, until) in enumerate(attributions, 1):
        if number > 1 and attributions[number - 2] == (place, how, until):
            blocks[-1] = blocks[-1]._replace(end=number)
            continue
        fact = records[place] if place >= 0 else None
        blocks.append(BlamedBlock(start=number, end=number, record=fact, how=how, until=until))
    return blocks
