"""What is said of a landed branch: in a git note at its commit, and in lists."""

from __future__ import annotations

import os

from gitgates.core.errors import GitError
from gitgates.features.land.queue import LANDED, Landing, Queue
from gitgates.git.merging import identity
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.git.repo import Repo

NOTES = "refs/notes/gitgates-land"
_SHORT = 7


def write_notes(repo: Repo, entries: list[Landing]) -> str:
    """Write a note at each landed commit; return what went wrong, if anything."""
    for entry in entries:
        git = repo.git._replace(env={**repo.env, **identity(entry.by)})
        add = ("notes", f"--ref={NOTES}", "add", "--force", "--file=-", entry.commit)
        try:
            git.out(*add, stdin=os.fsencode(note(entry)))
        except GitError as error:
            return f"no note was written at {entry.commit[:_SHORT]}: {error.message}"
    return ""


def note(entry: Landing) -> str:
    """Return the lines of the note."""
    gates = [f"{gate} {status} {seconds:.1f} s" for gate, status, seconds in entry.gates]
    lines = [
        f"Landed-by: {entry.by}",
        f"Branch: {entry.branch}",
        f"Onto: {entry.target} at {entry.base}",
        f"Tested: {tested(entry)}",
        f"Gates: {', '.join(gates)}",
        *([f"Weakens: {entry.weakened}"] if entry.weakened else []),
    ]
    return "\n".join(lines) + "\n"


def tested(entry: Landing) -> str:
    """Return which commit the gates have seen."""
    if entry.tested == entry.commit:
        return "this commit"
    return f"as part of a batch, {entry.tested}; this commit may not have been tested by itself"


def as_fields(entry: Landing, queue: Queue) -> dict[str, Any]:
    """Return an entry as data."""
    fields = entry._asdict()
    names = ("gate", "status", "seconds")
    fields["gates"] = [dict(zip(names, gate, strict=True)) for gate in entry.gates]
    for name in ("queued_s", "ended_s"):
        fields[name.removesuffix("_s")] = utc(fields.pop(name)) if fields[name] else ""
    live = [each.number for each in queue.entries() if each.is_live]
    place = live.index(entry.number) + 1 if entry.number in live else 0
    expected_s = queue.expected_s(place) if place else None
    fields |= {"place": place, "expected_seconds": expected_s}
    return {**fields, "feedback": queue.feedback(entry)}


def as_row(entry: Landing) -> tuple[str, ...]:
    """Return an entry as a row of a table."""
    gates = ", ".join(f"{gate} {seconds:.1f} s" for gate, _status, seconds in entry.gates)
    detail = gates if entry.state == LANDED else entry.why
    commit = entry.commit[:_SHORT] if entry.state == LANDED else entry.tip[:_SHORT]
    return str(entry.number), entry.state, commit, f"{entry.branch} → {entry.target}", detail
