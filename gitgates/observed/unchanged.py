"""Find the first difference in what a pass depends on, if there is one.

Hooks load this, so it imports only the smallest parts of the standard library.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.observed.state import ABSENT_STATE, GIT, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.observed.state import Reader


# The beginning of the reason why a pass is not recorded, if the next run may be able to.
CHANGES = "it changes "


class Dependencies(Record):
    """What a pass depends on. Paths are relative to the root if they are inside."""

    root_abs: str  # the root of the worktree in which the gate ran
    states: Mapping[str, str]  # path → state after the run
    programs: frozenset[str]  # the paths that are programs
    changed: tuple[str, ...]  # the paths that the run itself changed
    unreusable: str  # why a pass cannot be reused; empty: it can
    spoilt: str  # why the result does not count; the gate runs again without strace


def states_before(last: Dependencies, reader: Reader) -> dict[str, str]:
    """Return the state of what the last run changed, to be compared after the next one.

    For folders, names are included: the next run may list them even if the last one did not.
    """
    before = {}
    for key in last.changed:
        was = last.states[key]
        before[key] = reader.again(key, was if was == GIT else was + NAMES)
    return before


def first_difference(was: Dependencies, reader: Reader) -> str:
    """Return the first difference from the state after a run, as text; empty if there is none."""
    difference = next(_differences(was.states, reader, was.programs), "")
    return difference or next(_found_above(was, reader), "")


def _found_above(was: Dependencies, reader: Reader) -> Iterator[str]:
    """Yield what a run would find above this worktree that the recorded run, elsewhere, did not.

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
    """Return a folder's parents, each with a final `/`, nearest first."""
    parts = root_abs.strip("/").split("/")
    return ["/".join(["", *parts[:count], ""]) for count in reversed(range(len(parts)))]


def _differences(
    states: Mapping[str, str], reader: Reader, programs: frozenset[str]
) -> Iterator[str]:
    """Yield the differences, as texts."""
    for key, before in states.items():
        now = reader.again(key, before)
        if now != before:
            yield _describe(key, before, now, is_program=key in programs)


def _describe(key: str, was: str, now: str, *, is_program: bool) -> str:
    name = f"the program {key}" if is_program else key
    was, now = was.rpartition("\0")[2], now.rpartition("\0")[2]
    if was == ABSENT_STATE:
        return f"{name} is there now"
    if now == ABSENT_STATE:
        return f"{name} is gone"
    if NAMES in was and was.partition(NAMES)[0] == now.partition(NAMES)[0]:
        return f"other files are in {name}"
    if was.startswith("link ") and was.rpartition(" to ")[0] != now.rpartition(" to ")[0]:
        return f"{name} leads elsewhere"
    return f"{name} changed"
