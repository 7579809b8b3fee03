"""What a run depends on: the state of all that it read, if that can be known.

A run may change what it has read: a cache, a report. Its pass is recorded only if that was the
same before and after, so that the next run would read the same; in a cache folder, what the run has
left there counts instead.
"""

from __future__ import annotations

import os
import stat

from gitgates.observed.command import privileged
from gitgates.observed.reads import is_below
from gitgates.observed.state import ABSENT_STATE, CACHE_MARK, NAMES, SPECIAL, in_cache, is_index
from gitgates.observed.syscalls import ABSENT, CONTENT, LISTED, PROGRAM, THERE
from gitgates.observed.unchanged import CHANGES, Dependencies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from gitgates.observed.reads import Observation
    from gitgates.observed.state import Reader

_DECIDE = ("lastfailed", "stepwise")  # in a cache of pytest: which tests run at all
_EXISTENCE = THERE | ABSENT


def dependencies(
    seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
) -> Dependencies:
    """Return what a run depends on, when it has just ended.

    `before` is what `states_before` has returned before it; `began_ns` is when it began, by the
    clock of the file system: the time of the new file for the trace.
    """
    return _EndedRun(seen, reader, before, began_ns).dependencies()


class _EndedRun:
    """One run that has ended."""

    def __init__(
        self, seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
    ) -> None:
        self._seen = seen
        self._reader = reader
        self._before = before
        self._began_ns = began_ns
        self._caches: dict[str, str] = {}  # path → the cache folder that it is in
        self._above: set[str] = set()  # folders on the way to what was read
        self._spoilt, self._unreusable = seen.spoilt, seen.unreusable
        self._states: dict[str, str] = {}
        # Git's index may keep which files a folder had at which time: then it only looks at that.
        self._asks_git = any(map(is_index, seen.reads))
        self._changed: list[str] = []
        # Folders in which it may have made or removed something; and those where that remains so.
        self._touched = {os.path.dirname(path) for path in seen.written}
        # A folder with the mark of a cache that is only read, such as an environment, is none.
        self._own_caches = {
            self._cache_of(path) for path in seen.written if not reader.is_left_out(path)
        }
        self._refilled = {os.path.dirname(path) for path in seen.written if self._is_new(path)}

    def dependencies(self) -> Dependencies:
        """Look at all that was read."""
        programs: set[str] = set()
        for path, how in self._seen.reads.items():
            if self._is_own_temporary(path) or self._reader.is_left_out(path):
                continue
            # A tool that walks all folders finds ours: only files that it has read there count.
            is_file = how & CONTENT and not os.path.isdir(path)
            if self._reader.is_own_state(path) and not is_file and how != ABSENT:
                continue
            self._add(path, how)
            self._look_above(path)
            if how & PROGRAM:
                self._spoilt = self._spoilt or privileged(path)
                files = (path, *interpreters(path))
                programs.update(map(self._reader.key, files))
                for program in files[1:]:
                    self._add_interpreter(program)
        self._add_folders_of_outputs()
        return Dependencies(
            root_abs=self._reader.root_abs,
            states=self._states,
            programs=frozenset(programs),
            changed=tuple(self._changed),
            unreusable=self._unreusable,
            spoilt=self._spoilt,
        )

    def _add(self, path: str, how: int) -> None:
        """Take a path as something that the run depends on; note if that cannot be known."""
        key = self._reader.key(path)
        cache = self._cache_of(path)
        names = bool(how & LISTED) or (self._asks_git and self._reader.is_source(key))
        names = names and not (path in self._touched and self._reader.is_temporary(path))
        # Git makes and removes files directly in its folder all the time.
        is_git = os.path.basename(path) == ".git" and not (how & CONTENT and os.path.isfile(path))
        state = self._states[key] = self._reader.state(path, names=names, is_git=is_git)
        is_own = cache and cache in self._own_caches
        if is_own and os.path.basename(path) not in _DECIDE:
            self._states[key] = in_cache(self._reader.key(cache), state)
        if how & CONTENT and state.rpartition(" to ")[2].startswith(SPECIAL):
            self._unreusable = self._unreusable or f"it reads {key}, which is not a file"
        changed_ns = self._reader.changed_ns(path, names=names)
        if self._is_own_change(path, changed_ns):
            self._changed.append(key)
            if self._must_settle(path) and state != self._state_before(path, how, state):
                self._unreusable = self._unreusable or f"{CHANGES}{key}, which it has read"
        elif changed_ns >= self._began_ns or not _is_consistent(how, state):
            self._unreusable = self._unreusable or f"{key} changed while it ran"

    def _look_above(self, path: str) -> None:
        """Note a folder on the way that was put in place of another one meanwhile.

        The files in it may be old. What is made or removed in a folder changes both of its times.
        """
        while (path := os.path.dirname(path)) not in self._above and path != "/":
            self._above.add(path)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            is_moved = stat.S_ISLNK(status.st_mode) or status.st_mtime_ns != status.st_ctime_ns
            is_own = self._is_written(path) or self._reader.is_temporary(path)
            if is_moved and status.st_ctime_ns >= self._began_ns and not is_own:
                why = f"{self._reader.key(path)} changed while it ran"
                self._unreusable = self._unreusable or why

    def _add_interpreter(self, path: str) -> None:
        if path.startswith("/"):
            self._add(path, THERE)
        else:  # in the folder of the process
            self._unreusable = self._unreusable or f"runs a script whose interpreter is {path}"

    def _add_folders_of_outputs(self) -> None:
        """Take the folders in which the run makes something: it fails without them."""
        for folder in self._touched:
            key = self._reader.key(folder)
            is_own = is_below(folder, self._seen.made) or self._reader.is_left_out(folder)
            if not (is_own or key in self._states) and os.path.isdir(folder):
                self._states[key] = self._reader.state(folder)

    def _is_own_temporary(self, path: str) -> bool:
        """Return whether a path is the run's own, which nobody else's bytes were read from."""
        how = self._seen.reads[path]
        is_read = how & CONTENT and not how & LISTED
        return self._is_written(path) and self._reader.is_temporary(path) and not is_read

    def _is_new(self, path: str) -> bool:
        """Return whether something is there now and was not before, or the reverse, or may be."""
        existence = self._seen.reads.get(path, 0) & _EXISTENCE
        is_same = existence in (THERE, ABSENT) and (existence == THERE) == os.path.lexists(path)
        is_unlisted = self._reader.is_left_out(path) or self._cache_of(path) == path
        return not (is_same or is_unlisted)

    def _is_own_change(self, path: str, changed_ns: int) -> bool:
        if self._is_written(path):
            return True
        if changed_ns < self._began_ns:
            return False
        real = os.path.realpath(path)  # strace knows the other names of what is opened only
        return self._is_written(real) or not self._touched.isdisjoint((path, real))

    def _is_written(self, path: str) -> bool:
        return path in self._seen.written or is_below(path, self._seen.made)

    def _must_settle(self, path: str) -> bool:
        is_cache = self._cache_of(path) or self._reader.is_temporary(path)
        return os.path.basename(path) in _DECIDE or not is_cache

    def _cache_of(self, path: str) -> str:
        """Return the cache folder that a path is, or is in; empty if it is in none."""
        if path not in self._caches:
            above = os.path.dirname(path)
            cache = self._cache_of(above) if above != path else ""
            is_one = not cache and os.path.lexists(f"{path}/{CACHE_MARK}")
            self._caches[path] = path if is_one else cache
        return self._caches[path]

    def _state_before(self, path: str, how: int, state: str) -> str | None:
        """Return the state before the run; None if nobody knows."""
        key = self._reader.key(path)
        if key in self._before:
            before = self._before[key].rpartition("\0")[2]
            return before if NAMES in state else before.partition(NAMES)[0]
        if how & _EXISTENCE == ABSENT:
            return ABSENT_STATE
        both = {path, os.path.realpath(path)}
        is_same = both.isdisjoint(self._refilled) and not any(map(self._is_written, both))
        return state if is_same else None


