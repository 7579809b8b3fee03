"""What a run depends on: the state of all that it read, if that can be known.

A run may change what it has read: a cache, a report. Its pass is recorded only where that was the
same before and after, so that the next run would read the same; in a cache folder, what the run has
left there counts instead.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.observed.command import privileged
from gitgates.observed.programs import interpreters
from gitgates.observed.reads import is_below
from gitgates.observed.state import ABSENT_STATE, differences
from gitgates.observed.syscalls import ABSENT, LISTED, PROGRAM, THERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.observed.reads import Observation
    from gitgates.observed.state import Reader

_CACHE_MARK = "CACHEDIR.TAG"  # Source: https://bford.info/cachedir/
_DECIDE = ("lastfailed", "stepwise")  # in a cache of pytest: which tests run at all
_EXISTENCE = THERE | ABSENT


class Dependencies(Record):
    """What a pass depends on. Paths are relative to the root where they are inside."""

    root_abs: str  # of the worktree in which it ran
    states: Mapping[str, str]  # path → state after the run
    programs: frozenset[str]  # of these
    changed: tuple[str, ...]  # of these, by the run itself
    unreusable: str  # why no pass on it can be reused; empty: it can be
    spoilt: str  # why the result of the run does not count; it is run again without strace


def dependencies(
    seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
) -> Dependencies:
    """Return what a run depends on, when it has just ended.

    `before` is what `states_before` has returned before it; `began_ns` is when it began, by the
    clock of the file system: the time of the new file for the trace.
    """
    return _EndedRun(seen, reader, before, began_ns).dependencies()


def states_before(last: Dependencies, reader: Reader) -> dict[str, str]:
    """Return the state of what the last run has changed, to be compared after the next one."""
    return {key: reader.again(key, last.states[key]) for key in last.changed}


def first_difference(was: Dependencies, reader: Reader) -> str:
    """Return the first thing that is not as it was after a run, as a text; empty: all is."""
    difference = next(differences(was.states, reader, was.programs), "")
    return difference or next(_found_above(was, reader), "")


def _found_above(was: Dependencies, reader: Reader) -> Iterator[str]:
    """Yield what a run in this worktree would find above it, and the one elsewhere did not.

    Tools look for settings and packages in all folders above the root.
    """
    old, new = _folders_above(was.root_abs), _folders_above(reader.root_abs)
    for key in was.states if old != new else ():
        if not key.startswith("/") or f"{key}/" in old:
            continue
        nearest = next(folder for folder in old if key.startswith(folder))
        if nearest not in new and was.states[key] != ABSENT_STATE:
            yield f"{key} is not above this worktree"
        for folder in new:
            path = folder + key.removeprefix(nearest)
            if folder not in old and os.path.lexists(path):
                yield f"{path} is there now"


def _folders_above(root_abs: str) -> list[str]:
    """Return the folders above one, with `/` at the end, the nearest one first."""
    parts = root_abs.strip("/").split("/")
    return ["/".join(["", *parts[:count], ""]) for count in reversed(range(len(parts)))]


class _EndedRun:
    """One run that has ended."""

    def __init__(
        self, seen: Observation, reader: Reader, before: Mapping[str, str], began_ns: int
    ) -> None:
        self._seen = seen
        self._reader = reader
        self._before = before
        self._began_ns = began_ns
        self._caches: dict[str, bool] = {}
        self._spoilt, self._unreusable = seen.spoilt, seen.unreusable
        self._states: dict[str, str] = {}
        self._changed: list[str] = []
        # Folders in which it has made or removed something; and those where that remains so.
        self._touched = {os.path.dirname(path) for path in seen.made}
        self._refilled = {os.path.dirname(path) for path in seen.made if self._is_new(path)}

    def dependencies(self) -> Dependencies:
        """PathState at all that was read."""
        programs: set[str] = set()
        for path, how in self._seen.reads.items():
            if self._is_own_temporary(path) or self._reader.is_left_out(path):
                continue
            self._add(path, how)
            if how & PROGRAM:
                self._spoilt = self._spoilt or privileged(path)
                files = (path, *interpreters(path))
                programs.update(map(self._reader.key, files))
                for program in files[1:]:
                    self._add(program, THERE)
        return Dependencies(
            root_abs=self._reader.root_abs,
            states=self._states,
            programs=frozenset(programs),
            changed=tuple(self._changed),
            unreusable=self._unreusable,
            spoilt=self._spoilt,
        )

    def _add(self, path: str, how: int) -> None:
        """Take a path as something that the run depends on; note where that cannot be known."""
        key = self._reader.key(path)
        names = bool(how & LISTED) or self._reader.is_source(key)
        names = names and not (path in self._touched and self._reader.is_temporary(path))
        look = self._reader.look(path, names=names)
        self._states[key] = look.state
        if self._is_own_change(path, look.changed_ns):
            self._changed.append(key)
            if self._must_settle(path) and look.state != self._state_before(path, how, look.state):
                self._unreusable = self._unreusable or f"it changes {key}, which it has read"
        elif look.changed_ns >= self._began_ns or not _is_consistent(how, look.state):
            self._unreusable = self._unreusable or f"{key} changed while it ran"

    def _is_own_temporary(self, path: str) -> bool:
        return self._is_written(path) and self._reader.is_temporary(path)

    def _is_new(self, path: str) -> bool:
        """Return whether something is there now and was not before, or the reverse, or may be."""
        existence = self._seen.reads.get(path, 0) & _EXISTENCE
        is_same = existence in (THERE, ABSENT) and (existence == THERE) == os.path.lexists(path)
        return not (is_same or self._reader.is_left_out(path))

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
        return os.path.basename(path) in _DECIDE or not self._is_in_cache(path)

    def _is_in_cache(self, path: str) -> bool:
        """Return whether a path is a cache folder, or in one."""
        if path not in self._caches:
            above = os.path.dirname(path)
            is_one = os.path.lexists(f"{path}/{_CACHE_MARK}")
            self._caches[path] = is_one or (above != path and self._is_in_cache(above))
        return self._caches[path]

    def _state_before(self, path: str, how: int, state: str) -> str | None:
        """Return the state before the run; None where nobody knows."""
        key = self._reader.key(path)
        if key in self._before:
            return self._before[key]
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
