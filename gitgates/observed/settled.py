"""What a run depends on: the state of everything that it read, if that can be known.

A run may change what it reads, such as a cache or a report. Its pass is recorded only if the state
was the same before and after, so that the next run would read the same; in a cache folder, the
state after the run counts instead.
"""

from __future__ import annotations

import os
import re
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

_SELECT_TESTS = ("lastfailed", "stepwise")  # in pytest's cache: they decide which tests run
_EXISTENCE = THERE | ABSENT


def dependencies(
    seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
) -> Dependencies:
    """Return what a run that has just ended depends on.

    `before`: what `states_before` returned before the run; `began_ns`: its start by the file
    system's clock, which is the time of the trace's new file.
    """
    return _EndedRun(seen, reader, before, began_ns).dependencies()


class _EndedRun:
    """A run that has ended."""

    def __init__(
        self, seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
    ) -> None:
        self._seen = seen
        self._reader = reader
        self._before = before
        self._began_ns = began_ns
        self._caches: dict[str, str] = {}  # path → the cache folder that contains it
        self._above: set[str] = set()  # the parent folders of what was read
        self._spoilt, self._unreusable = seen.spoilt, seen.unreusable
        self._states: dict[str, str] = {}
        # Git's index may cache a folder's files with its time; then git checks the time only.
        self._asks_git = any(map(is_index, seen.reads))
        self._changed: list[str] = []
        # Folders in which it may have made or removed something, and those where that is still so.
        self._touched = {os.path.dirname(path) for path in seen.written}
        # A folder with a cache's mark that is only read, such as an environment, is not a cache.
        self._own_caches = {
            self._cache_of(path) for path in seen.written if not reader.is_left_out(path)
        }
        self._refilled = {os.path.dirname(path) for path in seen.written if self._is_new(path)}

    def dependencies(self) -> Dependencies:
        """Return the states of everything that was read."""
        programs: set[str] = set()
        for path, how in self._seen.reads.items():
            if self._is_own_temporary(path) or self._reader.is_left_out(path):
                continue
            # A tool that walks all folders finds our state, too: only files read there count.
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
        """Add a path that the run depends on, or record that its state cannot be known."""
        key = self._reader.key(path)
        cache = self._cache_of(path)
        names = bool(how & LISTED) or (self._asks_git and self._reader.is_source(key))
        names = names and not (path in self._touched and self._reader.is_temporary(path))
        # Git constantly makes and removes files directly in its folder.
        is_git = os.path.basename(path) == ".git" and not (how & CONTENT and os.path.isfile(path))
        state = self._states[key] = self._reader.state(path, names=names, is_git=is_git)
        is_own = cache and cache in self._own_caches
        if is_own and os.path.basename(path) not in _SELECT_TESTS:
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
        """Record a parent folder that was replaced during the run.

        The files in it may be old. Making or removing something in a folder changes both its times.
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
        else:  # relative to the process's folder
            self._unreusable = self._unreusable or f"runs a script whose interpreter is {path}"

    def _add_folders_of_outputs(self) -> None:
        """Add the folders in which the run makes something: it fails without them."""
        for folder in self._touched:
            key = self._reader.key(folder)
            is_own = is_below(folder, self._seen.made) or self._reader.is_left_out(folder)
            if not (is_own or key in self._states) and os.path.isdir(folder):
                self._states[key] = self._reader.state(folder)

    def _is_own_temporary(self, path: str) -> bool:
        """Return whether a temporary path is the run's own, so that it read only its own bytes."""
        how = self._seen.reads[path]
        is_read = how & CONTENT and not how & LISTED
        return self._is_written(path) and self._reader.is_temporary(path) and not is_read

    def _is_new(self, path: str) -> bool:
        """Return whether a path may have appeared or disappeared during the run."""
        existence = self._seen.reads.get(path, 0) & _EXISTENCE
        is_same = existence in (THERE, ABSENT) and (existence == THERE) == os.path.lexists(path)
        is_unlisted = self._reader.is_left_out(path) or self._cache_of(path) == path
        return not (is_same or is_unlisted)

    def _is_own_change(self, path: str, changed_ns: int) -> bool:
        if self._is_written(path):
            return True
        if changed_ns < self._began_ns:
            return False
        real = os.path.realpath(path)  # strace tells the other names of opened files only
        return self._is_written(real) or not self._touched.isdisjoint((path, real))

    def _is_written(self, path: str) -> bool:
        return path in self._seen.written or is_below(path, self._seen.made)

    def _must_settle(self, path: str) -> bool:
        is_cache = self._cache_of(path) or self._reader.is_temporary(path)
        return os.path.basename(path) in _SELECT_TESTS or not is_cache

    def _cache_of(self, path: str) -> str:
        """Return the cache folder that a path is or is in; empty if there is none."""
        if path not in self._caches:
            above = os.path.dirname(path)
            cache = self._cache_of(above) if above != path else ""
            is_one = not cache and os.path.lexists(f"{path}/{CACHE_MARK}")
            self._caches[path] = path if is_one else cache
        return self._caches[path]

    def _state_before(self, path: str, how: int, state: str) -> str | None:
        """Return the state before the run; None if it is unknown."""
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
    """Return whether the current state is what the run found."""
    existence = how & _EXISTENCE
    # A dangling link both exists and does not.
    if not existence or state.endswith(f" to {ABSENT_STATE}"):
        return True
    return existence == (ABSENT if state == ABSENT_STATE else THERE)


_MOST_INTERPRETERS = 4  # an interpreter may itself be a script
_SCRIPT_BYTES = 256  # the kernel reads no more of a script, either
_HEAD_BYTES = 4096
# The name that PT_INTERP leads to, which linkers place behind the headers. Source: elf(5).
_LOADER = re.compile(rb"\0(/[^\0\n]{1,255})\0")


def interpreters(program_abs: str) -> Iterator[str]:
    """Yield a script's interpreter, and the loader of a dynamically linked program.

    The interpreter may be relative to the process's folder. Source: execve(2), "Interpreter
    scripts".
    """
    for _ in range(_MOST_INTERPRETERS):
        try:
            with open(program_abs, "rb") as file:
                program_abs = _interpreter(file)
        except (OSError, ValueError):
            return
        if not program_abs:
            return
        yield program_abs
        if not program_abs.startswith("/"):
            return


def _interpreter(file: BinaryIO) -> str:
    head = file.read(_HEAD_BYTES)
    if head.startswith(b"#!"):
        words = head[2:_SCRIPT_BYTES].split(b"\n")[0].split()
        return os.fsdecode(words[0]) if words else ""
    loader = _LOADER.search(head) if head.startswith(b"\x7fELF") else None
    return os.fsdecode(loader[1]) if loader and os.path.exists(loader[1]) else ""
