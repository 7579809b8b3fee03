"""Find the writer of each line in a file, by `git blame` on the points of the memory of files.

A line's writer is the agent whose recorded tool call made the point that the line comes from. If an
earlier file had the same content, such as before a checkout or in another worktree, blame continues
there.
"""

from __future__ import annotations

import os
from itertools import groupby

from gitgates.core.record import Record
from gitgates.drivers import recorder
from gitgates.files.memory import Memory
from gitgates.files.points import GATE, point_at, record
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Git, Repo
    from gitgates.store.log import Fact

    Source: TypeAlias = tuple[str, str]  # a point, and a path in it

RECORDED, OLDER = "recorded", "older"
_MOST_STEPS = 20  # back to earlier versions
_BLAME = ("blame", "--incremental", "--first-parent", "-w", "-M", "-C")
_FIND = ("log", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--glob=refs/points/*")
_TREES = ("files", "ignored")  # in a point


class Writer(Record):
    """Who wrote a line."""

    record: Fact | None = None  # None: nobody in the trace
    how: str = ""  # recorded; older: it existed when the memory began
    until: str = ""  # for `older`: when that was


class BlamedBlock(Record):
    """Consecutive lines by one writer."""

    start: int  # from 1
    end: int  # the last one
    writer: Writer


def blame(repo: Repo, records: Iterable[Fact], path: str) -> list[BlamedBlock]:
    """Return who wrote the lines of the text file that is now at `path`.

    Raises: GitError; as `files.look.look` if the current content cannot be stored.
    """
    by_source: dict[Source, Fact] = {}
    for fact in records:
        for file in fact["files"]:
            by_source.setdefault((str(fact.get("point")), file["path"]), fact)
    memory = Memory(repo)
    if not (memory.exists() and memory.read_ref(memory.ref)):
        return []
    record(repo, *recorder.writer(repo), None)  # the current content
    blamed = _Blame(memory, by_source)
    tip = memory.read_ref(memory.ref)
    writers = next(filter(None, (blamed.writers((tip, f"{tree}/{path}")) for tree in _TREES)), [])
    blocks = []
    for writer, lines in groupby(enumerate(writers, 1), lambda line: line[1]):
        numbers = [number for number, _writer in lines]
        blocks.append(BlamedBlock(start=numbers[0], end=numbers[-1], writer=writer))
    return blocks


class _Blame:
    """The writers of file versions; git is asked once about each."""

    def __init__(self, memory: Memory, by_source: Mapping[Source, Fact]) -> None:
        self._memory, self._by_source = memory, by_source
        self._writers: dict[Source, list[Writer]] = {}

    def writers(self, source: Source, steps: int = _MOST_STEPS) -> list[Writer]:
        """Return the writer of each line in a version."""
        if source not in self._writers:
            self._writers[source] = []  # which ends a cycle
            lines = _sources_of_lines(self._memory.reading, source)
            earlier = self._earlier({line[0] for line in lines}) if steps else {}
            writers = []
            for from_source, number in lines:
                older = (
                    self.writers(earlier[from_source], steps - 1) if from_source in earlier else []
                )
                is_there = len(older) >= number
                writers.append(older[number - 1] if is_there else self._recorded(from_source))
            self._writers[source] = writers
        return self._writers[source]

    def _recorded(self, source: Source) -> Writer:
        """Return who recorded a file in a point. A gate's changes count as the tool call's."""
        commit, path = source[0], source[1].partition("/")[2]
        while (commit, path) not in self._by_source:
            point = point_at(self._memory.repo, commit)
            if not (point and point.parent):
                return Writer(how=OLDER, until=utc(point.time_s) if point else "")
            if point.author.kind != GATE:
                return Writer()
            commit = point.parent
        return Writer(self._by_source[commit, path], RECORDED)

    def _earlier(self, sources: set[Source]) -> dict[Source, Source]:
        """Return, for each version, the first other point and path with the same content."""
        git, blobs = self._memory.reading, _blobs(self._memory, sources)
        first: dict[str, Source] = {}
        commit = ""
        log = git.out(
            *_FIND, *(f"--find-object={blob}" for blob in {*blobs.values()}), "--", *_TREES
        )
        for raw in log.splitlines():  # newest first
            if raw.startswith(b":"):
                meta, _, name = raw.partition(b"\t")
                first[meta.split(b" ")[3].decode()] = commit, _unquoted(name)
            else:
                commit = raw.decode() or commit
        return {s: first[blob] for s, blob in blobs.items() if first.get(blob, s) != s}


def _blobs(memory: Memory, sources: set[Source]) -> dict[Source, str]:
    """Return the blob of each path in a point."""
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


def _sources_of_lines(git: Git, source: Source) -> list[tuple[Source, int]]:
    """Return where each line in a version is from. Source: git-blame(1), INCREMENTAL OUTPUT."""
    by_number: dict[int, tuple[Source, int]] = {}
    group: list[str] = []
    for raw in git.ask(*_BLAME, source[0], "--", source[1]).stdout.splitlines():
        if not group:
            group = raw.decode().split()
        elif raw.startswith(b"filename "):
            commit, first, at, count = group[0], *map(int, group[1:4])
            name = _unquoted(raw.removeprefix(b"filename "))
            by_number |= {at + n: ((commit, name), first + n) for n in range(count)}
            group = []
    return [by_number[number] for number in sorted(by_number)]


def _unquoted(name: bytes) -> str:
    """Return a name without git's quoting, which is C's, for names with special characters."""
    if name.startswith(b'"'):
        name = name[1:-1].decode("unicode_escape").encode("latin-1")
    return name.decode("utf-8", "surrogateescape")
