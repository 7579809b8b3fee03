"""The queue of branches that wait to land.

<shared state>/land/queue.json   the entries, those that have ended too; replaced as a whole
<shared state>/land/queue.lock   held while that is changed
<shared state>/land/lock         held by the process that works on the queue, which touches it
<shared state>/land/feedback/N   what was said of entry N when it was ejected
"""

from __future__ import annotations

import json
import os
import time

from gitgates.core.errors import LockError, StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.store.files import (
    lock_file,
    make_folder,
    read_or_empty,
    read_state,
    remove_file,
    replace_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gitgates.git.repo import Repo

WAITING, LANDING = "waiting", "landing"  # the states of an entry that has not ended
LANDED, NOTHING, EJECTED, CANCELLED = "landed", "nothing to land", "ejected", "cancelled"
LIVE = (WAITING, LANDING)
_MOST_ENDED = 200
_WAIT_S = 10.0


class Landing(Record):
    """One branch that waits to land, or has ended."""

    number: int
    branch: str
    tip: str  # the commit to land, wherever the branch goes meanwhile
    target: str
    by: str  # NAME <EMAIL>
    queued_s: float
    state: str = WAITING
    why: str = ""  # of a wait, or of an end
    base: str = ""  # the commit that the target was at
    commit: str = ""  # that lands it
    tested: str = ""  # the commit that gates ran on: of a batch, the last one
    gates: tuple[tuple[str, str, float], ...] = ()  # name, status, seconds
    weakened: str = ""  # what weakens the checks in what was tested
    ended_s: float = 0.0

    @property
    def is_live(self) -> bool:
        """Whether it has not ended."""
        return self.state in LIVE


class Queue:
    """The entries of all worktrees of a repository."""

    def __init__(self, repo: Repo, at_once: int = 1) -> None:
        """Take where the queue is, and how many are tested at once."""
        self.folder_abs = f"{repo.shared_state_abs}/land"
        self._path_abs, self._at_once = f"{self.folder_abs}/queue.json", at_once

    def entries(self) -> list[Landing]:
        """Return all entries, in their order. Raises: StateError where they cannot be read."""
        try:
            content = read_state(self._path_abs)
            rows = parse_json(content)["entries"] if content else []
            return [_entry(row) for row in rows]
        except (OSError, ValueError, TypeError, KeyError) as error:
            hint = f"To begin with an empty queue: rm '{self._path_abs}'"
            raise StateError(f"{self._path_abs}: cannot be read: {error!r}", hint) from error

    def expected_s(self, place: int) -> float | None:
        """Return how long until what is in a place ends, as gates took before; None: not known."""
        took = [sum(seconds for *_, seconds in each.gates) for each in self.entries()]
        took = sorted(filter(None, took))
        return -(-place // self._at_once) * took[len(took) // 2] if took else None

    def change(self, edit: Callable[[list[Landing]], Iterable[Landing]]) -> list[Landing]:
        """Replace the entries by what `edit` makes of them; return that.

        Raises: StateError, LockError; OSError.
        """
        make_folder(self.folder_abs)
        fd = lock_file(f"{self.folder_abs}/queue.lock", wait_s=_WAIT_S)
        if fd < 0:
            raise LockError(f"{self._path_abs}: another process holds its lock", "Try again.")
        try:
            before = self.entries()
            after = [*edit(before)]
            dropped = [entry for entry in after if not entry.is_live][:-_MOST_ENDED]
            after = [entry for entry in after if entry not in dropped]
            if after != before:
                rows = [entry._asdict() for entry in after]
                replace_file(self._path_abs, json.dumps({"v": 1, "entries": rows}).encode())
            for entry in dropped:
                remove_file(self._feedback_abs(entry))
        finally:
            os.close(fd)
        return after

    def add(self, branch: str, tip: str, *, target: str, by: str) -> Landing:
        """Queue a branch, unless exactly that is queued; another tip of it is cancelled."""

        def is_same(entry: Landing) -> bool:
            return entry.is_live and (entry.branch, entry.target) == (branch, target)

        def edit(entries: list[Landing]) -> list[Landing]:
            if any(is_same(entry) and entry.tip == tip for entry in entries):
                return entries
            number = 1 + max((entry.number for entry in entries), default=0)
            new = Landing(number, branch, tip, target=target, by=by, queued_s=time.time())
            return [*entries, new]

        why = f"queued again at {tip[:7]}"
        self._set(
            lambda each: is_same(each) and each.state == WAITING and each.tip != tip,
            state=CANCELLED,
            why=why,
        )
        return next(each for each in self.change(edit) if is_same(each) and each.tip == tip)

    def replace(self, changed: list[Landing]) -> bool:
        """Replace entries, if none of them has ended."""
        by_number, replaced = {entry.number: entry for entry in changed}, list[bool]()

        def edit(entries: list[Landing]) -> list[Landing]:
            replaced.append(by_number.keys() <= {e.number for e in entries if e.is_live})
            return [by_number.get(e.number, e) if replaced[-1] else e for e in entries]

        self.change(edit)
        return replaced[-1]

    def update(self, numbers: Iterable[int], **fields: Any) -> None:  # noqa: ANN401 - of a Landing
        """Change fields of entries that have not ended."""
        chosen = {*numbers}
        self._set(lambda each: each.number in chosen and each.is_live, **fields)

    def cancel(self, branches: Iterable[str]) -> list[Landing]:
        """Take branches out that wait; return their entries."""
        names = {*branches}
        return self._set(
            lambda each: each.state == WAITING and each.branch in names, state=CANCELLED, why=""
        )

    def _set(self, is_chosen: Callable[[Landing], bool], **fields: Any) -> list[Landing]:  # noqa: ANN401 - as above
        """Change fields of some entries; return these."""
        if fields.get("state", WAITING) not in LIVE:
            fields["ended_s"] = time.time()
        changed: dict[int, Landing] = {}

        def edit(entries: list[Landing]) -> list[Landing]:
            changed.update({e.number: e._replace(**fields) for e in entries if is_chosen(e)})
            return [changed.get(entry.number, entry) for entry in entries]

        self.change(edit)
        return [*changed.values()]

    def feedback(self, entry: Landing) -> str:
        """Return what was said when an entry was ejected."""
        return read_or_empty(self._feedback_abs(entry)).decode("utf-8", "replace")

    def eject(self, entry: Landing, why: str, feedback: str, **fields: Any) -> None:  # noqa: ANN401 - as above
        """End an entry that cannot land, with the message about it."""
        make_folder(f"{self.folder_abs}/feedback")
        replace_file(self._feedback_abs(entry), feedback.encode("utf-8", "replace"))
        self.update([entry.number], state=EJECTED, why=why, **fields)

    def _feedback_abs(self, entry: Landing) -> str:
        return f"{self.folder_abs}/feedback/{entry.number}"


def _entry(row: dict[str, Any]) -> Landing:
    fields = {name: value for name, value in row.items() if name in Landing._fields}
    return Landing(**{**fields, "gates": tuple(map(tuple, row.get("gates", ())))})
