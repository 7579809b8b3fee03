"""The journal entry that advice hooks write, and the state folded from it."""

from __future__ import annotations

from gitgates.core.record import LazyRecord, Record
from gitgates.journal.journal import Projection, entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.journal.journal import Fact


@entry("advice")
class AdviceEntry(LazyRecord):
    """An advice entry's command has run."""

    id: str  # the entry's id
    hash: str  # a hash of the entry
    trigger: str  # session-end, before-commit, …
    status: str  # passed, failed, …, as for a gate
    duration_s: float  # in seconds
    tree: str = ""  # the snapshot that it ran on, for session-end


class HookRuns(Record):
    """The latest results of advice hooks in a session."""

    ran: Mapping[str, tuple[str, str]] = {}  # id and hash → status, and the snapshot


def _fold_run(state: Fact, fact: Fact) -> None:
    key = f"{fact['id']}:{fact['hash']}"
    state["ran"][key] = (str(fact["status"]), str(fact.get("tree", "")))


HOOK_RUNS: Projection[HookRuns] = Projection(HookRuns, {AdviceEntry: _fold_run})
