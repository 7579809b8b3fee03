"""Read the reflog of HEAD: which commits were made in a worktree since a session began.

Whose name a commit bears tells nothing: a person's own commits of yesterday, merged in, are none of
the session's, and a colleague's that the session rebases are. The log says what was done here.
"""

from __future__ import annotations

import os

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.agent_types import Point

_MOST_BYTES = 4 << 20  # of a log, the end: some 20,000 entries
_MOVES = ("checkout: moving ", "reset: moving ", "clone: ", "initial pull", "Branch: ")
_STEPS = ("(start)", "(finish)", "(abort)", "rebase finished")
_FORWARD = ("fast-forward", "updating head")
_SWITCH = "checkout: moving from "


class ReflogEntry(Record):
    """One entry: HEAD has moved."""

    new: str  # the commit that it came to
    stamp: int  # seconds since the epoch; whoever commits can set it
    message: str


def read(git_dir_abs: str) -> tuple[ReflogEntry, ...]:
    """Return the entries of a worktree, the oldest first; none if git keeps no log."""
    try:
        with open(f"{git_dir_abs}/logs/HEAD", "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _MOST_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return ()
    found = (_entry(os.fsdecode(line)) for line in lines)
    return tuple(entry for entry in found if entry)


def since(entries: tuple[ReflogEntry, ...], start: Point) -> tuple[ReflogEntry, ...]:
    """Return the entries since a point, and maybe some of the second before.

    Told by the time, and by where HEAD was: a commit can be given any time, so that the first one
    of the session might look old.
    """
    by_time = by_place = len(entries)
    for at, entry in enumerate(entries):
        if entry.new == start.head:
            by_place = at + 1
        if entry.stamp >= int(start.stamp) - 1 and by_time == len(entries):
            by_time = at
    return entries[min(by_time, by_place) :]


def commits_made_by(entries: Iterable[ReflogEntry]) -> set[str]:
    """Return the commits that were made by these entries."""
    return {entry.new for entry in entries if makes_commit(entry.message)}


def makes_commit(message: str) -> bool:
    """Return whether an entry made a commit, and did not go to one that was there.

    What is not known makes one: to ask for one review too many is better than to hide something.
    """
    action, _colon, rest = message.partition(": ")
    if message.startswith(_MOVES) or action.endswith(_STEPS):
        return False
    # The rest may be the subject of a commit; not of these.
    is_joining = action.startswith(("merge", "pull", "rebase", "cherry-pick"))
    return not (is_joining and rest.lower() in _FORWARD)


def last_switch(entries: tuple[ReflogEntry, ...]) -> str:
    """Return the commit that another branch was last checked out at; empty if none was."""
    found = [entry.new for entry in entries if entry.message.startswith(_SWITCH)]
    return found[-1] if found else ""


def rebased_onto(entries: Iterable[ReflogEntry]) -> frozenset[str]:
    """Return the commits that something was rebased onto."""
    return frozenset(
        one.new for one in entries if one.message.partition(": ")[0].endswith("(start)")
    )


def _entry(line: str) -> ReflogEntry | None:
    """Take a line apart: `OLD NEW NAME <EMAIL> TIME ZONE TAB MESSAGE`."""
    who, _tab, message = line.partition("\t")
    words = who.split(" ")
    if len(words) < 4 or not words[-2].isdigit():  # noqa: PLR2004 - two ids, a time, a zone
        return None
    return ReflogEntry(new=words[1], stamp=int(words[-2]), message=message)