def _is_consistent(how: int, state: str) -> bool:
    """Return whether what is there now is what the run has found."""
    existence = how & _EXISTENCE
    if not existence or state.endswith(f" to {ABSENT_STATE}"):  # a link that leads nowhere is both
        return True
    return existence == (ABSENT if state == ABSENT_STATE else THERE)


_MOST = 4  # a script of a script of …
_HEAD_BYTES = 256  # of a script, the kernel reads no more either
_MOST_HEADERS = 64
_LOADER = 3  # PT_INTERP
# Of 32 and 64 bits: where in the file header the place of the program headers, and their size and
# number are; and where in one of these the place and the size of what it is about. Source: elf(5).
_LAYOUTS = {1: (4, 28, 42, 4, 16), 2: (8, 32, 54, 8, 32)}


def interpreters(program_abs: str) -> Iterator[str]:
    """Yield the interpreter of a script, and the loader of a program that is linked dynamically.

    The first one may be relative to the folder of the process. Source: execve(2), "Interpreter
    scripts".
    """
    for _ in range(_MOST):
        try:
            with open(program_abs, "rb") as file:
                program_abs = _interpreter(file)
        except (OSError, ValueError, OverflowError):
            return
        if not program_abs:
            return
        yield program_abs
        if not program_abs.startswith("/"):
            return


def _interpreter(file: BinaryIO) -> str:
    head = file.read(_HEAD_BYTES)
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
        return os.fsdecode(words[0]) if words else ""
    if head.startswith(b"\x7fELF") and len(head) == _HEAD_BYTES and head[4] in _LAYOUTS:
        return os.fsdecode(_loader(file, head).rstrip(b"\0"))
    return ""


def _loader(file: BinaryIO, head: bytes) -> bytes:
    width, start_at, size_at, place_at, length_at = _LAYOUTS[head[4]]

    def number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little" if head[5] == 1 else "big")

    start, size = number(head, start_at, width), number(head, size_at, 2)
    for index in range(min(number(head, size_at + 2, 2), _MOST_HEADERS)):
        file.seek(start + index * size)
        header = file.read(size)
        if number(header, 0, 4) == _LOADER:
            file.seek(number(header, place_at, width))
            return file.read(min(number(header, length_at, width), 4096))
    return b""
